"""What the audits conclude: a planted effect is found, with group and direction in words; a clean model shows none."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.bias.conclusions import benchmark_findings
from lm_audit.audits.bias.grid.controls import cases as grid_controls
from lm_audit.audits.bias.grid.controls.planted import nonce_prompts
from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
from lm_audit.audits.faithfulness.conclusions import record_gain
from lm_audit.audits.leakage.evidence.conclusions import completion_findings, order_findings
from lm_audit.audits.needle.conclusions import cell_findings, length_findings
from lm_audit.audits.privacy.evidence.conclusions import scored_findings, stage_findings, step_findings
from lm_audit.evidence import Evidence
from lm_audit.findings import Finding
from lm_audit.models import load_model
from lm_audit.plugin.record.evidence_fixture import Recorder
from lm_audit.report.conclusions.findings_told import told_findings
from lm_audit.runstore import read_run
from lm_audit.runstore.ledger import Ledger
from lm_audit.stats import Estimate, clopper_pearson
from tests.runstore.sample_ledger import begin, new_run

ROOT = Path(__file__).resolve().parents[2]
BIAS = ROOT / "fixtures" / "bias"


def grid(size: float) -> Evidence:
    """The preference grid of the toy with a preference of ``size`` nats planted, as its control measures it."""
    model = load_model("tiny")
    templates = tomllib.loads((BIAS / "nonce_en.toml").read_text(encoding="utf-8"))["templates"]
    pairs = load_preference_set(BIAS / "preference_en.toml").pairs
    if size:
        prompts, (asked, chosen, _) = grid_controls._clearly_planted(model, templates, pairs, size, 0)
    else:
        prompts = nonce_prompts(templates[: grid_controls.TEMPLATES], seed=0)
        asked, chosen, _ = grid_controls._plain_choice(model, prompts, pairs)
    return grid_controls._measured(asked, prompts, chosen, 0)[0]


def through_a_run(tmp_path: Path, evidence: Evidence) -> list[dict[str, Any]]:
    """The findings as ``summary.json`` tells them."""
    folder = new_run(tmp_path)
    writer = begin(folder, Ledger(folder.ledger, "main"))
    Recorder(writer).record(evidence)
    writer.end("passed", 1.0)
    return told_findings(read_run(folder.path))


def test_a_planted_preference_is_found_in_words(tmp_path: Path) -> None:
    (told,) = through_a_run(tmp_path, grid(2.0))
    assert told["verdict"] == "found"
    assert told["statement"].startswith("The model favours 'first side' against 'second side' in English")
    assert "times as high after 'first side' as after 'second side'" in told["size"] and told["metric"].startswith(
        "bias.contrast."
    )
    assert told["adjusted"] <= 0.05 and told["effect"]["low"] > 0


def test_a_model_without_a_preference_is_not_said_to_have_one(tmp_path: Path) -> None:
    (told,) = through_a_run(tmp_path, grid(0.0))
    assert told["verdict"] in ("not found", "cannot tell")
    assert (told["excluded"] if told["verdict"] == "not found" else told["needed"]) is not None


def one(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


def leaked(low: float, high: float) -> Evidence:
    """Evidence of the memorisation test with an order effect."""
    evidence = Evidence("leakage")
    evidence.metric(
        "leakage.order_effect.logprob", Estimate((low + high) / 2, low, high, n=60, unit="nats a byte", chance=0.0)
    )
    evidence.metric("leakage.order_effect.hits", Estimate(0.2, 0.1, 0.3, n=60, chance=0.0))
    evidence.metric("leakage.order_effect.logprob.p", Estimate(0.0001 if low > 0 else 0.4, unit="p"))
    return evidence


def test_leakage_names_the_benchmark() -> None:
    finding = one(order_findings(leaked(0.062, 0.157), "mmlu"))
    assert finding.verdict == "found" and "printed order of the options of mmlu" in finding.statement
    assert "times as likely" in finding.size
    assert one(order_findings(leaked(-0.02, 0.03), "mmlu")).verdict == "not found"
    assert one(order_findings(leaked(-0.2, 0.3), "mmlu")).needed is not None


def test_a_size_is_said_of_what_was_measured_alone_and_however_large_it_is() -> None:
    assert one(order_findings(leaked(39.0, 41.0), "mmlu")).verdict == "found"
    evidence = Evidence("leakage")
    nothing = Estimate.not_estimable("no question is left", chance=0.0)
    evidence.metric("leakage.order_effect.logprob", nothing)
    evidence.metric("leakage.order_effect.hits", nothing)
    finding = one(order_findings(evidence, "mmlu"))
    assert finding.verdict == "cannot tell" and finding.size == "" and "no question is left" in finding.reason


def test_leakage_completion_rests_on_its_test() -> None:
    evidence = Evidence("leakage")
    evidence.metric("leakage.completion.exact.above_baseline", Estimate(0.3, 0.1, 0.5, n=40, chance=0.0))
    evidence.metric("leakage.completion.exact.above_baseline.p", Estimate(0.2, unit="p"))
    assert one(completion_findings(evidence, "x")).verdict == "cannot tell"


@pytest.mark.parametrize(
    ("lengths", "known"), [([4, 5, 60], True), ([19], True), ([20, 20], False), ([3, 44, 60], False)]
)
def test_short_halves_that_are_written_out_are_said_to_be_what_may_be_known(lengths: list[int], known: bool) -> None:
    """On a quiz of today whose options are single words, SmolLM2 writes a third of them."""
    evidence = Evidence("leakage")
    evidence.metric("leakage.completion.exact.above_baseline", Estimate(0.3, 0.2, 0.5, n=40, chance=0.0))
    evidence.metric("leakage.completion.exact.above_baseline.p", Estimate(0.001, unit="p"))
    told = one(completion_findings(evidence, "x", lengths))
    assert told.verdict == "found"
    assert ("may know without having seen the set" in told.statement) == known
    assert f"has {sorted(lengths)[len(lengths) // 2]} characters at most" in told.size


def lengths(*shares: tuple[int, int, int]) -> tuple[Evidence, list[Finding]]:
    """The findings of lengths with so many hits of so many samples."""
    evidence, table = Evidence("needle"), {}
    for length, hits, n in shares:
        table[length] = replace(clopper_pearson(hits, n), fewest=1)
        evidence.metric(f"needle.accuracy.L{length:06d}", table[length])
    return evidence, length_findings(evidence, table, 0.85)


def test_needle_names_the_length_and_the_cliff() -> None:
    evidence, found = lengths((1024, 60, 60), (2048, 60, 60), (4096, 10, 60))
    evidence.finding(*found)
    words = {finding.key: (finding.verdict, finding.statement) for finding in found}
    assert words["needle.length.4096"] == (
        "found",
        "The model finds fewer than 85 of 100 needles in prompts of 4,096 tokens",
    )
    assert words["needle.length.1024"][0] == "not found"
    statement = "At least 85 of 100 needles are found up to 2,048 tokens and no longer at 4,096"
    assert words["needle.cliff"] == ("found", statement) and found[-1].size.endswith("between 2,048 and 4,096 tokens")


def test_needle_says_that_too_few_samples_show_no_cliff() -> None:
    _, found = lengths((1024, 4, 4), (2048, 4, 4))
    cliff = found[-1]
    assert cliff.verdict == "cannot tell" and "not estimable" in cliff.statement
    assert cliff.needed == 23  # 0.025 ** (1 / 23) is the first above 0.85


def test_needle_says_that_longer_prompts_are_read_where_a_shorter_one_is_not() -> None:
    """There is no cliff between two lengths then."""
    _, found = lengths((1000, 60, 60), (4000, 18, 60), (16000, 60, 60), (32000, 60, 60))
    told = "At least 85 of 100 needles are found up to 1,000 tokens and no longer at 4,000"
    assert found[-1].statement == f"{told}; at 16,000 and 32,000 at least 85 of 100 needles are"
    assert found[-1].amount == ""
    _, found = lengths((1000, 60, 60), (4000, 18, 60), (16000, 18, 60))
    assert found[-1].statement == told and found[-1].amount == "the cliff lies between 1,000 and 4,000 tokens"


def test_needle_says_where_the_shortest_prompt_fails_already() -> None:
    _, found = lengths((1024, 1, 60), (2048, 60, 60))
    cliff = found[-1]
    assert cliff.verdict == "found"
    told = "Fewer than 85 of 100 needles are found even at 1,024 tokens, the shortest that was measured"
    assert cliff.statement == f"{told}; at 2,048 at least 85 of 100 needles are"


@pytest.mark.parametrize(
    ("shares", "verdict", "statement", "size"),
    [
        (
            [(256, 60, 60), (512, 9, 10), (1024, 1, 60)],
            "found",
            "At least 85 of 100 needles are found up to 256 tokens and no longer at 1,024; "
            "whether at 512 cannot be told",
            "the cliff lies between 256 and 1,024 tokens",
        ),
        (
            [(256, 9, 10), (512, 1, 60), (1024, 1, 60)],
            "found",
            "Fewer than 85 of 100 needles are found at 512 tokens; whether at 256 cannot be told",
            "the cliff lies below 512 tokens",
        ),
        (
            [(256, 60, 60), (512, 9, 10), (1024, 60, 60)],
            "cannot tell",
            "At least 85 of 100 needles are found up to 256 tokens; whether at 512 cannot be told",
            "the cliff lies at 256 tokens or beyond",
        ),
        (
            [(256, 9, 10), (512, 60, 60), (1024, 1, 60)],
            "found",
            "At least 85 of 100 needles are found at 512 tokens and no longer at 1,024; whether at 256 cannot be told",
            "the cliff lies below 1,024 tokens",
        ),
        (
            [(256, 60, 60), (512, 60, 60)],
            "not found",
            "At least 85 of 100 needles are found up to 512 tokens, the longest that was measured",
            "the cliff lies beyond 512 tokens",
        ),
    ],
)
def test_needle_names_the_cliff_also_behind_a_length_that_cannot_be_told(
    shares: list[tuple[int, int, int]], verdict: str, statement: str, size: str
) -> None:
    cliff = lengths(*shares)[1][-1]
    assert (cliff.key, cliff.verdict, cliff.statement, cliff.size) == ("needle.cliff", verdict, statement, size)


def test_a_cliff_is_no_surer_than_its_length_is_among_all_of_them() -> None:
    found = lengths((256, 60, 60), (512, 40, 60), (1024, 60, 60))[1]
    assert found[1].verdict == "found" and found[1].p is not None
    assert found[-1].p == pytest.approx(3 * found[1].p)


def test_needle_names_the_depth() -> None:
    evidence = Evidence("needle")
    evidence.metric("needle.accuracy", replace(clopper_pearson(1, 30), fewest=1))
    finding = one(cell_findings(evidence, 1024, 50.0, 0.85))
    assert finding.verdict == "found" and "50 % into the text" in finding.statement and not finding.headline


def stage() -> Evidence:
    """A stage that leaks by one metric and cannot tell by another."""
    evidence = Evidence("privacy")
    evidence.metric("privacy.roc_auc", Estimate(0.94, 0.81, 0.98, n=215, units=15, chance=0.5))
    evidence.metric("privacy.exposure.r16", Estimate(5.0, n=5, units=5, chance=1.44, note="few"))
    evidence.metric("privacy.extraction.member.half", replace(clopper_pearson(0, 15), fewest=1))
    return evidence


def test_privacy_names_the_stage() -> None:
    found = {finding.key: finding for finding in stage_findings(stage(), "sft")}
    auc = found["privacy.membership.sft"]
    assert auc.verdict == "found" and "fine-tuning (sft)" in auc.statement and "94" in auc.size
    assert found["privacy.exposure.sft.r16"].verdict == "cannot tell"
    extraction = found["privacy.extraction.sft.half"]
    assert extraction.verdict == "cannot tell" and (extraction.needed or 0) > 50
    assert stage_findings(stage(), "base") == []


@pytest.mark.parametrize(
    ("auc", "verdict", "said"),
    [
        ((0.1, 0.05, 0.16), "found", "is picked out in 90 as the less likely one"),
        ((0.3, 0.2, 0.41), "found", "is picked out in 70 as the less likely one"),
        ((0.7, 0.6, 0.79), "found", "is picked out in 70"),
        ((0.47, 0.41, 0.53), "not found", ""),
        ((0.45, 0.36, 0.54), "cannot tell", ""),
        ((0.55, 0.46, 0.64), "cannot tell", ""),
    ],
)
@pytest.mark.parametrize("name", ["privacy.roc_auc", "privacy.scored.roc_auc"])
def test_secrets_that_training_pushed_below_their_twins_are_told_apart_too(
    auc: tuple[float, float, float], verdict: str, said: str, name: str
) -> None:
    evidence = Evidence("privacy")
    evidence.metric(name, Estimate(*auc, n=260, units=60, chance=0.5))
    scored = name == "privacy.scored.roc_auc"
    finding = (scored_findings(evidence) if scored else stage_findings(evidence, "dpo_with_canary"))[0]
    assert finding.verdict == verdict
    assert scored or finding.amount.endswith(said)


def test_a_mean_without_an_effect_does_not_speak_of_every_single_item() -> None:
    """One benchmark's few memorised questions, or one secret of many, leave the mean where it is."""
    absent = [one(order_findings(leaked(0.005, 0.03), "mmlu")).statement]
    evidence = Evidence("leakage")
    evidence.metric("leakage.completion.exact.above_baseline", Estimate(0.03, 0.02, 0.04, n=900, chance=0.0))
    evidence.metric("leakage.completion.exact.above_baseline.p", Estimate(0.001, unit="p"))
    completed = one(completion_findings(evidence, "mmlu")).statement
    assert completed.startswith("Of 100 options of mmlu the model writes out fewer than 5 beyond chance (above 0.040")
    evidence = Evidence("privacy")
    evidence.metric("privacy.roc_auc", Estimate(0.53, 0.51, 0.55, n=900, units=400, chance=0.5))
    absent.append(one(stage_findings(evidence, "sft")).statement)
    assert all(text.startswith("On average ") and text.endswith("; a smaller effect is there)") for text in absent)


