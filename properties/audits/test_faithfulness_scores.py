"""What holds for every deletion path: bounds, invariances, references."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.deletion.approximations import approximations
from lm_audit.audits.faithfulness.deletion.curves import curve_from_scores
from lm_audit.audits.faithfulness.deletion.metrics import (
    deletion_groups,
    deletion_order,
    faithfulness_scores,
    normalised_score,
    recovery,
)
from tests.present import present

Path = tuple[NDArray[np.float64], NDArray[np.float64], int]
"""Attribution of each feature, the likelihood after each step of deletion, how many steps were asked for."""

finite = st.floats(-50, 50, width=32)


@st.composite
def paths(draw: st.DrawFn) -> Path:
    features, steps = draw(st.integers(1, 12)), draw(st.integers(0, 15))
    weights = draw(hnp.arrays(np.float64, features, elements=finite))
    count = len(deletion_groups(range(features), steps)) + 1
    scores = draw(hnp.arrays(np.float64, count, elements=finite))
    return weights, scores, steps


@given(paths())
def test_scores_are_finite_and_bounded(path: Path) -> None:
    weights, scores, steps = path
    found = faithfulness_scores(scores, weights, steps)
    assert 0.0 <= found.rise <= 1.0 and 0.0 <= found.mas <= 1.0
    assert found.rise_ap >= found.rise - 1e-9 and np.isfinite(found.rise_ap)
    assert (np.diff(found.response) <= 0).all()
    assert found.degenerate == bool(scores[-1] >= scores[0])
    assert not found.degenerate or scores[-1] == scores[0] or found.rise == 0.0


@given(paths(), st.floats(0.1, 10), st.floats(-100, 100))
def test_scores_do_not_depend_on_the_unit_of_the_likelihood(path: Path, factor: float, shift: float) -> None:
    weights, scores, steps = path
    assume(abs(scores[0] - scores[-1]) > 1e-3)
    first = faithfulness_scores(scores, weights, steps)
    second = faithfulness_scores(scores * factor + shift, weights, steps)
    np.testing.assert_allclose(second.response, first.response, atol=1e-6)


@given(paths(), st.floats(0.1, 10))
def test_scores_do_not_depend_on_the_scale_of_the_attribution(path: Path, factor: float) -> None:
    weights, scores, steps = path
    assume(abs(weights.sum()) > 1e-2 and deletion_order(weights * factor) == deletion_order(weights))
    first, second = (faithfulness_scores(scores, w, steps) for w in (weights, weights * factor))
    np.testing.assert_allclose(second.density, first.density, atol=1e-6)


@given(paths())
def test_the_order_is_stable_and_complete(path: Path) -> None:
    weights, _, steps = path
    order = deletion_order(weights)
    assert sorted(order) == list(range(len(weights)))
    for first, second in pairwise(order):
        assert weights[first] > weights[second] or (weights[first] == weights[second] and first < second)
    assert [feature for group in deletion_groups(order, steps) for feature in group] == order


@given(hnp.arrays(np.float64, st.integers(1, 12), elements=st.floats(0, 5, width=32)), st.data())
def test_strict_approximations_have_no_error(weights: NDArray[np.float64], data: st.DataObject) -> None:
    scores = data.draw(hnp.arrays(np.float64, len(weights) + 1, elements=finite))
    strict = curve_from_scores(weights, scores, len(weights))
    for one in approximations(strict, top=(len(weights),), chunks=(len(weights),)):
        assert abs(one.rise_error) < 1e-9 and abs(one.mas_error) < 1e-9 and one.sequences == len(scores)


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=finite), st.data())
def test_recovery_is_a_share_bounded_by_what_fits(weights: NDArray[np.float64], data: st.DataObject) -> None:
    gold = data.draw(st.sets(st.integers(0, len(weights) - 1), min_size=1))
    fraction = data.draw(st.floats(0.01, 1.0))
    found = recovery(weights, gold, fraction)
    count = max(1, int(np.ceil(fraction * len(weights))))
    assert found is not None and 0.0 <= found <= min(1.0, count / len(gold)) + 1e-12
    assert recovery(weights, gold, 1.0) == 1.0
    marked = np.isin(np.arange(len(weights)), list(gold)).astype(float)
    assert recovery(marked, gold, fraction) == min(count, len(gold)) / len(gold)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_normalised_score_is_0_at_random_and_1_at_the_oracle(value: float, random: float, oracle: float) -> None:
    if abs(random - oracle) < 1e-12:
        assert normalised_score(value, random, oracle) is None
        return
    assume(abs(random - oracle) > 1e-6)
    assert normalised_score(random, random, oracle) == 0.0
    assert abs(present(normalised_score(oracle, random, oracle)) - 1.0) < 1e-6
