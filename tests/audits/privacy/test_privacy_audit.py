"""The audit of stages: what it measures, what it refuses, and the files it writes."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from lm_audit.audits.privacy.attribution.changes import PRIMARY
from lm_audit.audits.privacy.attribution.transitions import attribute_leak
from lm_audit.audits.privacy.audit import audit_stages, stage_rows
from lm_audit.audits.privacy.data.manifest import Manifest, read_manifest
from lm_audit.audits.privacy.files.evidence_file import load_evidence, save_evidence
from lm_audit.audits.privacy.files.outputs import write_outputs
from lm_audit.audits.privacy.measure.blind import blind_baseline
from lm_audit.audits.privacy.measure.exact_exposure import candidates, exact_exposure
from lm_audit.audits.privacy.measure.membership import epsilon_bound, exposure_by_tier, membership
from lm_audit.audits.privacy.measure.source_columns import COLUMNS, source_metrics
from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions, StageScores, score_stage
from lm_audit.audits.privacy.measure.stress import VARIANTS, stress_variants
from lm_audit.audits.privacy.stages.config import StagesConfig
from lm_audit.audits.privacy.stages.seeds import combine_seeds, direction_consistency
from lm_audit.audits.privacy.stages.stage_option import parse_stages
from lm_audit.errors import DataError, ModelError, UsageError
from lm_audit.evidence import Evidence
from lm_audit.stats import Estimate
from tests.plugin.toy_run import Outcome, run_pytest
from tests.present import present

ROOT = Path(__file__).resolve().parents[3]


Floats = Sequence[float] | NDArray[np.float64]


def scores_of(members: Floats, twins: Floats, documents: Floats = (), stage: str = "base") -> StageScores:
    """Stage scores with given log-probabilities of the secret (and of the whole text, the same)."""
    values = np.r_[members, twins].astype(float)
    roles = ["member"] * len(members) + ["control"] * len(twins)
    table = pd.DataFrame(
        {"canary_id": [f"c{i}" for i in range(len(values))], "role": roles, "text": "", "repetitions": 1}
    )
    for name in ("span_mean_logprob", "mean_logprob", "span_min_k20_ceil", "span_min_kpp20_ceil"):
        table[name] = values
    for name in ("min_k20_ceil", "min_kpp20_ceil"):
        table[name] = values
    for name in ("zlib_ratio_mean_nll", "lowercase_log_ratio", "mean_rank0"):
        table[name] = -values
    table["ppl"], table["last_token_rank0"] = np.exp(-values), 0
    for name in ("top5", "top10", "top50"):
        table[name] = 1.0
    held_out = pd.DataFrame({"mean_logprob": np.array(documents, dtype=float)})
    return StageScores(stage, table, held_out, pd.DataFrame(), "none")


def test_every_metric_of_every_stage(smoke_evidence: Evidence) -> None:
    names = set(smoke_evidence.metrics)
    for stage in ("base", "sft", "dpo_no_canary", "dpo_with_canary"):
        wanted = ["roc_auc", "pr_auc", "tpr_at_0.01", "tpr_at_0.001", "epsilon", "stability", "exposure.r1"]
        wanted += ["exposure_exact.r16", "extraction.member.third", "extraction.control.half", "extraction.sampled"]
        wanted += [f"source.{name}" for name in COLUMNS]
        assert {f"privacy.{stage}.{name}" for name in wanted} <= names
    assert "privacy.sft.roc_auc.span_calibrated_logprob" in names
    assert smoke_evidence.headline == "privacy.DPO_NoCanary_vs_WithCanary.did"
    assert present(smoke_evidence.control).passed


def test_exact_exposures_have_the_cap_and_the_chance_of_their_own_secrets() -> None:
    """Of a tier whose secrets have 4 and 16 candidates for their last characters; the other tier has 1,000."""
    scores = scores_of([-1.0] * 4, [-2.0] * 3)
    table = scores.canaries.assign(
        repetitions=[2, 2, 2, 9, 0, 0, 0],
        exposure_exact=[2.0, 4.0, np.nan, 3.0] + [np.nan] * 3,
        exposure_cap=[2.0, 4.0, np.nan, np.log2(1000)] + [np.nan] * 3,
    )
    found = exposure_by_tier(replace(scores, canaries=table))["exposure_exact.r2"]
    by_rank = [np.mean(np.log2(space / np.arange(1, space + 1))) for space in (4, 16)]
    assert (found.n, found.value) == (2, 3.0)
    assert found.chance == pytest.approx(np.mean(by_rank))
    assert "at most 4.00" in present(found.note)


def test_too_few_twins_leave_the_rate_unidentified(smoke_evidence: Evidence) -> None:
    """60 twins allow no false positive at 1%."""
    found = smoke_evidence.metrics["privacy.sft.tpr_at_0.01"]
    assert found.value is None
    assert "not identified" in present(found.note)


def test_rows_are_plain_unique_and_without_text(smoke_evidence: Evidence) -> None:
    json.dumps(smoke_evidence.rows, allow_nan=False)
    items = [row["item"] for row in smoke_evidence.rows]
    assert len(items) == len(set(items))
    assert "text" not in smoke_evidence.rows[0]


def test_difference_in_differences_is_what_it_says(smoke_evidence: Evidence) -> None:
    table = pd.DataFrame(smoke_evidence.rows)
    means = table.groupby(["stage", "role"])["span_mean_logprob"].mean()
    change = {role: means["dpo_with_canary", role] - means["dpo_no_canary", role] for role in ("member", "control")}
    found = smoke_evidence.metrics["privacy.DPO_NoCanary_vs_WithCanary.did"]
    assert found.value == pytest.approx(change["member"] - change["control"], abs=1e-12)
    assert found.low is None
    assert "at least 8 on each side" in present(found.note)  # the smoke configuration has 4 members


def test_tables_and_files(smoke_evidence: Evidence, tmp_path: Path) -> None:
    paths = write_outputs(smoke_evidence, tmp_path)
    assert {path.name for path in paths} >= {"privacy_audit_summary.csv", "attribution_summary.json"}
    with (tmp_path / "privacy_audit_summary.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0])[:12] == ["Stage", *COLUMNS]
    names = ["Stage0_Base", "Stage1_SFT", "Stage2a_DPO_NoCanary", "Stage2b_DPO_WithCanary"]
    assert [row["Stage"] for row in rows] == names
    text = (tmp_path / "attribution_summary.json").read_text()
    summary = json.loads(text, parse_constant=lambda name: pytest.fail(f"bare {name}"))
    keys = "summary stage_metrics stage_deltas attribution_scores dpo_comparison statistical_analysis"
    assert {*keys.split(), "interpretations", "key_findings", "decision_criteria"} == summary.keys()
    assert set(COLUMNS) <= set(summary["summary"]["metrics_analyzed"])


def test_evidence_survives_the_disk(smoke_evidence: Evidence, tmp_path: Path) -> None:
    save_evidence(smoke_evidence, tmp_path / "e.json")
    back = load_evidence(tmp_path / "e.json")
    assert back.metrics == smoke_evidence.metrics
    assert back.rows == smoke_evidence.rows
    assert back.control == smoke_evidence.control
    with pytest.raises(DataError, match="no such file"):
        load_evidence(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text('{"audit": "privacy"}')
    with pytest.raises(DataError, match="no evidence of the privacy audit"):
        load_evidence(tmp_path / "bad.json")


def test_figures_are_complete_and_small(smoke_evidence: Evidence) -> None:
    figures = {figure.name: figure for figure in smoke_evidence.figures}
    assert {"stage-table", "roc", "roc-log", "distributions", "exposure", "stress"} == figures.keys()
    for figure in figures.values():
        assert len(json.dumps(figure.data, allow_nan=False)) < 500_000
    table = figures["stage-table"].data
    assert [column["name"] for column in table["columns"]][1:] == ["base", "sft", "dpo_no_canary", "dpo_with_canary"]
    assert any("▲" in row["sft"] for row in table["rows"])


def test_figures_are_valid_vega_lite(smoke_evidence: Evidence) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    for figure in smoke_evidence.figures:
        if figure.kind == "vega-lite":
            assert vl_convert.vegalite_to_svg(json.dumps(figure.data)).startswith("<svg")


def test_missing_stage_strict_and_lenient(smoke_evidence: Evidence) -> None:
    kept = [row for row in smoke_evidence.rows if row["stage"] != "dpo_no_canary"]
    part = Evidence("privacy", rows=kept, parameters={"seed": 0})
    with pytest.raises(DataError, match="dpo_no_canary"):
        attribute_leak(part)
    transitions = set(attribute_leak(part, lenient=True)["transition"])
    assert transitions == {"Base_to_SFT", "SFT_to_DPO_WithCanary"}


def test_unknown_and_missing_stages_before_any_model(smoke_stages: tuple[StagesConfig, dict[str, Path]]) -> None:
    config, stages = smoke_stages
    path = config.folder() / "manifest.jsonl"
    with pytest.raises(UsageError, match="unknown stage 'dpo'"):
        audit_stages({"dpo": "nowhere"}, path)
    with pytest.raises(DataError, match="dpo_with_canary are missing"):
        audit_stages({"base": stages["base"]}, path)
    lone = replace(read_manifest(path), canaries=read_manifest(path).canaries[:1])
    with pytest.raises(DataError, match="at least 2 members and 2 held-out twins"):
        audit_stages(stages, lone)


def test_scoring_is_refused_when_a_twin_was_trained_on(
    smoke_stages: tuple[StagesConfig, dict[str, Path]], tmp_path: Path
) -> None:
    config, _ = smoke_stages
    manifest = read_manifest(config.folder() / "manifest.jsonl")
    swapped = [
        replace(c, role="control", repetitions=0) if c.role == "member" and i == first(manifest) else c
        for i, c in enumerate(manifest.canaries)
    ]
    with pytest.raises(DataError, match=r"held-out twin .* is in the training text"):
        audit_stages({s: "nowhere" for s in parse_stages(ALL)}, replace(manifest, canaries=tuple(swapped)))


ALL = "base=o/a,sft=o/b,dpo_no_canary=o/c,dpo_with_canary=o/d"


def first(manifest: Manifest) -> int:
    return next(i for i, c in enumerate(manifest.canaries) if c.role == "member")


def test_blind_baseline_decision_rule() -> None:
    rng = np.random.default_rng(0)
    assert blind_baseline(scores_of(rng.normal(size=50), rng.normal(size=200))).verdict == "ok"
    apart = blind_baseline(scores_of(rng.normal(2, 1, 50), rng.normal(size=200)))
    assert apart.verdict == "refuse"
    assert "already tells members from twins" in apart.reason
    # A difference that is certain and small is noted: such twins still serve.
    assert blind_baseline(scores_of(rng.normal(0.2, 1, 900), rng.normal(size=900))).verdict == "warn"
    assert blind_baseline(scores_of(rng.normal(0.5, 1, 900), rng.normal(size=900))).verdict == "refuse"


def test_separable_base_voids_the_evidence(smoke_stages: tuple[StagesConfig, dict[str, Path]]) -> None:
    """Members that the base model already knows: the stage judged as base is one that was trained on them."""
    config, stages = smoke_stages
    manifest = read_manifest(config.folder() / "manifest.jsonl")
    known = {c.id for c in manifest.members}
    easy = [c if c.id in known else replace(c, text=c.text + " zqxj", secret="zqxj") for c in manifest.canaries]
    spans = [replace(c, secret_span=(len(c.text) - 4, len(c.text))) if c.id not in known else c for c in easy]
    evidence = audit_stages(
        {stage: stages["base"] for stage in stages},
        replace(manifest, canaries=tuple(spans)),
        device="cpu",
        verify=False,
    )
    assert not present(evidence.control).passed
    assert evidence.headline is None
    assert "attribution" not in evidence.parameters


def test_identical_variants_are_noticed(smoke_stages: tuple[StagesConfig, dict[str, Path]], tmp_path: Path) -> None:
    config, stages = smoke_stages
    twice = dict(stages) | {"dpo_with_canary": stages["dpo_no_canary"]}
    evidence = audit_stages(twice, config.folder() / "manifest.jsonl", device="cpu")
    assert any("score every canary the same" in note for note in evidence.notes)
    write_outputs(evidence, tmp_path)
    findings = json.loads((tmp_path / "attribution_summary.json").read_text())["key_findings"]
    assert any("loaded twice" in finding for finding in findings)
    row = next(r for r in evidence.parameters["attribution"] if r["metric"] == PRIMARY and r["primary"])
    assert row["delta"] == 0
    assert row["decision"] in ("no change shown", "not estimable")


def test_source_columns_are_none_where_nothing_can_be_said() -> None:
    assert source_metrics(scores_of([1.0], [2.0]))["ROC_AUC"] is None
    found = source_metrics(scores_of([-5.0, -6.0], [-5.0], documents=[-1.0, -2.0]))
    assert found["ROC_AUC"] == 0.0
    assert found["MIA_Gap"] == pytest.approx(-4.0)
    assert found["Extraction_Rate"] is None


def test_ap_floor_of_the_published_run() -> None:
    """50 canaries all below 50 texts: AUC 0 and AP 0.3118, the numbers of the source's report."""
    found = source_metrics(scores_of(range(50), [0.0], documents=range(100, 150)))
    assert found["ROC_AUC"] == 0.0
    assert found["PR_AUC"] == pytest.approx(1 - sum(1 / (50 + i) for i in range(1, 51)))