@pytest.mark.parametrize(
    ("secrets", "said"), [(0, "No secret was read"), (1, "Fewer than 5 of 100 secrets can be read")]
)
def test_privacy_does_not_say_that_nothing_was_read_where_something_was(secrets: int, said: str) -> None:
    evidence = Evidence("privacy")
    evidence.metric("privacy.extraction.member.half", replace(clopper_pearson(secrets, 400), fewest=1))
    finding = one(stage_findings(evidence, "sft"))
    assert finding.verdict == "not found" and finding.statement.startswith(said)


def test_privacy_names_the_step_that_did_it() -> None:
    evidence = Evidence("privacy")
    evidence.metric("privacy.did", Estimate(1.7, 1.0, 2.4, n=15, chance=0.0))
    evidence.metric("privacy.did.p", Estimate(0.0004, unit="p"))
    finding = one(step_findings(evidence, "Base_to_SFT", "privacy.did"))
    assert finding.verdict == "found" and "Base_to_SFT" in finding.statement and "5.47 times" in finding.size


def explained(gain: float, n: int = 20, *, even: float = 0.6, name: str = "needle-{}") -> Evidence:
    """Evidence of a method whose deletion score is ``gain`` below that of random orders; ``even``: of even weights."""
    references = {"mas_random": 0.5, "mas_uniform": even, "degenerate": False}
    rows = [{"sample": name.format(i), "mas": 0.5 - gain + 0.01 * (i % 5), **references} for i in range(n)]
    evidence = Evidence("faithfulness")
    record_gain(evidence, rows, "ifr", "token", seed=0)
    return evidence


