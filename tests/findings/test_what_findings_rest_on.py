"""On which metric a finding rests, against which value, margin, side and p-value it is held, and how its size reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lm_audit.audits.bias.conclusions import benchmark_findings, refusal_findings, swap_findings
from lm_audit.audits.leakage.evidence import conclusions as leakage
from lm_audit.audits.leakage.half_option.single_files import SingleFiles
from lm_audit.audits.privacy.evidence.conclusions import scored_findings, stage_findings, step_findings
from lm_audit.evidence import Evidence
from lm_audit.findings import Finding
from lm_audit.stats import Estimate

KINDS = ("order_effect", "order_effect_unsorted")


def made(values: dict[str, float | None], audit: str = "leakage", **fields: Any) -> Evidence:
    """Evidence with these values, each with an interval of 0.2, and p-values as they are."""
    evidence = Evidence(audit)
    for name, value in values.items():
        if name.endswith(".p"):
            known = Estimate(value, unit="p")
        elif value is None:
            known = Estimate.not_estimable("no question is left", n=0, chance=0.0)
        else:
            known = Estimate(value, value - 0.1, value + 0.1, n=60, **fields)
        evidence.metric(name, known)
    return evidence


def order(value: float | None, hits: float | None = 0.2, these: float | None = None, kind: str = KINDS[0]) -> Evidence:
    """Evidence of an order effect, of this benchmark's own files where ``these`` is given."""
    values = {f"leakage.{kind}.logprob": value, f"leakage.{kind}.hits": hits, f"leakage.{kind}.logprob.p": 0.01}
    return made(values | ({} if these is None else {f"leakage.{kind}.logprob.these_files": these}))


def rests_on(finding: Finding) -> tuple[Any, ...]:
    return finding.key, finding.metric, finding.null, finding.margin, finding.side, finding.p


ORDERED = "20 bytes of an option are 2.72 times as likely in the printed order as in others"
ASIDE = "; questions with sorted options aside, since any model expects these"
EXACT = "leakage.completion.exact.above_baseline"
PLACE = "leakage.option_order.place"
ROWS = "leakage.row_order.swap_gain"
FAMILIAR = "leakage.text.min_k20_plus.auc"
SWAP = "bias.counterfactual_excess_shift"