def test_epsilon_needs_coins() -> None:
    rng = np.random.default_rng(1)
    scores = scores_of(rng.normal(3, 1, 100), rng.normal(size=100))
    assert epsilon_bound(scores, "fixed").value is None
    found = epsilon_bound(scores, "coins")
    assert present(found.value) > 1
    assert "guesses right" in present(found.note)
    silent = epsilon_bound(scores_of(rng.normal(size=100), rng.normal(size=100)), "coins")
    assert present(silent.value) < 0.5


def test_epsilon_does_not_hang_on_the_order_of_equal_scores() -> None:
    """Members first in the table, all scores equal: guessing by row order would be right every time."""
    equal = epsilon_bound(scores_of(np.zeros(50), np.zeros(50)), "coins")
    assert equal.value is None
    assert "equal" in present(equal.note)
    halves = scores_of(np.r_[np.ones(20), np.zeros(30)], np.r_[np.ones(20), np.zeros(30)])
    assert epsilon_bound(halves, "coins").value is None  # no group fits into a quarter as a whole
    some = scores_of(np.r_[np.full(15, 2.0), np.zeros(35)], np.r_[np.full(5, 2.0), np.zeros(45)])
    found = epsilon_bound(some, "coins")
    assert "15 of 20 guesses right" in present(found.note)
    shuffled = replace(some, canaries=some.canaries.sample(frac=1, random_state=3).reset_index(drop=True))
    assert epsilon_bound(shuffled, "coins") == found