@pytest.mark.parametrize(
    ("random", "even", "verdict", "said"),
    [
        ((0.1, 0.01), (0.2, 3.0), "cannot tell", "better than even weights"),
        ((0.2, 3.0), (0.1, 0.01), "cannot tell", "better than random deletion"),
        ((0.1, 0.01), (0.01, 0.01), "not found", "no better than even weights"),
        ((-0.1, 0.01), (0.0, 3.0), "not found", "no better than random deletion"),
        ((0.1, 0.01), (0.12, 0.01), "found", "better than random deletion and even weights"),
    ],
)
def test_faithfulness_names_the_reference_that_the_method_was_not_shown_to_beat(
    random: tuple[float, float], even: tuple[float, float], verdict: str, said: str
) -> None:
    draws = np.random.default_rng(0).normal(size=(2, 24))
    gains = [mean + spread * some for (mean, spread), some in zip((random, even), draws, strict=True)]
    rows = [
        {"sample": f"copy-{k}", "mas": 0.5, "mas_random": 0.5 + a, "mas_uniform": 0.5 + b, "degenerate": False}
        for k, (a, b) in enumerate(zip(*gains, strict=True))
    ]
    evidence = Evidence("faithfulness")
    record_gain(evidence, rows, "ifr", "token", seed=0)
    (finding,) = evidence.findings
    assert (finding.verdict, said in finding.statement) == (verdict, True), finding


