"""Two intervals and nothing else: the change, its limits and its p-value, against laws known from elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, t, ttest_ind_from_stats

from lm_audit.report.comparison.interval_difference import difference_of, units_behind
from lm_audit.report.comparison.metric_change import MetricChange
from lm_audit.report.comparison.runs import compare_runs
from lm_audit.runstore.run import read_run
from lm_audit.sources import MetricSource
from lm_audit.stats import mean_interval, studentised_mean
from lm_audit.stats.estimate import Estimate
from tests.report.made_runs import MadeCase, write_run


def mean(value: float, sd: float, n: int, **more: Any) -> Estimate:
    """A mean with Student's interval."""
    half = float(t.ppf(0.975, n - 1)) * sd / math.sqrt(n)
    return replace(Estimate(value, value - half, value + half, n, confidence=0.95, method="t"), **more)


@pytest.mark.parametrize("shift", [0.1, -0.4, 1.0])
def test_of_many_values_the_test_is_welchs(shift: float) -> None:
    a, b = mean(1.0, 1.0, 400), mean(1.0 + shift, 3.0, 900)
    difference, p = difference_of(a, b)
    wanted = ttest_ind_from_stats(1.0, 1.0, 400, 1.0 + shift, 3.0, 900, equal_var=False)
    assert p == pytest.approx(wanted.pvalue, rel=0.02)
    error = math.hypot(1 / 20, 3 / 30)
    assert difference.low == pytest.approx(shift - 1.96 * error, abs=0.002)
    assert difference.high == pytest.approx(shift + 1.96 * error, abs=0.002)


@pytest.mark.parametrize("counts", [(10, 10), (6, 24), (24, 6)])
def test_few_values_have_the_degrees_of_freedom_of_welch_and_satterthwaite(counts: tuple[int, int]) -> None:
    a, b = (Estimate(v, v - h, v + h, n, method="t") for v, h, n in ((0.0, 3.0, counts[0]), (6.0, 1.0, counts[1])))
    _, p = difference_of(a, b)
    df = (9 + 1) ** 2 / (81 / (counts[0] - 1) + 1 / (counts[1] - 1))
    assert p == pytest.approx(2 * t.sf(6 / math.sqrt(10) * t.ppf(0.975, df), df), rel=1e-9)


def test_without_a_count_the_law_is_the_normal_one() -> None:
    a, b = Estimate(0.0, -3.0, 3.0, method="t"), Estimate(6.0, 5.0, 7.0, method="t")
    assert difference_of(a, b)[1] == pytest.approx(2 * norm.sf(6 / math.sqrt(10) * norm.ppf(0.975)), rel=1e-4)
    alone = difference_of(replace(a, n=6), b)[1]
    df = 100 / (81 / 5)
    assert alone == pytest.approx(2 * t.sf(6 / math.sqrt(10) * t.ppf(0.975, df), df), rel=1e-9)


CASE = "t.py::x[m@cpu-c]"
LOPSIDED = Estimate(0.0, -1.0, 4.0, 40, method="t"), Estimate(0.0, -3.0, 2.0, 40, method="t")


@pytest.mark.parametrize("better", [None, "lower", "higher"])
@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("side", [1, -1])
def test_where_a_limit_touches_0_the_p_value_is_5_percent(side: int, bootstrap: bool, better: str | None) -> None:
    """Of lopsided intervals the halves count that look at each other."""
    a, b = (replace(one, better=better, method="BCa bootstrap" if bootstrap else "t") for one in LOPSIDED)
    still, _ = difference_of(a, b)
    assert still.low is not None and still.high is not None
    wider = 1.0
    if bootstrap:
        wider = float(t.ppf(0.975, 39) / norm.ppf(0.975) * math.sqrt(40 / 39))
    assert (still.low, still.high) == pytest.approx((-5.0 * wider, math.hypot(2, 1) * wider))
    needed = -still.low if side > 0 else still.high
    moved = replace(b, **{name: getattr(b, name) + side * needed for name in ("value", "low", "high")})
    touching, p = difference_of(a, moved)
    assert (touching.low if side > 0 else touching.high) == pytest.approx(0.0, abs=1e-12)
    assert p == pytest.approx(0.05, abs=1e-9)


def test_a_bootstrap_interval_is_widened_to_students() -> None:
    n, sd = 10, 2.0
    narrow = float(norm.ppf(0.975)) * sd * math.sqrt((n - 1) / n) / math.sqrt(n)
    found = [
        difference_of(*(Estimate(v, v - narrow, v + narrow, n, method="BCa bootstrap") for v in (0.0, 1.0))),
        difference_of(*(mean(v, sd, n) for v in (0.0, 1.0))),
    ]
    (first, p), (second, q) = found
    assert (first.low, first.high) == pytest.approx((second.low, second.high))
    assert p == pytest.approx(q)