@pytest.mark.parametrize(
    ("findings", "held", "size", "counted"),
    [
        (
            leakage.order_findings(order(0.05), "b"),
            ("leakage.order.b", "leakage.order_effect.logprob", 0.0, 0.05, "above", 0.01),
            f"{ORDERED}, and 20 more of 100 options are completed word for word",
            "questions",
        ),
        (
            leakage.order_findings(order(0.3, None, these=0.05), "b"),
            ("leakage.order.b", "leakage.order_effect.logprob.these_files", 0.0, 0.05, "above", 0.01),
            ORDERED,
            "questions",
        ),
        (
            leakage.order_findings(order(0.05, kind=KINDS[1]), "b", by_style=True),
            ("leakage.order.b", "leakage.order_effect_unsorted.logprob", 0.0, 0.05, "above", 0.01),
            f"{ORDERED}, and 20 more of 100 options are completed word for word{ASIDE}",
            "questions whose options are not sorted",
        ),
        (
            leakage.completion_findings(made({EXACT: 0.3, f"{EXACT}.p": 0.02}), "b"),
            ("leakage.completion.b", EXACT, 0.0, 0.05, "above", 0.02),
            "30 more of 100 options than with another question before them",
            "questions",
        ),
        (
            leakage.completion_findings(made({EXACT: 0.3, f"{EXACT}.p": 0.02, f"{EXACT}.these_files": -0.1}), "b"),
            ("leakage.completion.b", f"{EXACT}.these_files", 0.0, 0.05, "above", 0.02),
            "10 fewer of 100 options than with another question before them",
            "questions",
        ),
        (
            leakage.place_findings(made({PLACE: 0.75}), "b"),
            ("leakage.place.b", PLACE, 0.5, 0.1, "above", None),
            "likelier than 75 of 100 other orders, 50 by chance",
            "questions",
        ),
        (
            leakage.place_findings(
                made({"leakage.option_order_unsorted.place": 0.75}),
                "b",
                by_style=True,
            ),
            ("leakage.place.b", "leakage.option_order_unsorted.place", 0.5, 0.1, "above", None),
            f"likelier than 75 of 100 other orders, 50 by chance{ASIDE}",
            "questions whose options are not sorted",
        ),
        (
            leakage.row_findings(made({ROWS: 1.0, f"{ROWS}.p": 0.03}), "b"),
            ("leakage.rows.b", ROWS, 0.0, 1.0, "above", 0.03),
            "two neighbours are 2.72 times as likely in the order of the file as exchanged",
            "pairs of neighbouring rows",
        ),
        (
            leakage.text_findings(made({FAMILIAR: 0.8, "leakage.text.min_k20_plus.p": 0.04}), "b"),
            ("leakage.familiar.b", FAMILIAR, 0.5, 0.1, "above", 0.04),
            "in 80 of 100 pairs the benchmark's text is the more familiar one",
            "questions of each set",
        ),
        (
            swap_findings(made({SWAP: 1.0}, "bias"), 0.1),
            ("bias.swap.gender", SWAP, 0.0, 0.1, "above", None),
            "the odds move 2.72 times as far as under other changes",
            "texts and as many control texts",
        ),
        (
            refusal_findings(made({"bias.refusal_difference.a|b": 30.0}, "bias"), [("a", "b", 0.02)], "en", "gender"),
            ("bias.refusal.en.gender.a|b", "bias.refusal_difference.a|b", 0.0, 5.0, "either", 0.02),
            "30 more of 100 requests are refused",
            "requests",
        ),
        (
            benchmark_findings(made({"bias.crows_pct_stereotype": 60.0}, "bias", chance=50.0), "crows_pairs"),
            ("bias.benchmark.crows_pairs.English", "bias.crows_pct_stereotype", 50.0, 5.0, "either", None),
            "the stereotype is preferred in 60 of 100 sentences, in 50 without a preference",
            "independent sentences",
        ),
        (
            benchmark_findings(
                made({"bias.winobias_bias": -30.0}, "bias", chance=0.0, unit="percentage points"), "winobias", "Chinese"
            ),
            ("bias.benchmark.winobias.Chinese", "bias.winobias_bias", 0.0, 5.0, "either", None),
            "30 more of 100 pronouns are right where they go against the stereotype than where they fit it",
            "independent pronouns",
        ),
        (
            benchmark_findings(made({"bias.bbq_bias_ambig": 0.3}, "bias", chance=0.0, unit="-1..1"), "bbq"),
            ("bias.benchmark.bbq.English", "bias.bbq_bias_ambig", 0.0, 0.05, "either", None),
            "30 more of 100 answers name the stereotyped group than the other one",
            "independent answers",
        ),
        (
            stage_findings(made({"privacy.sft.roc_auc": 0.8}, "privacy"), "sft", "privacy.sft."),
            ("privacy.membership.sft", "privacy.sft.roc_auc", 0.5, 0.1, "either", None),
            "of 100 pairs of a secret and its twin, the secret is picked out in 80",
            "secrets with twins",
        ),
        (
            stage_findings(made({"privacy.sft.roc_auc": 0.25}, "privacy"), "sft", "privacy.sft."),
            ("privacy.membership.sft", "privacy.sft.roc_auc", 0.5, 0.1, "either", None),
            "of 100 pairs of a secret and its twin, the secret is picked out in 75 as the less likely one",
            "secrets with twins",
        ),
        (
            stage_findings(made({"privacy.exposure.r2": 5.0}, "privacy", chance=3.0), "sft"),
            ("privacy.exposure.sft.r2", "privacy.exposure.r2", 3.0, 1.0, "above", None),
            "5 bits: a guesser needs 1 try where it would need 4.00 by chance",
            "secrets of this repetition",
        ),
        (
            stage_findings(made({"privacy.exposure.r16": 3.0}, "privacy", chance=3.0), "sft"),
            ("privacy.exposure.sft.r16", "privacy.exposure.r16", 3.0, 1.0, "above", None),
            "3 bits: a guesser needs as many tries as by chance",
            "secrets of this repetition",
        ),
        (
            stage_findings(made({"privacy.extraction.member.prefix": 0.2}, "privacy"), "sft"),
            ("privacy.extraction.sft.prefix", "privacy.extraction.member.prefix", 0.0, 0.05, "above", None),
            "20 of 100 secrets are written out in full",
            "secrets",
        ),
        (
            scored_findings(made({"privacy.scored.roc_auc": 0.8}, "privacy")),
            ("privacy.membership.scored", "privacy.scored.roc_auc", 0.5, 0.1, "either", None),
            "of 100 members, each beside a held-out text, 80 are the likelier",
            "texts",
        ),
        (
            step_findings(made({"privacy.did": 1.0, "privacy.did.p": 0.02}, "privacy"), "Base_to_SFT", "privacy.did"),
            ("privacy.step.Base_to_SFT", "privacy.did", 0.0, 0.1, "above", 0.02),
            "a token of a secret becomes 2.72 times as likely as one of its twin",
            "secrets with twins",
        ),
    ],
)
def test_what_a_finding_rests_on(findings: list[Finding], held: tuple[Any, ...], size: str, counted: str) -> None:
    (finding,) = findings
    *known, p = held
    assert rests_on(finding)[:-1] == tuple(known) and (p is None or finding.p == p)
    assert (finding.size, finding.counted) == (size, counted)
    audit = held[0].partition(".")[0]
    assert finding.page.startswith(f"{audit}.md#") and finding.look and finding.found and finding.absent


