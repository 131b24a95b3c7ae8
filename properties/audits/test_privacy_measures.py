"""P7 to P10 and P12: what the audit computes from scores, in the corrected wording."""

from __future__ import annotations

import io
import json
import math

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lm_audit.audits.privacy.attribution.changes import PRIMARY, Resampling, did_row
from lm_audit.audits.privacy.attribution.transitions import attribute_leak, shares, stage_frames
from lm_audit.audits.privacy.files.outputs import attribution_summary
from lm_audit.audits.privacy.measure.membership import auc_estimate
from lm_audit.audits.privacy.measure.stress import stability
from lm_audit.audits.privacy.stages.stage_names import PRIMARY_TRANSITION, STAGES, TRANSITIONS
from lm_audit.evidence import Evidence
from lm_audit.stats import bootstrap_ci, decide, paired_effect
from tests.present import present

COMMON = settings(deadline=None)
HEAVY = settings(max_examples=20, deadline=None)
"""For what takes a tenth of a second an example (files, resampling)."""
finite = st.floats(-1e6, 1e6, allow_nan=False, width=32)
groups = st.lists(finite, min_size=2, max_size=30).map(np.array)


@COMMON
@given(groups, groups)
@example(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
def test_p7_auc_is_antisymmetric_monotone_and_oriented(
    members: NDArray[np.float64], twins: NDArray[np.float64]
) -> None:
    """P7: "AUC in [0, 1]" is true of a wrong sign too; these say which side is which."""
    value = auc_estimate(members, twins).value
    assert 0 <= present(value) <= 1
    assert math.isclose(present(value) + present(auc_estimate(twins, members).value), 1, abs_tol=1e-12)
    assert math.isclose(
        present(value), present(auc_estimate(np.arctan(members / 1e6), np.arctan(twins / 1e6)).value), abs_tol=1e-12
    )
    wins = (members[:, None] > twins[None]).sum() + 0.5 * (members[:, None] == twins[None]).sum()
    assert math.isclose(present(value), wins / (len(members) * len(twins)), abs_tol=1e-12)
    if members.min() > twins.max():
        assert value == 1


@COMMON
@given(groups)
def test_p7_identical_groups_have_auc_one_half(values: NDArray[np.float64]) -> None:
    """P7: the same multiset on both sides tells nothing."""
    assert math.isclose(present(auc_estimate(values, values).value), 0.5, abs_tol=1e-12)


def evidence_of(values: dict[str, list[tuple[float, float]]]) -> Evidence:
    """Rows of members and twins with one score each, for every stage."""
    evidence = Evidence("privacy", parameters={"seed": 0})
    for stage, pairs in values.items():
        for i, (member, twin) in enumerate(pairs):
            for role, value in (("member", member), ("control", twin)):
                row = {"item": f"{stage}/{role}{i}", "stage": stage, "role": role, "canary_id": f"{role}{i}"}
                evidence.rows.append(row | {"mean_logprob": value, "span_mean_logprob": value, "repetitions": 1})
    return evidence


logprobs = st.floats(-20, 0, allow_nan=False, width=32)
stage_values = st.integers(5, 8).flatmap(
    lambda n: st.fixed_dictionaries(
        {stage: st.lists(st.tuples(logprobs, logprobs), min_size=n, max_size=n) for stage in STAGES}
    )
)


@HEAVY
@given(stage_values)
def test_p8_deltas_are_after_minus_before_and_survive_the_files(
    values: dict[str, list[tuple[float, float]]],
) -> None:
    """P8: deltas equal the difference of the stages' means, in CSV and strict JSON alike; duplicates cannot hide."""
    import pandas as pd

    evidence = evidence_of(values)
    table = attribute_leak(evidence, n_resamples=99)
    back = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    assert list(back.columns) == list(table.columns)
    summary = json.loads(json.dumps(attribution_summary(evidence, table), allow_nan=False))
    assert not table.duplicated(["transition", "metric"]).any()
    for name, (before, after) in TRANSITIONS.items():
        row = back[(back["transition"] == name) & (back["metric"] == "Avg_LogProb")].iloc[0]
        truth = np.mean([m for m, _ in values[after]]) - np.mean([m for m, _ in values[before]])
        assert math.isclose(row["delta"], truth, abs_tol=1e-9)
        assert math.isclose(summary["stage_deltas"][f"{name}/Avg_LogProb"]["delta"], truth, abs_tol=1e-9)
        did = table[(table["transition"] == name) & (table["metric"] == PRIMARY)].iloc[0]
        change = [
            np.mean([pair[side] for pair in values[after]]) - np.mean([pair[side] for pair in values[before]])
            for side in (0, 1)
        ]
        assert math.isclose(did["delta"], change[0] - change[1], abs_tol=1e-9)


@COMMON
@given(stage_values, st.floats(-5, 5, width=32))
def test_a_shift_of_every_text_leaves_the_primary_figure_alone(
    values: dict[str, list[tuple[float, float]]], shift: float
) -> None:
    """Why it is a difference in differences: what training does to all texts alike cancels out."""
    moved = values | {"dpo_with_canary": [(m + shift, t + shift) for m, t in values["dpo_with_canary"]]}
    deltas = []
    for one in (values, moved):
        frames = stage_frames(evidence_of(one))
        before, after = (frames[stage] for stage in TRANSITIONS[PRIMARY_TRANSITION])
        deltas.append(did_row(before, after, Resampling(0, 99))["delta"])
    assert math.isclose(*deltas, abs_tol=1e-6)


@COMMON
@given(st.lists(finite, min_size=5, max_size=40), st.integers(0, 100))
@example([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, *[math.nextafter(0.1, 1)] * 8], 42)
def test_p9_interval_and_mean_up_to_rounding(values: list[float], seed: int) -> None:
    """P9: "the interval holds the mean" is false in floating point (near-constant data); true up to rounding of the
    scale.

    For BCa it is no theorem even so; what must hold is order, determinism, sign symmetry and a flagged zero width.
    """
    found = bootstrap_ci(values, seed=seed, n_resamples=499, method="percentile")
    assert found == bootstrap_ci(values, seed=seed, n_resamples=499, method="percentile")
    slack = 1e-12 * max(1e-300, max(map(abs, values)))
    mirrored = bootstrap_ci([-v for v in values], seed=seed, n_resamples=499, method="percentile")
    assert math.isclose(present(found.low), -present(mirrored.high), abs_tol=slack, rel_tol=1e-12)
    assert present(found.low) <= present(found.high)
    assert min(values) - slack <= present(found.low)
    assert present(found.high) <= max(values) + slack
    if len(set(values)) == 1:
        assert found.low == found.high
        assert found.note


@HEAVY
@given(st.lists(st.tuples(finite, finite), min_size=2, max_size=30))
@example([(1.0, 2.0)] * 5)
@example([(0.0, 1e-320)] * 5)
@example([(0.0, 1e200), (1e155, -1e200)])
def test_p10_effect_has_the_sign_of_the_difference_or_is_not_estimable(pairs: list[tuple[float, float]]) -> None:
    """P10: false for the source's formula, which answers 0 for a constant difference; ours says None."""
    a, b = np.array(pairs).T
    found = paired_effect(a, b)
    if found.d_z is None:
        assert found.mean_diff is None or found.mean_diff != 0
        assert found.note
    elif found.mean_diff is not None and found.d_z != 0:
        assert math.copysign(1, found.d_z) == math.copysign(1, found.mean_diff)
        swapped = paired_effect(b, a)
        assert swapped.d_z is None or math.isclose(swapped.d_z, -found.d_z, rel_tol=1e-9)


bounds = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))