@pytest.mark.parametrize("make", [mean_interval, studentised_mean])
def test_a_bootstrap_t_is_students_already(make: Any) -> None:
    rng = np.random.default_rng(4)
    made = [make(rng.normal(size=10), n_resamples=199, seed=0) for _ in range(2)]
    assert all("bootstrap-t" in one.method for one in made)
    told, plain = difference_of(*made), difference_of(*(replace(one, method="t") for one in made))
    assert (told[0].low, told[0].high, told[1]) == (plain[0].low, plain[0].high, plain[1])


def test_a_bootstrap_interval_of_nobody_knows_how_many_values_is_taken_as_it_is() -> None:
    a, b = (Estimate(v, v - 0.5, v + 0.5, method="BCa bootstrap") for v in (0.0, 1.0))
    difference, _ = difference_of(a, b)
    assert (difference.low, difference.high) == pytest.approx((1 - math.sqrt(0.5), 1 + math.sqrt(0.5)))


def test_the_change_says_its_unit_its_confidence_and_where_it_is_from() -> None:
    a, b = (mean(value, 1.0, 40, unit="nats", confidence=0.9) for value in (0.0, 0.5))
    difference, p = difference_of(a, b)
    assert p is not None
    assert (difference.unit, difference.confidence, difference.method) == ("nats", 0.9, "from the two intervals")
    plain, none = difference_of(a, replace(b, low=None, high=None))
    assert (plain.value, plain.unit, plain.method, none) == (0.5, "nats", "difference", None)


@pytest.mark.parametrize(("first", "second"), [(0.95, 0.9), (0.9, 0.95), (None, None), (0.95, None)])
def test_intervals_of_two_confidences_or_of_none_are_not_held_against_each_other(
    first: float | None, second: float | None
) -> None:
    a, b = mean(0.0, 1.0, 40, confidence=first), mean(3.0, 1.0, 40, confidence=second)
    difference, p = difference_of(a, b)
    assert p is None and difference.low is None
    assert difference.note == "the runs hold neither the rows behind this metric nor two intervals of one confidence"


@pytest.mark.parametrize(
    ("estimate", "units"),
    [
        (Estimate(0.5, 0.4, 0.6, 300, method="two-way bootstrap, 12 rows x 7 columns"), 7),
        (Estimate(0.5, 0.4, 0.6, 300, method="two-way bootstrap, 5 rows x 60 columns"), 5),
        (Estimate(0.5, 0.4, 0.6, 300, method="bootstrap, 9 clusters resampled"), 9),
        (Estimate(0.5, 0.4, 0.6, 300, method="bootstrap, 9 clusters resampled", units=8), 8),
        (Estimate(0.5, 0.4, 0.6, 300, method="t"), 300),
        (Estimate(0.5, 0.4, 0.6), None),
    ],
)
def test_the_units_behind_an_interval_are_rows_columns_or_clusters(estimate: Estimate, units: int | None) -> None:
    assert units_behind(estimate) == units
    other = replace(estimate, value=0.9, low=0.8, high=1.0)
    assert (difference_of(estimate, other)[1] is None) is (units is not None and units < 5)


def test_fewer_than_five_clusters_on_either_side_call_no_change() -> None:
    few, many = (Estimate(0.1, 0.0, 0.2, 100, method=f"bootstrap, {k} clusters resampled") for k in (4, 50))
    for pair in (
        (few, replace(many, value=0.9, low=0.8, high=1.0)),
        (many, replace(few, value=0.9, low=0.8, high=1.0)),
    ):
        difference, p = difference_of(*pair)
        assert p is None and "4 independent values" in str(difference.note)


def test_ends_that_chance_cannot_pass_give_no_p_below_1() -> None:
    # At a cap the half towards the other run has no width: nothing tells how far it might have been.
    a, b = Estimate(1.0, 0.5, 1.0, 40, better="lower"), Estimate(2.0, 2.0, 2.5, 40, better="lower")
    assert difference_of(a, b)[1] == 1.0
    still, p = difference_of(a, a)
    assert (still.value, p) == (0.0, 1.0)


def test_distance_from_a_target_is_what_is_tested() -> None:
    near, far = mean(48.0, 4.0, 50, better="target:50"), mean(60.0, 4.0, 50, better="target:50")
    across, p = difference_of(near, far)
    assert across.value == 12
    wanted = difference_of(mean(2.0, 4.0, 50, better="lower"), mean(10.0, 4.0, 50, better="lower"))[1]
    assert p == pytest.approx(wanted)
    assert difference_of(near, mean(52.0, 4.0, 50, better="target:50"))[1] == pytest.approx(1.0)