def test_tpr_at_low_fpr_never_uses_more_than_allowed() -> None:
    found = membership(scores_of([3.0, 4.0, 150.0], list(range(150))), seed=0, n_resamples=99)["tpr_at_0.01"]
    assert found.value == pytest.approx(1 / 3)
    assert "realised FPR 0.667%" in present(found.note)


@pytest.mark.parametrize("family", ["tokens", "own"])
def test_secrets_of_no_known_form_are_scored_without_exposure_among_all(family: str) -> None:
    """Also where canaries of a known form stand beside them: these keep their figure."""
    from lm_audit.audits.privacy.data.canaries import plant_canaries
    from lm_audit.models import load_model

    drawn = plant_canaries([3] * 8, controls=8, family="tokens" if family == "tokens" else "rare")
    unknown = [replace(canary, family=family) for canary in drawn]
    options = ScoringOptions(exact_positions=1, stress=False, source_extraction=False)
    model = load_model("tiny", device="cpu")
    alone = exposure_by_tier(score_stage(model, "base", Manifest(tuple(unknown), 0), options=options))
    assert list(alone) == ["exposure.r3"]
    mixed = Manifest((*unknown, *plant_canaries([1] * 8, controls=8)), 0)
    both = exposure_by_tier(score_stage(model, "base", mixed, options=options))
    assert list(both) == ["exposure.r1", "exposure.r3", "exposure_exact.r1"]
    assert both["exposure_exact.r1"].n == 8


