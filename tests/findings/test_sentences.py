"""Sentences of every audit read as sentences, whatever was measured: no exponent, no sign, no "1 times", no "nan"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lm_audit.audits.bias import conclusions as bias
from lm_audit.audits.faithfulness.conclusions import record_gain
from lm_audit.audits.leakage.evidence import conclusions as leakage
from lm_audit.audits.needle.conclusions import cell_findings, length_findings
from lm_audit.audits.privacy.evidence import conclusions as privacy
from lm_audit.evidence import Evidence
from lm_audit.findings import Finding, more_of_hundred, of_hundred, times_text
from lm_audit.stats import Estimate

VALUES = (-300.0, -1.0, -0.02, 0.0, 0.01, 0.5, 1.0, 40.0, 900.0)
SHARES = (0.0, 0.0004, 0.01, 0.5, 0.999, 1.0)
UNREADABLE = re.compile(r"\de[+-]?\d|\bnan\b|\binf\b|\b1 times\b|\bNone\b|[-+−]\d|  |\{|\}| ,|\b(\w+) \1\b")


def made(audit: str, value: float, width: float, **metrics: Any) -> Evidence:
    """Evidence in which every metric has this value, or another one of its own."""
    evidence = Evidence(audit)
    for name, own in metrics.items():
        fields = dict(own) if isinstance(own, dict) else {}
        if fields.get("unit") == "p":
            evidence.metric(name, Estimate(0.001, unit="p"))
            continue
        centre = fields.pop("value", value)
        evidence.metric(name, Estimate(centre, centre - width, centre + width, 40, **{"chance": 0.0, **fields}))
    return evidence


P = {"unit": "p"}


def sized(value: float, width: float) -> Iterator[Finding]:
    """Findings on a difference, of any sign and size."""
    contrast = SimpleNamespace(
        group="a nurse", reference="a pilot", axis="job", p_two_way=0.001, p_sign_flip=0.001,
        difference=Estimate(value, value - width, value + width, 40),
    )  # fmt: skip
    yield from bias.preference_findings([contrast], "en", 0.5)  # type: ignore[list-item]
    yield from bias.swap_findings(made("bias", value, width, **{"bias.counterfactual_excess_shift": {}}), 0.5)
    order = {"leakage.order_effect.logprob": {}, "leakage.order_effect.hits": {"value": max(-1.0, min(1.0, value))}}
    yield from leakage.order_findings(made("leakage", value, width, **order), "mmlu")
    rows = {"leakage.row_order.swap_gain": {}, "leakage.row_order.swap_gain.p": P}
    yield from leakage.row_findings(made("leakage", value, width, **rows), "mmlu")
    yield from privacy.step_findings(made("privacy", value, width, **{"privacy.did": {}}), "Base_to_SFT", "privacy.did")
    tiers = {f"privacy.exposure.r{times}": {"chance": 1.44, "value": abs(value)} for times in (1, 2, 16)}
    yield from privacy.stage_findings(made("privacy", value, width, **tiers), "sft")


def shared(share: float, width: float) -> Iterator[Finding]:
    """Findings on a share or a difference of shares."""
    for sign in (1, -1):
        sets = {
            "bias.winobias_bias": {"unit": "percentage points", "value": 100 * sign * share},
            "bias.winogender_male_female_gap": {"unit": "percentage points", "value": 100 * sign * share},
            "bias.bbq_bias_ambig": {"value": sign * share}, "bias.bbq_generated_bias_ambig": {"value": sign * share},
            "bias.crows_pct_stereotype": {"unit": "%", "value": 100 * share, "chance": 50.0},
            "bias.stereoset_ss": {"unit": "%", "value": 100 * share, "chance": 50.0},
        }  # fmt: skip
        for known in ("winobias", "winogender", "bbq", "bbq_generated", "crows_pairs", "stereoset"):
            yield from bias.benchmark_findings(made("bias", 0.0, width, **sets), known)
        refused = {"bias.refusal_difference.men|women": {"value": 100 * sign * share}}
        groups = [("men", "women", 0.001)]
        yield from bias.refusal_findings(made("bias", 0.0, width, **refused), groups, "en", "gender")
        done = {
            "leakage.completion.exact.above_baseline": {"value": sign * share},
            "leakage.completion.exact.above_baseline.p": P,
        }
        yield from leakage.completion_findings(made("leakage", 0.0, width, **done), "mmlu")
    place = {"leakage.option_order.place": {"chance": 0.5}}
    yield from leakage.place_findings(made("leakage", share, width, **place), "mmlu")
    text = {"leakage.text.min_k20_plus.auc": {"chance": 0.5}, "leakage.text.min_k20_plus.p": P}
    yield from leakage.text_findings(made("leakage", share, width, **text), "mmlu")
    yield from privacy.scored_findings(made("privacy", share, width, **{"privacy.scored.roc_auc": {"chance": 0.5}}))
    stage = {"privacy.roc_auc": {"chance": 0.5}, "privacy.extraction.member.half": {}}
    yield from privacy.stage_findings(made("privacy", share, width, **stage), "dpo_with_canary")
    lengths = {256: Estimate(share, share - width, share + width, 40), 512: Estimate(share, n=3)}
    needles = made("needle", share, width, **{"needle.accuracy": {}})
    needles.metric("needle.accuracy.L000256", lengths[256])
    needles.metric("needle.accuracy.L000512", lengths[512])
    yield from length_findings(needles, lengths, 0.85)
    yield from cell_findings(needles, 256, 50.0, 0.85)
    gained = Evidence("faithfulness")
    even = {"mas_uniform": share + 0.02, "degenerate": False}
    cells = [{"sample": f"s-{k}", "mas": share, "mas_random": share + k / 1e3, **even} for k in range(12)]
    record_gain(gained, cells, "ifr", "token", seed=0)
    yield from gained.findings


@pytest.mark.parametrize("width", [0.001, 0.03, 500.0])
def test_every_sentence_reads_as_one(width: float) -> None:
    every = [one for value in VALUES for one in sized(value, width)]
    every += [one for share in SHARES for one in shared(share, width)]
    assert {one.verdict for one in every} >= ({"cannot tell"} if width == 500 else {"found"})
    for one in every:
        for text in (one.statement, one.found, one.absent, one.unknown, one.size, one.look, one.counted):
            plain = text.replace("−", "", 1) if one.verdict == "not found" and text == one.statement else text
            assert not UNREADABLE.search(plain), (one.key, one.effect, text)
        assert (
            one.look and one.page and one.counted and (one.statement[0].isupper() or one.key.startswith("faithfulness"))
        )
        assert not one.statement.endswith((".", "?")), one.statement


@pytest.mark.parametrize(
    ("nats", "words"),
    [
        (0.0, "1.00"), (1.02, "2.77"), (-1.0, "0.368"), (3.0, "20.1"), (9.417, "12,300"), (14.0, "more than a million"),
        (1e9, "more than a million"), (-14.0, "less than a thousandth"), (-6.0, "0.00248"),
    ],
)  # fmt: skip
def test_a_factor_is_told_in_digits_that_are_read(nats: float, words: str) -> None:
    assert times_text(nats) == words


def test_a_difference_of_shares_is_told_by_its_sign() -> None:
    assert more_of_hundred(0.03, "options") == "3 more of 100 options"
    assert more_of_hundred(-0.025, "options") == "2.5 fewer of 100 options"
    assert more_of_hundred(0.0, "options") == "no more of 100 options"
    assert of_hundred(0.9999) == "100" and of_hundred(0.0004) == "0.04"
