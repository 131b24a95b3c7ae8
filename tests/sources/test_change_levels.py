"""The tests of a change keep their level: exactly where all exchanges can be tried, by a short simulation elsewhere.

``benchmarks/coverage_changes.py`` is the long version.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from lm_audit.report.comparison.interval_difference import difference_of
from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.units import RowTable
from lm_audit.stats import bootstrap_ci, mean_interval
from tests.present import present

Rows = list[dict[str, Any]]
SEEDS = 200


def change(source: MetricSource, a: Rows, b: Rows, **options: Any) -> Change:
    """The change, which there is."""
    found = change_between(source, RowTable(a), RowTable(b), **options)
    assert isinstance(found, Change)
    return found


def roles(values: np.ndarray[Any, Any]) -> Rows:
    """Items in two groups, alternating."""
    return [{"item": f"i{k}", "role": "mc"[k % 2], "v": float(v)} for k, v in enumerate(values)]


@pytest.mark.parametrize(
    "source",
    [
        MetricSource.mean("v"),
        MetricSource.members("auc", "v", {"role": "m"}, {"role": "c"}),
        MetricSource.difference("v", {"role": "m"}, {"role": "c"}),
        MetricSource.members("average_precision", "v", {"role": "m"}, {"role": "c"}),
        MetricSource.members("exposure", "v", {"role": "m"}, {"role": "c"}),
        pytest.param(
            MetricSource.members("tpr_at_fpr", "v", {"role": "m"}, {"role": "c"}, options={"fpr": "0.25"}),
            marks=pytest.mark.slow,
        ),
        MetricSource("max_min", "v", options={"group": "role"}),
        MetricSource("median", "v"),
    ],
    ids=lambda source: source.statistic,
)
def test_of_all_exchanges_of_two_runs_no_more_than_the_level_are_significant(source: MetricSource) -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, 8))
    p, floors = [], []
    for pattern in product((False, True), repeat=8):
        swapped = np.array(pattern)
        a, b = np.where(swapped, second, first), np.where(swapped, first, second)
        found = change(source, roles(a), roles(b))
        p.append(found.p or 0.0)
        floors.append(found.floor)
    for level in (0.01, 0.05, 0.1, 0.25):
        assert np.mean(np.array(p) <= level + 1e-12) <= level
    # What is told of the smallest p is true of all the runs that these might have been, however they came out.
    assert set(floors) == {min(p)}


def test_an_effect_on_one_side_is_not_taken_for_spread() -> None:
    """Members move by 2 and twins not at all, 12 of each: held against unscaled exchanges p was 0.01 and more."""
    rng = np.random.default_rng(7)
    base, noise = rng.normal(size=24), rng.normal(size=(2, 24)) / 2
    a, b = roles(base + noise[0]), roles(base + noise[1] + 2.0 * (np.arange(24) % 2 == 0))
    found = change(MetricSource.difference("v", {"role": "m"}, {"role": "c"}), a, b, resolution=1e-4)
    assert found.p is not None and found.p < 0.001


def rejections(make: Any, source: MetricSource) -> float:
    """The share of p-values of at most 5 % among seeded pairs of runs."""
    found = [change(source, *make(np.random.default_rng([5, seed])), seed=seed).p for seed in range(SEEDS)]
    return float(np.mean([p is not None and p <= 0.05 for p in found]))


def test_crossed_factors_keep_the_level() -> None:
    def make(rng: np.random.Generator) -> tuple[Rows, Rows]:
        shift = rng.normal(size=(8, 1)) + rng.normal(size=(1, 8)) + rng.normal(size=(8, 8))
        a: Rows = [{"item": f"{r}/{c}", "r": r, "c": c, "v": 0.0} for r in range(8) for c in range(8)]
        return a, [{**row, "v": float(shift[row["r"], row["c"]])} for row in a]

    # Three standard errors above 5.5 %; cells as if independent reject in 40 %.
    assert rejections(make, MetricSource.mean("v", clusters=("r", "c"))) <= 0.055 + 3 * 0.016
    assert rejections(make, MetricSource.mean("v")) > 0.2


@pytest.mark.slow
def test_a_disparity_of_groups_that_are_alike_is_no_change_though_the_second_run_is_noisier() -> None:
    """Nine groups over 6 x 12 cells: the largest of nine noisy means is further off, and 19 % were called a change."""

    def make(rng: np.random.Generator, gain: float = 0.0) -> tuple[Rows, Rows]:
        shape = (9, 6, 12)
        base, noise = rng.normal(size=shape), 0.5 * (rng.normal(size=(9, 6, 1)) + rng.normal(size=(9, 1, 12)))
        after = base + noise + rng.normal(size=shape) + gain * (np.arange(9) == 0)[:, None, None]
        return tuple(  # type: ignore[return-value]
            [
                {"item": f"{g}/{r}/{c}", "g": f"g{g}", "r": r, "c": c, "v": float(value)}
                for (g, r, c), value in np.ndenumerate(run)
            ]
            for run in (base, after)
        )

    source = MetricSource("max_min", "v", options={"group": "g"}, clusters=("r", "c"))
    found = [change(source, *make(np.random.default_rng([6, seed])), seed=seed).p for seed in range(60)]
    assert float(np.mean([present(p) <= 0.05 for p in found])) <= 0.055 + 2 * 0.029
    a, b = make(np.random.default_rng(7), 3.0)
    assert present(change(source, a, b).p) < 0.01
    # With a cell missing the rows and columns that are whole decide; with hardly any left nothing does.
    assert present(change(source, a[1:], b).p) < 0.05
    assert change(source, [row for row in a if row["r"] != 5 or row["g"] == "g0"], b).p is None


@pytest.mark.parametrize("missing", [0, 9])
def test_what_both_factors_have_is_taken_off_the_sum_once(missing: int) -> None:
    """Changes that are sums of row and column: nothing is held twice, and cells as they are would take off a tenth."""
    rng = np.random.default_rng(11)
    shift = rng.normal(size=(12, 1)) + rng.normal(size=(1, 12))
    a: Rows = [{"item": f"{r}/{c}", "r": r, "c": c, "v": 0.0} for r in range(12) for c in range(12)]
    a = [a[k] for k in sorted(rng.permutation(144)[missing:])]
    b = [{**row, "v": float(shift[row["r"], row["c"]])} for row in a]
    both = change(MetricSource.mean("v", clusters=("r", "c")), a, b)
    one, other = (change(MetricSource.mean("v", clusters=(name,)), a, b) for name in "rc")
    assert both.error is not None and one.error is not None and other.error is not None
    assert both.error**2 == pytest.approx(one.error**2 + other.error**2, rel=1e-9 if not missing else 0.02)


def test_draws_of_one_request_change_sides_together() -> None:
    def make(rng: np.random.Generator) -> tuple[Rows, Rows]:
        base, own = rng.normal(size=30), rng.normal(size=(2, 30))
        runs = []
        for part in own:
            answer = (base + part)[:, None] + 0.5 * rng.normal(size=(30, 5)) > 0
            runs.append([{"item": f"{g}/{k}", "g": g, "v": int(answer[g, k])} for g in range(30) for k in range(5)])
        return runs[0], runs[1]

    assert rejections(make, MetricSource.mean("v", clusters=("g",))) <= 0.055 + 3 * 0.016
    assert rejections(make, MetricSource.mean("v")) > 0.15


def test_an_effect_of_one_item_sd_is_found_on_twelve_items() -> None:
    def make(rng: np.random.Generator) -> tuple[Rows, Rows]:
        base = rng.normal(size=12)
        return roles(base), roles(base + 1 + rng.normal(size=12))

    assert rejections(make, MetricSource.mean("v")) >= 0.8


@pytest.mark.parametrize("n", [5, 12, 24])
def test_intervals_alone_keep_the_level(n: int) -> None:
    rejected = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng([n, seed])
        sides = [bootstrap_ci(rng.normal(size=n), method="BCa", n_resamples=499, seed=seed) for _ in "ab"]
        p = difference_of(sides[0], sides[1])[1]
        rejected += p is not None and p <= 0.05
    assert rejected / SEEDS <= 0.055 + 3 * 0.016


def test_interval_and_test_of_a_change_agree() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        base = rng.normal(size=14)
        for source in (MetricSource.mean("v"), MetricSource("median", "v")):
            found = change(source, roles(base), roles(base + 0.5 + rng.normal(size=14)))
            low, high = found.difference.low, found.difference.high
            assert found.p is not None and low is not None and high is not None
            assert (found.p <= 0.05) == (low > 0 or high < 0)


def test_intervals_of_few_values_and_clusters_cover() -> None:
    rng = np.random.default_rng(2)
    covered: dict[str, list[bool]] = {}
    for seed in range(300):
        label = np.repeat(np.arange(6), rng.integers(1, 12, 6))
        cases = {
            "8 normal": (rng.normal(size=8), None, 0.0),
            "8 exponential": (rng.exponential(size=8), None, 1.0),
            "8 binary": ((rng.random(8) < 0.1).astype(float), None, 0.1),
            "6 clusters": (rng.normal(size=6)[label] + rng.normal(size=len(label)), label, 0.0),
        }
        for name, (values, clusters, truth) in cases.items():
            found = mean_interval(values, clusters, n_resamples=399, seed=seed)
            if found.low is not None and found.high is not None:
                covered.setdefault(name, []).append(found.low <= truth <= found.high)
    for name, hits in covered.items():
        # 93 % less three standard errors.
        assert len(hits) > 250 and np.mean(hits) >= 0.93 - 3 * 0.0147, (name, np.mean(hits))