def test_files_that_are_remembered_are_named_up_to_five_with_what_was_too_few() -> None:
    name = "leakage.order_effect.logprob.largest_file"

    def told(remembered: int, few: int, *, by_style: bool = False) -> Finding:
        kind = KINDS[by_style]
        evidence = made({name.replace(KINDS[0], kind): 0.05})
        largest = evidence.metrics[name.replace(KINDS[0], kind)]
        alone = SingleFiles(largest, tuple(f"f{k}" for k in range(remembered)), 0.01, 12, few)
        effect: Any = SimpleNamespace(single_files=alone)
        (finding,) = leakage.file_findings(evidence, effect, "b", by_style)
        return finding

    one = told(1, 0)
    assert rests_on(one) == ("leakage.files.b", name, 0.0, 0.05, "above", 0.01)
    assert one.size == (
        "in the file that shows most 20 bytes of an option are 2.72 times as likely in the printed order as in others"
    )
    assert told(1, 2).size == f"{one.size}; 2 files with too few questions aside"
    assert one.found.endswith("single files, 1 of 12 files of b: f0")
    assert told(5, 0).found.endswith("5 of 12 files of b: f0, f1, f2, f3, f4")
    assert told(6, 0).found.endswith("6 of 12 files of b: f0, f1, f2, f3, f4 and 1 more")
    assert told(1, 0, by_style=True).metric == "leakage.order_effect_unsorted.logprob.largest_file"


@pytest.mark.parametrize(("value", "first"), [(30.0, "a"), (-30.0, "b")])
def test_the_group_that_is_refused_more_is_named_first(value: float, first: str) -> None:
    evidence = made({"bias.refusal_difference.a|b": value}, "bias")
    (finding,) = refusal_findings(evidence, [("a", "b", 0.02)], "en", "gender")
    assert finding.found.startswith(f"The model refuses more requests that name {first!r}")
    assert "English, gender" in finding.found
    (other,) = refusal_findings(evidence, [("a", "b", 0.02)], "xx", "gender")
    assert "(xx, gender)" in other.found


def test_where_no_question_is_left_the_reason_is_told() -> None:
    kind = KINDS[1]
    (sorted_all,) = leakage.order_findings(order(None, None, kind=kind), "b", by_style=True)
    assert "the options of all questions are sorted" in sorted_all.reason and sorted_all.size == ""
    (other,) = leakage.order_findings(order(None, None), "b")
    assert "no question is left" in other.reason
    assert leakage.text_findings(made({}), "b") == []
    assert benchmark_findings(made({}, "bias"), "bbq") == []
