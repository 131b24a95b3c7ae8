"""Equivariance, determinism and nesting of bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypedDict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import bootstrap

from lm_audit.stats import (
    bootstrap_ci,
    bootstrap_clustered,
    bootstrap_crossed,
    bootstrap_paired,
    bootstrap_two_sample,
    clopper_pearson,
    share_difference,
    wilson,
)
from lm_audit.stats.bootstrap.resampling import index_batches, paired_batches
from lm_audit.stats.estimate import Estimate
from tests.present import present

# Whole numbers keep ties between resamples exact under translation and scaling, so that the limits are too.
SAMPLES = st.lists(st.integers(-50, 50), min_size=2, max_size=25).map(lambda xs: np.array(xs, dtype=np.float64))
SIDES = st.lists(st.integers(-50, 50), min_size=8, max_size=14).map(lambda xs: np.array(xs, dtype=np.float64))
SEEDS = st.integers(0, 2**32 - 1)
METHODS = st.sampled_from(["BCa", "percentile"])
Method = Literal["BCa", "percentile"]
STATISTICS = st.sampled_from(["mean", "median"])
B = 199


class Options(TypedDict, total=False):
    """How a bootstrap is done."""

    statistic: str
    method: str
    n_resamples: int
    seed: int


def limits(estimate: Estimate) -> NDArray[np.float64]:
    return np.array([estimate.value, estimate.low, estimate.high], dtype=np.float64)


@given(SAMPLES, STATISTICS, METHODS, SEEDS, st.integers(-1000, 1000))
def test_translation(data: NDArray[np.float64], statistic: str, method: str, seed: int, shift: int) -> None:
    options: Options = {"statistic": statistic, "method": method, "n_resamples": B, "seed": seed}
    moved = bootstrap_ci(data + shift, **options)
    assert limits(moved) == pytest.approx(limits(bootstrap_ci(data, **options)) + shift, abs=1e-8)


@given(SAMPLES, STATISTICS, METHODS, SEEDS, st.integers(-60, 60))
def test_scale(data: NDArray[np.float64], statistic: str, method: str, seed: int, exponent: int) -> None:
    options: Options = {"statistic": statistic, "method": method, "n_resamples": B, "seed": seed}
    scaled = bootstrap_ci(data * 2.0**exponent, **options)
    assert limits(scaled) == pytest.approx(limits(bootstrap_ci(data, **options)) * 2.0**exponent, rel=1e-9)


@given(SAMPLES, STATISTICS, METHODS, SEEDS)
def test_sign(data: NDArray[np.float64], statistic: str, method: str, seed: int) -> None:
    options: Options = {"statistic": statistic, "method": method, "n_resamples": B, "seed": seed}
    value, low, high = limits(bootstrap_ci(data, **options))
    assert limits(bootstrap_ci(-data, **options)) == pytest.approx([-value, -high, -low], abs=1e-8)


@given(SAMPLES, SAMPLES, SEEDS, st.integers(-100, 100))
def test_two_sample_differences_move_with_each_side(
    members: NDArray[np.float64], controls: NDArray[np.float64], seed: int, shift: int
) -> None:
    # Percentiles only: the difference of two means is rounded, and BCa counts ties with it.
    options: Options = {"statistic": "mean_difference", "method": "percentile", "n_resamples": B, "seed": seed}
    here = limits(bootstrap_two_sample(members, controls, **options))
    assert limits(bootstrap_two_sample(members + shift, controls, **options)) == pytest.approx(here + shift, abs=1e-8)
    assert limits(bootstrap_two_sample(members, controls + shift, **options)) == pytest.approx(here - shift, abs=1e-8)


@given(SAMPLES, METHODS, SEEDS, st.floats(0.5, 0.98), st.floats(0.001, 0.019))
def test_wider_at_higher_confidence(
    data: NDArray[np.float64], method: str, seed: int, confidence: float, more: float
) -> None:
    options: Options = {"method": method, "n_resamples": B, "seed": seed}
    narrow = bootstrap_ci(data, confidence=confidence, **options)
    wide = bootstrap_ci(data, confidence=confidence + more, **options)
    assert present(wide.low) <= present(narrow.low) and present(narrow.high) <= present(wide.high)


@given(st.data(), st.integers(1, 300), st.floats(0.5, 0.98), st.floats(0.001, 0.019))
def test_intervals_of_shares(data: st.DataObject, n: int, confidence: float, more: float) -> None:
    k = data.draw(st.integers(0, n))
    for function in (clopper_pearson, wilson):
        narrow, wide = function(k, n, confidence), function(k, n, confidence + more)
        assert 0 <= present(wide.low) <= present(narrow.low) <= k / n <= present(narrow.high) <= present(wide.high) <= 1
        mirrored = function(n - k, n, confidence)
        assert (mirrored.low, mirrored.high) == pytest.approx(
            (1 - present(narrow.high), 1 - present(narrow.low)), abs=1e-9
        )


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_a_difference_of_shares_is_antisymmetric(n: int, m: int, data: st.DataObject) -> None:
    k, h = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    forth, back = share_difference(k, n, h, m), share_difference(h, m, k, n)
    assert present(forth.low) <= present(forth.value) <= present(forth.high)
    assert (back.value, back.low, back.high) == pytest.approx(
        (-present(forth.value), -present(forth.high), -present(forth.low)), abs=1e-12
    )


@given(SAMPLES, SAMPLES, METHODS, SEEDS)
def test_same_seed_same_answer(data: NDArray[np.float64], other: NDArray[np.float64], method: str, seed: int) -> None:
    labels = [int(x) % 3 for x in data]
    table = np.add.outer(data, other)
    calls: tuple[Callable[[], Estimate], ...] = (
        lambda: bootstrap_ci(data, method=method, n_resamples=B, seed=seed),
        lambda: bootstrap_two_sample(data, other, "roc_auc", method=method, n_resamples=B, seed=seed),
        lambda: bootstrap_clustered(data, labels, method=method, n_resamples=B, seed=seed),
        lambda: bootstrap_crossed(table, n_resamples=B, seed=seed),
    )
    for call in calls:
        assert call() == call()


@given(SAMPLES, STATISTICS, METHODS, SEEDS)
def test_equals_scipy(data: NDArray[np.float64], statistic: str, method: Method, seed: int) -> None:
    functions: dict[str, Callable[..., NDArray[np.float64]]] = {"mean": np.mean, "median": np.median}
    ours = bootstrap_ci(data, statistic, method=method, n_resamples=B, seed=seed)
    # scipy warns and gives NaN where BCa is not defined; there ours has a note.
    assume(ours.note is None or ours.note.startswith("only"))
    theirs = bootstrap((data,), functions[statistic], method=method, n_resamples=B, rng=np.random.default_rng(seed))
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-9, abs=1e-9)


@given(SAMPLES, SAMPLES, SEEDS)
@settings(max_examples=30)
def test_two_sample_bca_equals_scipy(members: NDArray[np.float64], controls: NDArray[np.float64], seed: int) -> None:
    def difference(x: NDArray[np.float64], y: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        return np.asarray(x.mean(axis=axis) - y.mean(axis=axis), dtype=np.float64)

    ours = bootstrap_two_sample(members, controls, "mean_difference", method="BCa", n_resamples=B, seed=seed)
    assume(ours.note is None or ours.note.startswith("only"))
    theirs = bootstrap((members, controls), difference, n_resamples=B, rng=np.random.default_rng(seed))
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-9, abs=1e-9)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 400), SEEDS, st.integers(1, 2000))
def test_batches_do_not_change_the_stream(n: int, m: int, n_resamples: int, seed: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lm_audit.stats.bootstrap.resampling.BATCH_INDICES", size)
        alone = np.concatenate(list(index_batches(np.random.default_rng(seed), n, n_resamples)))
        pairs = list(paired_batches(seed, n, m, n_resamples))
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, n, (n_resamples, n)), rng.integers(0, m, (n_resamples, m))
    assert np.array_equal(alone, first)
    assert np.array_equal(np.concatenate([pair[0] for pair in pairs]), first)
    assert np.array_equal(np.concatenate([pair[1] for pair in pairs]), second)


@given(SAMPLES, SEEDS)
def test_clusters_of_one_are_plain_resampling(data: NDArray[np.float64], seed: int) -> None:
    clustered = bootstrap_clustered(data, range(len(data)), method="percentile", n_resamples=B, seed=seed)
    plain = bootstrap_ci(data, method="percentile", n_resamples=B, seed=seed)
    assert limits(clustered) == pytest.approx(limits(plain), abs=1e-9)


@given(SAMPLES, SEEDS)
def test_relabelled_clusters_change_nothing(data: NDArray[np.float64], seed: int) -> None:
    labels = [int(x) % 4 for x in data]
    renamed = [("a", label * 7) for label in labels]
    assert bootstrap_clustered(data, labels, n_resamples=B, seed=seed) == bootstrap_clustered(
        data, renamed, n_resamples=B, seed=seed
    )


@given(SIDES, SIDES, SEEDS)
def test_named_and_callable_mean_of_a_crossed_table_agree(
    rows: NDArray[np.float64], columns: NDArray[np.float64], seed: int
) -> None:
    table = np.multiply.outer(rows, columns)
    named = bootstrap_crossed(table, n_resamples=49, seed=seed)
    called = bootstrap_crossed(table, lambda cells: float(cells.mean()), n_resamples=49, seed=seed)
    assert limits(named) == pytest.approx(limits(called), rel=1e-9, abs=1e-9)


@given(SAMPLES, SAMPLES, METHODS, SEEDS)
def test_a_paired_interval_is_that_of_the_differences(
    a: NDArray[np.float64], b: NDArray[np.float64], method: str, seed: int
) -> None:
    size = min(len(a), len(b))
    pair = a[:size], b[:size]
    options: Options = {"method": method, "n_resamples": B, "seed": seed}
    assert bootstrap_paired(*pair, **options) == bootstrap_ci(pair[1] - pair[0], **options)