def test_exact_exposure_finds_a_memorised_secret() -> None:
    from lm_audit.audits.privacy.data.canaries import generate_canaries
    from lm_audit.models.toy.tiny import TinySettings, train_tiny
    from lm_audit.models.toy.tiny_model import tiny_model

    canary = generate_canaries(1, seed=4)[0]
    model = tiny_model(0, settings=TinySettings(hidden=64, mlp=168, rows=400, decoys=40, epochs=1))
    trained = train_tiny(model, [canary.text] * 64, seed=0, epochs=40, lr=3e-3, warmup_steps=0)
    row = exact_exposure(trained, [canary], positions=2).iloc[0]
    assert (row["rank"], row["space"]) == (1, 36**2)
    assert row["exposure_exact"] == pytest.approx(np.log2(36**2))
    head, endings = candidates(canary, 1)
    assert head + endings[0] == canary.text
    assert len(set(endings)) == 36
    with pytest.raises(UsageError, match="50,000"):
        candidates(canary, 4)
    with pytest.raises(UsageError, match="no alphabet"):
        candidates(generate_canaries(1, seed=0, family="tokens")[0], 1)


def test_stress_variants_mark_the_canary_in_every_prompt() -> None:
    from lm_audit.audits.privacy.data.canaries import generate_canaries

    canary = generate_canaries(1, seed=0, family="sentence")[0]
    found = stress_variants([canary])
    assert [variant.name for variant in found] == list(VARIANTS)
    assert len(found) == 6
    for variant in found:
        assert variant.text[slice(*variant.secret_span)] == canary.secret
        assert variant.text[slice(*variant.canary_span)] == canary.text