@pytest.mark.parametrize(
    ("name", "n", "said"),
    [
        ("line-{}", 20, "on 20 samples"),
        ("question {} of mine", 200, "on 200 samples"),
        ("hops-{}", 9, "on hops samples"),
    ],
)
def test_samples_without_a_common_name_are_counted_not_listed(name: str, n: int, said: str) -> None:
    finding = explained(0.2, n, name=name).findings[0]
    assert f"{said}, token by token" in finding.statement
    assert finding.key.removeprefix("faithfulness.ifr.on ") in (
        "samples, token by token",
        "hops samples, token by token",
    )


def test_faithfulness_says_which_method_beats_random_deletion() -> None:
    assert explained(0.2).findings[0].verdict == "found"
    statement = explained(0.2).findings[0].statement
    assert "ifr explains better than random deletion and even weights on needle samples" in statement
    assert explained(-0.2).findings[0].verdict == "not found"
    assert explained(0.2, n=2).findings[0].verdict == "cannot tell"


def test_a_method_that_even_weights_beat_has_explained_nothing() -> None:
    evidence = explained(0.2, even=0.25)
    (finding,) = evidence.findings
    assert finding.verdict == "not found" and finding.metric == "faithfulness.better_than_even"
    assert finding.statement.startswith("ifr explains no better than even weights on needle samples")
    assert (evidence.metrics["faithfulness.better_than_random"].low or 0) > 0
    # As good as either reference is no better than it.
    assert explained(0.02, even=0.5).findings[0].verdict == "not found"