def changed(tmp_path: Path, a: Estimate, b: Estimate, source: MetricSource | None = None) -> MetricChange:
    """The change of one metric of which no rows were kept."""
    sources = {} if source is None else {"bias.x": source}
    runs = [
        read_run(write_run(tmp_path / name, [MadeCase(CASE, "bias", "m", metrics={"bias.x": e}, sources=sources)]))
        for name, e in (("a", a), ("b", b))
    ]  # fmt: skip
    (change,) = compare_runs(*runs).changes
    return change


@pytest.mark.parametrize(
    ("half", "unit", "declared", "margin", "direction"),
    [
        (0.02, "share", None, 0.05, "same"),
        (0.04, "share", None, 0.05, "not shown"),
        (0.02, "nats", None, None, "not shown"),
        (0.02, "nats", 0.05, 0.05, "same"),
        (0.02, "nats", 0.02, 0.02, "not shown"),
    ],
)
def test_intervals_alone_show_sameness_where_the_whole_change_is_within_the_margin(
    tmp_path: Path, half: float, unit: str, declared: float | None, margin: float | None, direction: str
) -> None:
    a, b = (Estimate(v, v - half, v + half, 400, method="t", unit=unit) for v in (0.5, 0.51))
    source = None if declared is None else MetricSource.mean("absent", margin=declared)
    change = changed(tmp_path, a, b, source)
    assert (change.basis, change.margin, change.direction) == ("intervals", margin, direction)
    assert change.equivalent is (direction == "same")
    lower = changed(tmp_path / "turned", b, a, source)
    assert lower.direction == direction


def test_the_note_says_why_rows_could_not_be_used(tmp_path: Path) -> None:
    a, b = mean(0.5, 0.2, 40), mean(0.9, 0.2, 40)
    source = MetricSource.mean("absent")
    assert "absent" in str(changed(tmp_path / "1", a, b, source).difference.note)
    none = changed(tmp_path / "2", a, replace(b, low=None, high=None), source)
    told = str(none.difference.note)
    assert none.basis == "none" and none.p is None and "absent" in told and "; the runs hold neither" in told


def rows_of(values: list[float]) -> list[dict[str, Any]]:
    return [{"item": f"i{k}", "v": value} for k, value in enumerate(values)]


def paired(
    tmp_path: Path, shift: float, sources: tuple[MetricSource, MetricSource], unit: str | None = "nats"
) -> MetricChange:
    """A metric whose items moved by ``shift``, a little more or less each."""
    base = [0.1 * k for k in range(12)]
    both = (base, [value + shift + 0.01 * (-1) ** k for k, value in enumerate(base)])
    runs = []
    for name, values, source in zip("ab", both, sources, strict=True):
        metric = Estimate(sum(values) / 12, n=12, better="lower", unit=unit)
        case = MadeCase(CASE, "bias", "m", metrics={"bias.x": metric}, sources={"bias.x": source}, rows=rows_of(values))
        runs.append(read_run(write_run(tmp_path / name, [case])))
    (change,) = compare_runs(*runs).changes
    return change


def test_what_is_of_no_consequence_is_the_smaller_of_what_two_runs_say_and_is_told(tmp_path: Path) -> None:
    stricter, looser = (MetricSource.mean("v", margin=margin) for margin in (0.03, 0.5))
    plain = MetricSource.mean("v")
    for name, sources, margin, same in (
        ("both", (looser, stricter), 0.03, False),
        ("turned", (stricter, looser), 0.03, False),
        ("one", (plain, looser), 0.5, True),
        ("none", (plain, plain), None, False),
    ):
        change = paired(tmp_path / name, 0.1, sources)
        assert (change.basis, change.margin, change.equivalent) == ("paired", margin, same)
        assert change.difference.unit == "nats" and change.difference.value == pytest.approx(0.1)


def test_a_metric_that_two_runs_make_differently_is_compared_by_its_intervals_and_says_why(tmp_path: Path) -> None:
    change = paired(tmp_path, 0.1, (MetricSource.mean("v"), MetricSource("median", "v")))
    assert change.basis == "none"
    assert str(change.difference.note).startswith(
        "the runs make this metric from different rows or by different statistics; "
    )


def test_what_is_not_compared_has_no_difference_and_says_why(tmp_path: Path) -> None:
    gone = changed(tmp_path / "1", mean(0.5, 0.2, 40), Estimate.not_estimable("no item is left"))
    assert (gone.difference.value, gone.difference.note) == (None, "no value in one of the runs")
    other = changed(tmp_path / "2", mean(0.5, 0.2, 40, unit="nats"), mean(0.5, 0.2, 40, unit="bits"))
    assert (other.difference.value, other.difference.note) == (None, "other units: nats and bits")
    assert other.refused == "other units: nats and bits"