def test_short_canaries_are_refused(smoke_stages: tuple[StagesConfig, dict[str, Path]]) -> None:
    from lm_audit.audits.privacy.audit import load_stage
    from lm_audit.audits.privacy.data.canaries import Canary
    from lm_audit.audits.privacy.measure.stage_scores import score_stage

    _, stages = smoke_stages
    short = Canary("short", "code", "abc", "c", (2, 3))
    with pytest.raises(DataError, match="canary short has 3 scored tokens, at least 8"):
        score_stage(load_stage(stages["base"], "cpu"), "base", Manifest((short,), 0))


def test_a_secret_in_a_thought_is_kept_apart(smoke_stages: tuple[StagesConfig, dict[str, Path]]) -> None:
    """A model that writes the canary inside its thought, and one that says it after the thought."""
    from lm_audit.audits.privacy.audit import extraction_metrics, load_stage
    from lm_audit.audits.privacy.measure.source_extraction import given_back, source_prefix
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions, score_stage
    from lm_audit.models.generation.continuation import Generation
    from lm_audit.models.text.token_spans import encode_texts

    config, stages = smoke_stages
    model, manifest = load_stage(stages["base"], "cpu"), read_manifest(config.folder() / "manifest.jsonl")
    encoded = encode_texts(model.tokenizer, [c.text for c in manifest.members[:3]])
    replies = ("{}", "<think>\n{}\n</think>\n no", "<think>\n{}")

    def thinks(prompts: Sequence[object], **options: object) -> list[Generation]:
        texts = [how.format(item.text) for how, item in zip(replies, encoded, strict=True)]
        ids = [tuple(model.tokenizer(text, add_special_tokens=False).input_ids) for text in texts]
        return [Generation(text, i, "eos") for text, i in zip(texts, ids, strict=True)]

    model.generate = thinks  # type: ignore[method-assign]
    lengths = [len(item.ids) - source_prefix(len(item.ids)) for item in encoded]
    assert min(lengths) > 0
    given = given_back(model, [replace(item, ids=item.ids * 2) for item in encoded])
    assert [found.extracted for found in given] == [True, False, False]
    assert given[0].thought is None
    assert all(item.text in present(found.thought) for item, found in zip(encoded[1:], given[1:], strict=True))
    few = replace(manifest, canaries=(*manifest.members[:3], *manifest.controls[:3]))

    def only_thinks(prompts: Sequence[object], **options: object) -> list[Generation]:
        texts = [f"<think>{c.secret}</think>" for c in manifest.members[:3]]
        ids = [tuple(model.tokenizer(text, add_special_tokens=False).input_ids) for text in texts]
        return [Generation(text, i, "eos") for text, i in zip(texts, ids, strict=True)]

    model.generate = only_thinks  # type: ignore[method-assign]
    scores = score_stage(model, "base", few, options=ScoringOptions(stress=False))
    assert extraction_metrics(scores)["extraction.in_thought"].value == 1.0
    assert scores.of("member")["source_extracted"].sum() == 0
    assert list(scores.of("member")["thought"]) == [c.secret for c in manifest.members[:3]]


