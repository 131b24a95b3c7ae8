"""What the audits' controls make of numbers just within and just beyond what they demand; no model is asked."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, mannwhitneyu

from lm_audit.audits.faithfulness.controls.deletion_control import SCORES, judged
from lm_audit.audits.faithfulness.controls.known_sources import few, most
from lm_audit.audits.leakage.averages import mean_of
from lm_audit.audits.leakage.controls.expected import negative_control, positive_control
from lm_audit.audits.leakage.controls.planted import Half, Planted, made_up_items
from lm_audit.audits.leakage.controls.published_hits import PublishedHalf
from lm_audit.audits.leakage.half_option.conditions import Effect
from lm_audit.audits.privacy.controls.trained_controls import judge_planted, judge_pretended
from lm_audit.audits.privacy.measure.blind import blind_baseline, separation, separation_p
from lm_audit.audits.privacy.measure.stage_scores import StageScores
from lm_audit.evidence import Control, Evidence
from lm_audit.models.toy.criterion import TrainingRecord
from lm_audit.stats.estimate import Estimate

N = 24
ITEMS = made_up_items(2 * N, seed=0)
RNG = np.random.default_rng(0)
EFFECTS = np.sort(RNG.normal(1.0, 0.2, N))
RECORD = TrainingRecord("mean log-probability", -0.1, 120, 1.0, ((120, -0.09),))


def p_value(p: float) -> Estimate:
    return Estimate(p, n=N, confidence=None, unit="p")


def effect(values: np.ndarray[Any, Any], p: float) -> Effect:
    mean = mean_of(values, ["made-up"] * N, unit="nats a byte", seed=0, chance=0.0, kind="differences")
    return Effect(mean, p_value(p), p_value(p), p_value(0.1))


def half(p: float, values: np.ndarray[Any, Any], before: float, first: int) -> Half:
    untouched = 0.01 * RNG.normal(size=N)
    items = tuple(ITEMS[first : first + N])
    published = PublishedHalf(4.0, 0.1, p, p, ())
    return Half(items, effect(values, p), effect(untouched, before), values, untouched, p, p, 0.0002, 0.01, published)


FOUND_BY = {"seen": 1e-5, "unseen": 0.5}
SOUND = Planted(
    half(1e-5, EFFECTS, 0.4, 0), half(0.5, 0.01 * RNG.normal(size=N), 0.6, N), RECORD,
    completion_p=1e-5, membership_p=1e-6,
)  # fmt: skip


def control(evidence: Evidence) -> Control:
    assert evidence.control is not None
    return evidence.control


def with_half(side: str, **changes: Any) -> Planted:
    return replace(SOUND, **{side: replace(getattr(SOUND, side), **changes)})


def test_sound_leakage_controls_pass_and_say_what_they_saw() -> None:
    positive, negative = control(positive_control(SOUND)), control(negative_control(SOUND))
    assert (positive.role, positive.passed, negative.role, negative.passed) == ("positive", True, "negative", True)
    assert "order effect: p 1e-05" in positive.observed and "after 120 steps" in positive.observed
    assert "8 tests" in positive.expected and "6 tests" in negative.expected
    assert "order effect, untouched model: p 0.4" in negative.observed


@pytest.mark.parametrize(
    ("field", "named"),
    [
        ("placed", "order effect"), ("first_p", "rank of the published order"), ("swap_p", "order of neighbours"),
        ("completion_p", "completion"), ("membership_p", "likelihood against other questions"),
    ],
)  # fmt: skip
def test_each_test_of_planted_questions_must_lie_below_one_in_a_thousand(field: str, named: str) -> None:
    for p, passed in ((0.000999, True), (0.001, False), (0.5, False)):
        if field == "placed":
            found = with_half("seen", effect=replace(SOUND.seen.effect, placed=p_value(p)))
        else:
            changed: Any = {field: p}
            found = replace(SOUND, **changed) if hasattr(SOUND, field) else with_half("seen", **changed)
        verdict = control(positive_control(found))
        assert verdict.passed is passed
        assert verdict.observed.startswith(f"not so: {named}: p ") is not passed
    absent = control(positive_control(with_half("seen", effect=replace(SOUND.seen.effect, placed=None))))
    assert not absent.passed and absent.observed.startswith("not so: order effect: p 1")


def test_an_effect_that_was_there_before_training_is_not_planted() -> None:
    verdict = control(positive_control(with_half("seen", untouched_differences=EFFECTS - 1e-3 * RNG.normal(size=N))))
    assert not verdict.passed and "its growth by training" in verdict.observed


@pytest.mark.parametrize("field", ["placed", "untouched", "first_p", "swap_p", "score_p", "order_p"])
def test_no_test_of_questions_that_were_not_planted_may_reach_its_level(field: str) -> None:
    """0.00025 for the pairs of neighbours and 0.00015 for the other five: 0.001 together."""
    level = 0.00025 if field == "swap_p" else 0.00015
    for p, passed in ((level + 1e-6, True), (level, False), (0.0, False)):
        if field in ("score_p", "order_p"):
            changed: Any = {field: p}
            found = with_half("unseen", published=replace(SOUND.unseen.published, **changed))
        elif field == "untouched":
            found = with_half("seen", untouched=replace(SOUND.seen.untouched, placed=p_value(p)))
        elif field == "placed":
            found = with_half("unseen", effect=replace(SOUND.unseen.effect, placed=p_value(p)))
        else:
            found = with_half("unseen", **{field: p})
        verdict = control(negative_control(found))
        assert verdict.passed is passed and verdict.observed.startswith("not so: ") is not passed


@pytest.mark.parametrize(("side", "judge"), [("seen", positive_control), ("unseen", negative_control)])
def test_scores_that_a_plain_pass_does_not_give_and_questions_all_alike_fail_both_controls(
    side: str, judge: Any
) -> None:
    for apart, passed in ((0.0099, True), (0.01, False), (float("nan"), False), (float("inf"), False)):
        verdict = control(judge(with_half(side, apart=apart)))
        assert verdict.passed is passed
        assert ("differ from plain forward passes" in verdict.observed) is not passed
    few = np.repeat(EFFECTS[: N // 2 - 1], 3)[:N]
    exactly = np.r_[EFFECTS[: N // 2], np.full(N - N // 2, EFFECTS[0])]
    unknown = np.where(np.arange(N) < N // 2 - 1, EFFECTS, np.nan)
    for values, passed in ((few, False), (exactly, True), (unknown, False)):
        verdict = control(judge(with_half(side, differences=values, effect=effect(values, FOUND_BY[side]))))
        assert ("different effects of 24 questions" in verdict.observed) is not passed
        assert passed or not verdict.passed


def test_the_other_half_does_not_decide() -> None:
    assert control(positive_control(with_half("unseen", apart=1.0))).passed
    assert control(negative_control(with_half("seen", apart=1.0))).passed


def test_the_rows_of_both_halves_are_kept() -> None:
    evidence = positive_control(SOUND)
    assert [row["half"] for row in evidence.rows] == ["seen"] * N + ["unseen"] * N
    assert evidence.rows[0]["effect"] == EFFECTS[0] and evidence.rows[0]["item"] == ITEMS[0].key
    name = "leakage.control.order_effect"
    assert evidence.metrics[name].value == SOUND.seen.effect.mean.value
    assert negative_control(SOUND).metrics[name].value == SOUND.unseen.effect.mean.value
    assert evidence.parameters["training_steps"] == 120 and evidence.parameters["criterion"] == -0.1
    growth = {(row["half"], row["model"]): row["p"] for row in evidence.figures[0].data["data"]["values"]}
    assert growth == {
        ("seen", "untouched"): 0.4, ("seen", "trained"): 1e-5, ("unseen", "untouched"): 0.6, ("unseen", "trained"): 0.5,
    }  # fmt: skip


def deletion_rows(n: int = 40, **hits: int) -> list[dict[str, float]]:
    """``n`` samples; of each comparison so many come out as named, the others the other way round."""
    wanted = {"first": n, "last": n, "below": n // 2} | hits
    rows = []
    for k in range(n):
        row: dict[str, float] = {}
        for score in SCORES:
            row |= {
                f"{score}_chance": 0.5,
                f"{score}_first": 0.1 if k < wanted["first"] else 0.5,
                f"{score}_last": 0.9 if k < wanted["last"] else 0.5,
                f"{score}_random": 0.4 if k < wanted["below"] else 0.6,
            }
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    ("side", "said"),
    [
        ("first", "the planted order is not below random ones"),
        ("last", "the order with the planted letters last is not above random ones"),
    ],
)
def test_of_40_samples_31_must_tell_a_good_order_from_a_random_one(side: str, said: str) -> None:
    assert judged(deletion_rows()).passed
    for hits, passed in ((31, True), (30, False), (0, False)):
        verdict = judged(deletion_rows(**{side: hits}))
        assert verdict.passed is passed
        assert passed is bool(binomtest(hits, 40, 0.5, alternative="greater").pvalue < 0.001)
        assert passed or all(f"{score}: {said}" in verdict.observed for score in SCORES)
        assert verdict.role == "negative"


@pytest.mark.parametrize("hits", [0, 7, 8, 9, 20, 31, 32, 33, 40])
def test_random_attributions_may_lie_on_neither_side_of_random_orders(hits: int) -> None:
    verdict = judged(deletion_rows(below=hits))
    more = max(hits, 40 - hits)
    alike = bool(binomtest(more, 40, 0.5, alternative="greater").pvalue >= 0.001 / 20)
    assert verdict.passed is alike
    assert alike or "rise: random attributions and random orders are not alike; mas: " in verdict.observed
    assert not alike or verdict.observed == "random attributions score like random orders, between both planted orders"
    # Of 47 samples 37 have a chance of 0.000049, which is just below that limit.
    assert not judged(deletion_rows(47, below=37)).passed and judged(deletion_rows(47, below=36)).passed


def test_random_attributions_that_give_what_random_orders_give_are_alike() -> None:
    assert judged([row | {f"{score}_random": 0.5 for score in SCORES} for row in deletion_rows()]).passed


def test_half_of_the_samples_are_neither_most_nor_few() -> None:
    for yes, words in (
        (40, (True, False)),
        (31, (True, False)),
        (30, (False, False)),
        (9, (False, True)),
        (0, (False, True)),
    ):
        answers = [k < yes for k in range(40)]
        assert (most(answers), few(answers)) == words
    assert (most([]), few([])) == (False, False)


@pytest.mark.parametrize(("apart", "passed"), [(0.009, True), (0.011, False), (float("inf"), False)])
def test_deletion_scores_that_plain_passes_do_not_give_fail_the_control(apart: float, passed: bool) -> None:
    rows = deletion_rows()
    rows[2] = rows[2] | {"apart": apart}
    verdict = judged([{**rows[0], "apart": 0.0}, *rows[1:]])
    assert verdict.passed is passed and ("plain forward passes by" in verdict.observed) is not passed


def test_one_score_that_is_wrong_is_enough_and_too_few_samples_tell_nothing() -> None:
    for score in SCORES:
        rows = [row | {f"{score}_first": 0.5} for row in deletion_rows()]
        verdict = judged(rows)
        assert not verdict.passed and verdict.observed.startswith(f"{score}: ") and verdict.observed.count(":") == 1
    few = judged(deletion_rows(12))
    assert not few.passed and "12 samples are too few" in few.observed
    assert judged(deletion_rows(15)).passed


MEMORY: Any = SimpleNamespace(steps=90, loss=0.08)


def scores(members: Any, twins: Any, extracted: tuple[int, int] = (16, 0)) -> StageScores:
    """Scores of members and twins, of which so many come back from a third of their secret."""
    roles = ["member"] * len(members) + ["control"] * len(twins)
    flags = [k < extracted[0] for k in range(len(members))] + [k < extracted[1] for k in range(len(twins))]
    table = pd.DataFrame({"canary_id": [f"c{k}" for k in range(len(roles))], "role": roles})
    table = table.assign(span_mean_logprob=np.r_[members, twins].astype(float), extracted_third=flags)
    return StageScores("control", table, pd.DataFrame(), pd.DataFrame(), "none")


TWINS = np.linspace(-6.0, -4.0, 200)
FOUND = np.linspace(-0.2, -0.01, 16)


@pytest.mark.parametrize(
    ("made", "failing"),
    [
        (scores(FOUND, TWINS), []),
        (scores(FOUND, TWINS, (7, 2)), []),
        (scores(FOUND, TWINS, (2, 2)), ["extracted"]),
        (scores(FOUND, TWINS, (0, 0)), ["extracted"]),
        (scores(FOUND, TWINS, (16, 200)), ["extracted"]),
        (scores(TWINS[::12][:16], TWINS), ["AUC", "exposure"]),
        (scores(FOUND - 9, TWINS), ["AUC", "exposure"]),
    ],
)
def test_a_memorised_canary_must_be_found_by_auc_exposure_and_extraction(made: StageScores, failing: list[str]) -> None:
    evidence = judge_planted(made, MEMORY)
    verdict = control(evidence)
    told = {part.split(" ")[0]: part.endswith("NOT FOUND") for part in verdict.observed.split("; ")}
    assert told == {name: name in failing for name in ("AUC", "exposure", "extracted")}
    assert (verdict.role, verdict.passed) == ("positive", not failing)
    assert evidence.parameters == {"members": 16, "steps": 90, "worst_secret_nats": 0.08}
    assert {"privacy.control_auc", "privacy.control_exposure", "privacy.control_extraction"} <= set(evidence.metrics)
    assert {name: source.statistic for name, source in evidence.sources.items()} == {
        "privacy.control_auc": "auc", "privacy.control_exposure": "exposure", "privacy.control_extraction": "mean",
    }  # fmt: skip
    assert {name: evidence.metrics[name].better for name in evidence.sources} == {
        "privacy.control_auc": "neither", "privacy.control_exposure": "higher", "privacy.control_extraction": "higher",
    }  # fmt: skip
    assert len(evidence.rows) == 216 and "90 steps" in evidence.notes[0]


def test_the_page_says_in_full_what_the_privacy_controls_expect_and_saw() -> None:
    planted = control(judge_planted(scores(FOUND, TWINS), MEMORY, ["a fault", "another"]))
    assert planted.expected == (
        "16 canaries that were memorised have an AUC above 1/2 (p < 0.001), an exposure above chance (1.417 bits), and "
        "come back from a third of their secrets more often than their twins"
    )
    first, second, third, *faults = planted.observed.split("; ")
    p = mannwhitneyu(FOUND, TWINS, method="exact").pvalue
    assert first == f"AUC 1 (p = {p:.4g}): found" and faults == ["a fault", "another"] and not planted.passed
    assert second.startswith("exposure ") and second.endswith(" bits: found")
    assert third == "extracted 1 [0.7941, 1] of members, 0 [0, 0.01828] of twins: found"
    fresh = control(judge_pretended(scores(TWINS + 0.1, TWINS), MEMORY, ["a fault"]))
    p = mannwhitneyu(TWINS + 0.1, TWINS).pvalue
    told = separation(TWINS + 0.1, TWINS)
    assert fresh.expected == "200 canaries that no training file held are not told from 200 others (p >= 0.001)"
    assert fresh.observed == f"AUC {told.auc.value:.4g} (p = {p:.4g}); {told.reach}; a fault" and not fresh.passed


@pytest.mark.parametrize(("members", "twins"), [(15, 200), (16, 199)])
def test_a_trained_control_that_lost_canaries_fails(members: int, twins: int) -> None:
    assert not control(judge_planted(scores(FOUND[:members], TWINS[:twins]), MEMORY)).passed


@pytest.mark.parametrize(("members", "twins"), [(199, 200), (200, 199)])
def test_a_control_of_canaries_that_pretend_fails_where_it_lost_some(members: int, twins: int) -> None:
    assert not control(judge_pretended(scores(TWINS[:members], TWINS[:twins]), MEMORY)).passed


@pytest.mark.parametrize(("judge", "other"), [(positive_control, "unseen"), (negative_control, "seen")])
def test_the_leakage_controls_are_of_two_equal_halves(judge: Any, other: str) -> None:
    names = ("items", "differences", "untouched_differences")
    lost = with_half(other, **{name: getattr(getattr(SOUND, other), name)[:-2] for name in names})
    verdict = control(judge(lost))
    assert not verdict.passed and f"22 rows (half {other}) where 23 were asked for" in verdict.observed


def test_the_page_says_in_full_what_a_control_expects() -> None:
    assert judged(deletion_rows()).expected == (
        "random attributions score like random orders, in about half of the samples below and above them; these lie "
        "between the planted order and its reverse in more than half of the samples, in RISE, MAS and RISE+AP (exact "
        "limits of error 0.001), and log-likelihoods are those of plain forward passes"
    )
    assert control(negative_control(SOUND)).expected == (
        "p > 0.00015 (neighbours: 0.00025) in 6 tests where nothing was planted (a false alarm in at most 1 of 1,000)"
    )
    two = control(positive_control(replace(SOUND, completion_p=0.5, membership_p=0.25))).observed
    assert two.startswith("not so: ") and "completion: p 0.5; likelihood against other questions: p 0.25. " in two


@pytest.mark.parametrize("sizes", [(19, 40), (40, 19), (5, 8), (20, 20), (20, 40), (3, 3)])
def test_two_groups_are_counted_out_where_one_is_small(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sizes)
    first, second = rng.normal(0.6, 1.0, sizes[0]), rng.normal(0.0, 1.0, sizes[1])
    found = separation_p(list(first), list(second))
    method: Any = "exact" if min(sizes) < 20 else "asymptotic"
    assert found.value == pytest.approx(mannwhitneyu(first, second, method=method).pvalue, rel=1e-12)
    assert (found.n, found.unit, found.confidence) == (sum(sizes), "p", None)
    assert (found.method == "Mann-Whitney, exact") == (method == "exact")
    # Whole numbers are what they are; equal scores, in one group or between two, have no such count.
    assert separation_p([1, 2, 3], [10, 20, 30, 40]).value == pytest.approx(2 / 35)
    for tied in ([*first[:-1], first[0]], [*first[:-1], second[0]]):
        assert separation_p(tied, second).value == mannwhitneyu(tied, second, method="asymptotic").pvalue


def test_scores_that_are_no_numbers_tell_no_groups_apart() -> None:
    for wrong in (math.nan, math.inf, -math.inf):
        found = separation([wrong, *FOUND[1:]], TWINS)
        assert found.p.value is None or not math.isnan(found.p.value)
        assert not found.shown or wrong == math.inf
    lost = blind_baseline(scores([math.nan, *FOUND[1:]], TWINS))
    assert lost.verdict == "refuse" and "cannot be estimated" in lost.reason
    told = separation(FOUND, TWINS)
    assert told.auc.better == "target:0.5" and told.counted == "canaries"
    assert "so few canaries cannot show" in separation([1.0], [2.0]).reach
    assert "so few texts cannot show" in separation([1.0], [2.0], counted="texts").reach


@pytest.mark.parametrize(("shift", "passed"), [(0.0, True), (0.1, True), (2.5, False), (-2.5, False)])
def test_canaries_that_only_pretend_must_not_be_told_from_twins(shift: float, passed: bool) -> None:
    verdict = control(judge_pretended(scores(TWINS + shift, TWINS[::-1]), MEMORY))
    assert (verdict.role, verdict.passed) == ("negative", passed)
    assert "is noticed in 99 of 100" in verdict.observed
    assert blind_baseline(scores(TWINS + shift, TWINS[::-1])).verdict == ("ok" if passed else "refuse")
    nothing = control(judge_pretended(scores(np.zeros(0), TWINS), MEMORY))
    assert not nothing.passed


@pytest.mark.parametrize(
    ("members", "twins", "verdict", "reason"),
    [
        (TWINS, TWINS[::-1], "ok", "does not tell members from twins: AUC 0.500, p = 1.0000; an AUC of"),
        (TWINS + 0.15, TWINS, "warn", "may tell members from twins: AUC 0.57"),
        (TWINS + 2.0, TWINS, "refuse", "already tells members from twins: AUC 1.000"),
        (TWINS - 2.0, TWINS, "refuse", "already tells members from twins: AUC 0.000"),
        (TWINS[:3], TWINS[:4], "refuse", "nobody can tell whether the base model is blind"),
        (np.zeros(0), TWINS, "refuse", "the base model's AUC cannot be estimated"),
    ],
)
def test_a_base_model_must_be_blind_and_what_could_be_noticed_is_said(
    members: Any, twins: Any, verdict: str, reason: str
) -> None:
    found = blind_baseline(scores(members, twins))
    assert found.verdict == verdict and reason in found.reason
    assert found.auc == found.found.auc
    if verdict == "warn":
        assert found.reason.endswith("(calibrated scores, differences in differences)")