@settings(max_examples=300, deadline=None)
@given(bounds, bounds, bounds)
@example(math.nan, math.nan, math.nan)
@example(0.0, 1.0, 0.2)
@example(-1.0, 0.0, 0.5)
@example(0.1, 0.2, 0.8)
def test_p12_decision_is_three_valued(low: float | None, high: float | None, effect: float | None) -> None:
    """P12: false for NaN in the source (significant, negligible); a missing input gives "not estimable" here."""

    def known(value: float | None) -> bool:
        return value is not None and math.isfinite(value)

    assume(not (known(low) and known(high) and present(low) > present(high)))
    found = decide(low, high, effect)
    if known(low) and known(high):
        assert found.statistically_significant == (present(low) > 0 or present(high) < 0)
    else:
        assert found.statistically_significant is None
    if known(effect):
        edges = [(0.8, "large"), (0.5, "medium"), (0.2, "small"), (0.0, "negligible")]
        assert found.category == next(name for edge, name in edges if abs(present(effect)) >= edge)
        assert found.practically_significant == (abs(present(effect)) >= 0.2)
    else:
        assert found.category == "not_estimable"
        assert found.practically_significant is None


@COMMON
@given(st.dictionaries(st.sampled_from(["SFT", "DPO"]), finite, min_size=1), st.booleans())
def test_shares_exist_only_where_they_mean_something(deltas: dict[str, float], certain: bool) -> None:
    """Opposite changes have no shares (the source prints -961% and +1061%); else shares are in [0, 1] and sum to 1."""
    found = shares(deltas, certain)
    if found is not None:
        assert certain
        assert math.isclose(sum(found.values()), 1, abs_tol=1e-9)
        assert all(0 <= share <= 1 for share in found.values())


@COMMON
@given(st.lists(st.lists(st.floats(-20, -0.01), min_size=6, max_size=6), min_size=1, max_size=10))
def test_stability_lies_between_0_and_1_and_is_1_for_equal_variants(table: list[list[float]]) -> None:
    """A canary that scores the same in every prompt is stable; stability ignores the unit of the scores."""
    value = stability(table)
    assert 0 <= present(value) <= 1
    assert math.isclose(present(stability([[row[0]] * 6 for row in table])), 1, abs_tol=1e-9)
    assert math.isclose(present(stability([[2 * v for v in row] for row in table])), present(value), abs_tol=1e-9)