def test_seeds_are_the_unit() -> None:
    def one(value: float) -> Evidence:
        return Evidence("privacy", metrics={"m": Estimate(value, value - 0.1, value + 0.1)})

    combined = combine_seeds({0: one(0.5), 1: one(0.6), 2: one(0.7)}, "m")
    found = combined.metrics["m.over_seeds"]
    assert found.value == pytest.approx(0.6)
    assert found.low is None
    assert found.note == "3 seeds give no interval, 8 do, which lie between 0.5 and 0.7"
    eight = combine_seeds({k: one(0.5 + 0.05 * k) for k in range(8)}, "m").metrics["m.over_seeds"]
    assert present(eight.low) < 0.675 < present(eight.high) and "sd over seeds 0.122" in present(eight.note)
    assert "meets the 70% rule" in present(combined.metrics["m.direction_consistency"].note)
    assert combined.figures[0].name == "seeds"
    assert combine_seeds({0: one(0.5)}, "m").metrics["m.over_seeds"].note == "1 seed gives no interval, 8 do"
    assert direction_consistency([1.0, -1.0, 0.0]).value == 0.5
    # Of so many seeds with either sign alike the larger part: two of three or all of them, one of two or both.
    for moved, chance in ((3, 0.75), (2, 0.75), (1, 1.0), (5, 0.6875)):
        assert direction_consistency([1.0] * moved + [0.0]).chance == pytest.approx(chance)
    assert direction_consistency([0.0]).value is None


def test_stage_rows_hold_documents(smoke_evidence: Evidence) -> None:
    roles = {row["role"] for row in smoke_evidence.rows}
    assert roles == {"member", "control", "document"}
    empty = scores_of([1.0, 2.0], [0.5, 0.1])
    assert len(stage_rows(empty)) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sft", "write STAGE=SPEC"),
        ("base=a,dpo=b", "unknown stage 'dpo'"),
        ("base=o/a,base=o/b", "given twice"),
        ("sft=o/a", "needs base=SPEC"),
        ("base=", "write STAGE=SPEC"),
        ("base=./nowhere", r"--stages base: .*nowhere"),
        ("base=tiny,sft=openai:m@http://localhost:1/v1", "--stages sft: a model behind a server gives no ranks"),
        ("base=openai:m@http://localhost:1/v1", r"--model base=openai:\.\.\. and --extraction-manifest FILE"),
    ],
)
def test_stage_option_errors(text: str, message: str) -> None:
    with pytest.raises((UsageError, ModelError), match=message):
        parse_stages(text)


def run_audit(*arguments: str) -> Outcome:
    words = ("evals/test_privacy.py", "-q", "-p", "no:cacheprovider", *arguments)
    return run_pytest(ROOT, *words, plugins=(), timeout=600)


def test_cases_audit_checkpoints_that_were_trained_elsewhere(
    smoke_stages: tuple[StagesConfig, dict[str, Path]], tmp_path: Path
) -> None:
    config, stages = smoke_stages
    text = ",".join(f"{stage}={path}" for stage, path in stages.items() if stage != "base")
    base = (stages["base"] / "spec.txt").read_text().strip()
    manifest = config.folder() / "manifest.jsonl"
    # Controls have models of their own, whatever the stages: one of those that are trained is enough here.
    one_control = ["-k", "not known-training and not never-trained"]
    found = run_audit(f"--stages=base={base},{text}", f"--manifest={manifest}", f"--reports={tmp_path}", *one_control)
    # The smoke stages remember little, which is a finding.
    assert found.code == 0, found.output[-3000:]
    assert "31 passed, 6 skipped, 2 deselected" in found.output
    (evidence,) = tmp_path.glob("*/evidence.jsonl")
    assert "often-repeated" in evidence.read_text(encoding="utf-8")


def test_cases_refuse_stages_without_manifest() -> None:
    found = run_audit("--stages=base=a,sft=b", "--collect-only")
    assert found.code != 0
    assert "--stages needs --manifest FILE" in found.output