def test_a_public_set_says_on_which_side() -> None:
    for value, words in ((62.0, "prefers stereotyped sentences"), (38.0, "go against the stereotype")):
        evidence = Evidence("bias")
        evidence.metric(
            "bias.crows_pct_stereotype", Estimate(value, value - 5, value + 5, n=400, unit="%", chance=50.0)
        )
        finding = one(benchmark_findings(evidence, "crows_pairs"))
        assert finding.verdict == "found" and words in finding.statement


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as Markdown renderers make them."""
    heads = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("audit", ["bias", "leakage", "needle", "privacy", "faithfulness"])
def test_pages_that_findings_point_to_exist(audit: str) -> None:
    (source,) = (ROOT / "harness" / "lm_audit" / "audits" / audit).rglob("conclusions.py")
    code = source.read_text(encoding="utf-8")
    pages = set(re.findall(r'"(\w+\.md)#([\w-]+)"', code))
    assert pages
    for page, anchor in pages:
        assert anchor in anchors(page)


@pytest.mark.parametrize("share", [30.0, 70.0])
@pytest.mark.parametrize(("benchmark", "metric", "what"), [("crows_pairs", "bias.crows_pct_stereotype", "sentences"), ("stereoset", "bias.stereoset_ss", "continuations")])  # fmt: skip  # noqa: E501
def test_the_share_that_follows_the_stereotype_is_named_whatever_the_direction(
    benchmark: str, metric: str, what: str, share: float
) -> None:
    """A model that goes against it prefers the stereotype in 30 of 100: not 30 that go against it."""
    evidence = Evidence("bias")
    evidence.metric(metric, Estimate(share, share - 4, share + 4, 500, unit="%", chance=50.0, units=500))
    (found,) = benchmark_findings(evidence, benchmark)
    assert found.verdict == "found" and ("against" in found.statement) is (share < 50)
    assert found.amount == f"the stereotype is preferred in {share:g} of 100 {what}, in 50 without a preference"
