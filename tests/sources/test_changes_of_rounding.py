"""A change that is none but for rounding: under every exchange it is dust, of which the observed may be the largest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.moved import rounding_of
from lm_audit.sources.units import RowTable, units_of

Values = np.ndarray
N = 42
ROWS, COLUMNS = (list(map(str, index.ravel())) for index in np.indices((6, 7)))
PAIRS = [k // 2 for k in range(N)]
SIDES, HALVES, WEIGHTS = ["first", "second"] * (N // 2), [k // 22 for k in range(N)], [0.1, 0.7] * (N // 2)
TWO = {"first": {"side": "first"}, "second": {"side": "second"}}


def run(values: Values, name: str = "i") -> RowTable:
    """Items in pairs of which one is on each side, in two groups of whole pairs, and in crossed rows and columns."""
    columns = zip(values, ROWS, COLUMNS, PAIRS, SIDES, HALVES, WEIGHTS, strict=False)
    names = ("v", "r", "c", "pair", "side", "half", "w")
    return RowTable(
        [{"item": f"{name}{k}", "d": 3} | dict(zip(names, row, strict=True)) for k, row in enumerate(columns)]
    )


def change(source: MetricSource, a: RowTable, b: RowTable, **options: Any) -> Change:
    found = change_between(source, a, b, resolution=0.01, **options)
    assert isinstance(found, Change)
    return found


@pytest.mark.parametrize(
    ("source", "n"),
    [
        (MetricSource.mean("v", scale=100), 10),  # all exchanges
        (MetricSource.mean("v", scale=100), 30),  # some of them
        (MetricSource.mean("v", scale=-1, offset=49.5), 10),
        (MetricSource.mean("v", scale=100, clusters=("r", "c")), N),
        (MetricSource("median", "v", scale=100), 11),
        (MetricSource.mean("v", offset=1e9), 10),
        (MetricSource.mean("v", offset=-1e9, scale=-1), 30),
    ],
)
def test_as_far_beyond_the_target_as_short_of_it_is_no_change(source: MetricSource, n: int) -> None:
    rng = np.random.default_rng(n)
    target = 50.0 if source.scale == 100 else 49.0 if source.offset == 49.5 else source.offset + source.scale / 2
    for _ in range(40):
        a = rng.random(n).round(2)
        found = change(source, run(a), run(1 - a), target=target)
        assert found.p == 1.0 and not found.identical
    nearer = change(source, run(a), run(1.02 - a), target=target)
    assert nearer.p is not None and nearer.p < 1


CANCELLING = {"pair": 1.0, "weighted": -0.1 / 0.7, "opposite": -1.0}


@pytest.mark.parametrize(
    ("source", "second"),
    [
        (MetricSource("difference", "v", clusters=("pair",), options=TWO), "pair"),
        (MetricSource.mean("v", clusters=("pair",), options={"weight": "w"}), "weighted"),
        (MetricSource("sum", "v", clusters=("pair",)), "opposite"),
        (MetricSource("ratio", "v", clusters=("pair",), options={"denominator": "d"}), "opposite"),
        (MetricSource("perplexity", "v", clusters=("pair",)), "opposite"),
        (MetricSource("mean_of_groups", "v", clusters=("pair",), options={"group": "half"}), "opposite"),
        (MetricSource("max_min", "v", clusters=("pair",), options={"group": "half"}), "opposite"),
    ],
)
@pytest.mark.parametrize("level", [0.0, 1000.0])
def test_what_cancels_in_every_cluster_is_no_change(source: MetricSource, second: str, level: float) -> None:
    """One item of each pair moves by as much as the other takes back."""
    level = 10.0 if source.statistic == "perplexity" and level else level
    rng = np.random.default_rng(3)
    for _ in range(40):
        a, steps = rng.normal(level, 1, 20), np.repeat(rng.normal(size=10), 2)
        steps[1::2] *= CANCELLING[second]
        found = change(source, run(a), run(a + steps))
        assert (found.p, found.floor, found.difference.value) == (1.0, 1.0, 0.0) and not found.identical


def _mirrored(rng: np.random.Generator) -> tuple[Values, Values]:
    a = rng.random(20).round(2)
    return a, 1 - a


def _constant(rng: np.random.Generator) -> tuple[Values, Values]:
    return np.full(8, 0.3), np.full(8, 0.7)


@pytest.mark.parametrize("make", [_mirrored, _constant])
def test_other_items_as_far_from_the_target_are_no_change(
    make: Callable[[np.random.Generator], tuple[Values, Values]],
) -> None:
    a, b = make(np.random.default_rng(0))
    assert change(MetricSource.mean("v", scale=100), run(a), run(b, "j"), target=50.0).p == 1.0


@pytest.mark.parametrize("statistic", ["mean", "sum", "median"])
def test_a_small_change_of_large_values_is_one(statistic: str) -> None:
    """A millionth of the values, beside which a millionth of that is dust."""
    a = 1000 + np.random.default_rng(1).normal(0, 1e-4, 11)
    found = change(MetricSource(statistic, "v"), run(a), run(a + 2e-3), target=0.0)
    assert found.identical  # what single precision rounds
    found = change(MetricSource(statistic, "v"), run(a), run(a + 2e-2), target=0.0)
    assert (
        found.p is not None
        and found.p < 0.05
        and found.difference.value == pytest.approx(0.22 if statistic == "sum" else 0.02)
    )


def test_scores_of_any_size_have_an_auc() -> None:
    """Ranks know no unit: the largest score is no measure of what rounding does to them."""
    source = MetricSource("auc", "v", options={"members": {"side": "first"}, "controls": {"side": "second"}})
    a = 1e15 * np.random.default_rng(2).normal(size=N)
    b = a + np.where(np.arange(N) % 2, 0.0, 3e15)
    found = change(source, run(a), run(b))
    assert found.p is not None and found.p < 0.01 and (found.difference.value or 0.0) > 0.2


def test_other_items_of_one_value_but_for_rounding_are_no_change() -> None:
    """Of all ways to deal them out only the observed one would keep both sums apart."""
    found = change(MetricSource.mean("v"), run(np.full(8, 0.3)), run(np.full(8, 0.1 + 0.2), "j"))
    assert (found.basis, found.p, found.difference.value) == ("two samples", 1.0, 0.0)


@pytest.mark.parametrize(
    ("source", "size"),
    [
        (MetricSource.mean("v"), 5.0),
        (MetricSource("max_min", "v", options={"group": "item"}), 5.0),
        (MetricSource("sum", "v"), 9.0),
        (MetricSource("ratio", "v", options={"denominator": "n"}), 4.5),
        (MetricSource.members("auc", "v", {"item": "i0"}, {"item": "i1"}), 0.25),
    ],
    ids=lambda value: value.statistic if isinstance(value, MetricSource) else "",
)
def test_rounding_is_as_large_as_the_numbers_that_cancel_in_either_run(source: MetricSource, size: float) -> None:
    def units(scale: float) -> Any:
        values = ((3.0, 1.0), (-5.0, -2.0), (1.0, 3.0))
        return units_of(
            source, RowTable([{"item": f"i{k}", "v": scale * v, "n": n} for k, (v, n) in enumerate(values)])
        )

    found = [np.array([0.25]), np.array([-0.1])]
    for both in ((1.0, 0.1), (0.1, 1.0), (1.0, 1.0)):
        assert rounding_of(source, found, *map(units, both)) == pytest.approx(1e-12 * size)


@pytest.mark.parametrize("large", [0, 1], ids=["before", "after"])
def test_a_change_that_is_rounding_of_either_run_is_none(large: int) -> None:
    """Of 1e6 and -1e6 a mean is exact to 1e-7 or so, of the other run's small values to 1e-19."""
    runs = [np.zeros(10), np.zeros(10)]
    runs[large][:2], runs[1 - large][0] = (1e6, -1e6), 5e-6
    found = change(MetricSource.mean("v"), *map(run, runs))
    assert found.difference.value == 0.0
    other = change(MetricSource.mean("v"), run(runs[0]), run(runs[1], "other"))
    assert other.difference.value == 0.0
