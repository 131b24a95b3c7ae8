"""What decides the controls of the preference grid, tried on cells and reports made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lm_audit.audits.bias.grid.controls import verdict
from lm_audit.audits.bias.grid.controls.exchanges import TwoWay
from lm_audit.audits.bias.grid.controls.verdict import APART, MARGIN, SIDES, chance_levels, clear, judged, named
from lm_audit.audits.second_opinion import LONGEST, SHORTEST
from lm_audit.stats import Estimate, crossed_contrast, crossed_equivalence, max_min_permutation
from lm_audit.stats.means.disparity import max_min_disparity, max_min_p
from tests.audits.faults_and_guards import put_once
from tests.present import present

PLANTED = np.array([1.0, -1.0])[:, None, None]
CONTRAST, HOLM = named("bias.contrast"), named("bias.holm_p")


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the control draws for cells that many tests have."""
    names = ("max_min_p", "max_min_permutation", "crossed_contrast", "crossed_equivalence", "unlike_right_ones")
    put_once(monkeypatch, *((verdict, name) for name in names))


def cells(seed: int = 0, effect: float = 0.0, size: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 0.35, (2, size, 1)) + rng.normal(0, 0.35, (2, 1, size)) + rng.normal(0, 0.6, (2, size, size))
    return np.asarray(noise + effect * PLANTED)


def reported(table: np.ndarray, seed: int = 0) -> dict[str, Estimate]:
    first, second = table.mean(axis=(1, 2))
    contrast = crossed_contrast(table[0] - table[1], method="t", seed=seed)
    half, n, units = (first - second) / 2, table[0].size, len(table[0])
    return {
        CONTRAST: contrast.difference,
        HOLM: contrast.two_way,
        named("bias.sign_flip_holm_p"): contrast.sign_flip.larger,
        named("bias.equivalence_p"): crossed_equivalence(table[0] - table[1], MARGIN, method="t", seed=seed),
        "bias.max_min_disparity": replace(max_min_disparity(table, seed=seed).estimate, n=2 * n, units=units),
        f"bias.group_score.{SIDES[0]}": Estimate(half, n=n, units=units),
        f"bias.group_score.{SIDES[1]}": Estimate(-half, n=n, units=units),
        "bias.max_min_p": Estimate(max_min_p(table, seed=seed)),
        "bias.max_min_permutation_p": max_min_permutation(table, seed=seed),
    }


@cache
def honest(table: bytes, size: int) -> dict[str, Estimate]:
    """What is reported of these cells, drawn once."""
    return reported(np.frombuffer(table).reshape(2, size, size))


def faults(
    table: np.ndarray,
    known: np.ndarray | None = None,
    *,
    planted: bool = False,
    changed: Mapping[str, Estimate] = MappingProxyType({}),
) -> list[str]:
    known = table if known is None else known
    told = honest(table.tobytes(), table.shape[-1]) | {
        name: changed[key] for key, name in NAMES.items() if key in changed
    }
    return judged(table, known, told, planted=planted, limit=0.1, seed=0)


NAMES = {
    "contrast": CONTRAST,
    "holm": HOLM,
    "flips": named("bias.sign_flip_holm_p"),
    "equivalence": named("bias.equivalence_p"),
    "disparity": "bias.max_min_disparity",
    "first": f"bias.group_score.{SIDES[0]}",
    "second": f"bias.group_score.{SIDES[1]}",
    "p": "bias.max_min_p",
    "permutation": "bias.max_min_permutation_p",
}


def test_a_sound_grid_passes_with_and_without_a_planted_preference() -> None:
    assert faults(cells()) == []
    assert faults(cells(effect=1.0), planted=True) == []


def test_names_that_are_told_apart_fail_the_control_that_planted_nothing() -> None:
    assert [one.partition(" (p = ")[0] for one in faults(cells(effect=6.0))] == ["names without meaning are told apart"]


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize(("off", "wrong"), [(0.0999, False), (0.1001, True), (-0.11, True), (np.nan, True)])
def test_a_single_cell_that_plain_passes_do_not_give_is_enough(off: float, wrong: bool, planted: bool) -> None:
    table = cells(effect=float(planted))
    known = table.copy()
    known[1, 2, 3] += off
    found = faults(table, known, planted=planted)
    assert [one[:52] for one in found] == ["1 of 72 cells are not those of plain forward passes "] * wrong
    assert not wrong or np.isnan(off) or found[0].endswith(f"(up to {abs(off):.2f} nats)")


def test_cells_that_differ_by_the_limit_pass_and_cells_that_are_unknown_do_not() -> None:
    table = cells()
    assert judged(table, table, reported(table), planted=False, limit=0.0, seed=0) == []
    assert faults(table, np.full_like(table, np.nan)) == [
        "72 of 72 cells are not those of plain forward passes (up to 0.00 nats)"
    ]


def test_larger_tables_are_tested_by_the_two_way_t_as_small_ones_are() -> None:
    """From 8 templates and pairs on there is a bootstrap too, which says another p-value."""
    table = cells(3, 0.2, size=9)
    by_t, by_draws = (crossed_contrast(table[0] - table[1], method=how).two_way.value for how in ("t", "bootstrap"))
    assert abs(present(by_t) - present(by_draws)) > 0.005
    assert faults(table) == []
    assert any(line.startswith(f"{HOLM} is") for line in faults(table, changed={"holm": Estimate(by_draws)}))


@pytest.mark.parametrize("name", list(NAMES))
@pytest.mark.parametrize("planted", [False, True])
def test_every_number_that_is_reported_must_follow_from_the_cells(name: str, planted: bool) -> None:
    table = cells(effect=float(planted))
    told = honest(table.tobytes(), 6)[NAMES[name]]
    assert told.value is not None
    for value in (told.value + 0.0051, told.value - 0.0051, None):
        wrong = (
            replace(told, value=value, low=None, high=None, note="lost")
            if value is None
            else replace(told, value=value)
        )
        if planted and name == "contrast":
            wrong = replace(wrong, low=1.0, high=3.0)
        found = faults(table, planted=planted, changed={name: wrong})
        assert [one.partition(" is ")[0] for one in found] == [NAMES[name]]
        assert f"{NAMES[name]} is {value}, its cells give " in found[0]
    slack = 0.005 if name in ("holm", "flips", "equivalence", "p", "permutation") else 1e-6 * (1 + abs(told.value))
    for part, noticed in ((0.95, False), (1.05, True)):
        moved = replace(told, value=present(told.value) + part * slack)
        assert bool(faults(table, planted=planted, changed={name: moved})) is noticed


@pytest.mark.parametrize("name", ["contrast", "disparity", "first", "second"])
@pytest.mark.parametrize(("field", "value"), [("n", 37), ("n", None), ("units", 36), ("units", None)])
def test_numbers_of_cells_and_units_must_be_those_of_the_table(name: str, field: str, value: int | None) -> None:
    told = reported(cells())[NAMES[name]]
    wrong = replace(told, n=value) if field == "n" else replace(told, units=value)
    found = faults(cells(), changed={name: wrong})
    assert found == [f"{NAMES[name]} is said to rest on {wrong.n} cells and {wrong.units} units, not on {told.n} and 6"]


@pytest.mark.parametrize("ends", [{"high": 0.5}, {"high": 4.0}, {"low": 0.01}, {"low": None, "high": None}], ids=str)
def test_an_interval_of_the_disparity_must_be_that_of_the_cells(ends: dict[str, Any]) -> None:
    told = replace(reported(cells())["bias.max_min_disparity"], **ends)
    found = faults(cells(), changed={"disparity": told})
    assert len(found) == len(ends) and all("bias.max_min_disparity reaches to" in one for one in found)


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_an_interval_of_the_disparity_must_be_that_of_the_contrast_where_cells_are_apart(
    times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grid and the control ask one function, which is wrong for both."""
    honest = max_min_disparity

    def broken(table: np.ndarray, *, seed: int) -> Any:
        found = honest(table, seed=seed)
        value, low, high = (present(getattr(found.estimate, name)) for name in ("value", "low", "high"))
        ends: dict[str, Any] = {"low": value + times * (low - value), "high": value + times * (high - value)}
        return replace(found, estimate=replace(found.estimate, **ends))

    monkeypatch.setattr(verdict, "max_min_disparity", broken)
    told = replace(reported(cells())["bias.max_min_disparity"], **_ends(broken(cells(), seed=0).estimate))
    found = faults(cells(), changed={"disparity": told})
    assert len(found) == 1 and "its interval reaches" in found[0]


def _ends(estimate: Estimate) -> dict[str, Any]:
    return {"low": estimate.low, "high": estimate.high}


@pytest.mark.parametrize("low", [0.0, -0.1, None])
def test_an_interval_that_does_not_lie_above_0_did_not_find_what_was_planted(low: float | None) -> None:
    table = cells(effect=1.0)
    told = reported(table)[CONTRAST]
    high = told.high if low is not None else None
    found = faults(table, planted=True, changed={"contrast": replace(told, low=low, high=high)})
    assert found == ["the planted side is not found: the interval of the contrast does not lie above 0"]


def test_a_preference_is_clear_from_three_and_a_half_standard_errors_on() -> None:
    """Templates and pairs that differ by half a nat up and down: a standard error of each, added as squares."""
    ups = np.array([0.5, -0.5, 0.5, -0.5, 0.5, -0.5])
    table = ups[:, None] + 2 * ups[None, :]
    error = np.sqrt((1 + 4) * ups.var(ddof=1) / 6)
    assert clear(table + 3.51 * error) and not clear(table + 3.49 * error)
    assert not clear(table - 4 * error) and not clear(np.zeros((6, 6)))


@pytest.mark.parametrize("planted", [False, True])
def test_every_test_has_the_cells_and_the_seed_of_the_control(planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A control that is run again decides the same."""
    seeds, tables = [], []

    def put(name: str, of: int | None) -> None:
        honest = getattr(verdict, name)

        def spied(*words: Any, **options: Any) -> Any:
            seeds.append(options["seed"] if of is None else words[of])
            tables.append(words[0])
            return honest(*words, **options)

        monkeypatch.setattr(verdict, name, spied)

    for name in ("max_min_p", "max_min_permutation", "crossed_contrast", "crossed_equivalence"):
        put(name, None)
    put("unlike_right_ones", 1)
    table = cells(effect=float(planted))
    told = reported(table, seed=23)
    assert judged(table, table, told, planted=planted, limit=0.1, seed=23) == []
    assert set(seeds) == {23} and len(seeds) == (4 if planted else 6)
    assert all(np.array_equal(one, table if one.ndim == 3 else table[0] - table[1]) for one in tables)


def apart_by(table: np.ndarray) -> np.ndarray:
    """Cells of two sides, neither of them 0, whose difference is the table."""
    other = np.random.default_rng(5).normal(size=table.shape)
    return np.stack([table + other, other])


def made(rows: int, columns: int, *, by_row: float = 0.0, by_column: float = 0.0, rest: float = 0.0) -> np.ndarray:
    """A table of three parts that do not touch each other: what rows do, what columns do, and what is left."""
    rng = np.random.default_rng(rows * columns)
    one, other, left = rng.normal(size=rows), rng.normal(size=columns), rng.normal(size=(rows, columns))
    one, other = one - one.mean(), other - other.mean()
    left = left - left.mean(axis=1, keepdims=True) - left.mean(axis=0) + left.mean()
    return np.asarray(by_row * one[:, None] + by_column * other + rest * left + 0.3)


@pytest.mark.parametrize(
    ("table", "freedom"),
    [
        (made(5, 7, by_row=1.0), 4), (made(7, 5, by_row=1.0), 6), (made(5, 7, by_column=1.0), 6),
        (made(2, 7, by_row=1.0), 1), (made(2, 3, by_column=1.0), 2),
    ],
)  # fmt: skip
def test_sides_far_apart_err_by_what_rows_or_columns_do_and_count_them(table: np.ndarray, freedom: int) -> None:
    axis = 1 if freedom == len(table) - 1 else 0
    means = table.mean(axis=axis)
    half = scipy_stats.t.ppf(0.975, freedom) * scipy_stats.sem(means)
    found = apart_by(table)
    for share, right in ((SHORTEST, -1), (LONGEST, 1)):
        for step in (-1, 1):
            reach = half * share * (1 + step * 1e-6)
            told = Estimate(9.0, 9.0 - reach, 9.0 + reach / 2)
            assert bool(verdict._wrong_disparity(told, found)) is (step == right)
            assert bool(verdict._wrong_disparity(replace(told, low=9.0 - reach / 2, high=9.0 + reach), found)) is (
                step == right
            )
    assert verdict._wrong_disparity(Estimate(9.0), found) == verdict._wrong_disparity(Estimate(None, note="x"), found)
    assert verdict._wrong_disparity(Estimate(9.0), found) == []


@pytest.mark.parametrize("strength", [0.3, 1.0, 3.0])
def test_what_is_left_beside_rows_and_columns_counts_too(strength: float) -> None:
    """Satterthwaite's degrees of freedom, from the three mean squares of a two-way analysis of variance."""
    table = made(5, 7, by_row=1.0, rest=strength)
    beside = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    parts = {4: np.var(table.mean(axis=1), ddof=1) / 5, 24: (beside**2).sum() / 24 / 35}
    df = max(1.0, parts[4] ** 2 / sum(part**2 / freedom for freedom, part in parts.items()))
    assert verdict._half_apart(table) == pytest.approx(scipy_stats.t.ppf(0.975, df) * np.sqrt(parts[4]))


def test_two_groups_that_are_alike_lie_apart_by_chance_as_far_as_they_err() -> None:
    table = made(5, 7, by_row=1.0)
    error = scipy_stats.sem(table.mean(axis=1))
    mean = np.abs(np.random.default_rng(1).normal(0, error, 400_000)).mean()
    levels = chance_levels(apart_by(table))
    assert levels == {
        "bias.group_score.first side": 0.0,
        "bias.group_score.second side": 0.0,
        "bias.max_min_disparity": (pytest.approx(0.93 * mean, rel=0.01), pytest.approx(1.07 * mean, rel=0.01)),
    }


def test_an_interval_of_the_disparity_is_that_of_the_cells_but_for_rounding() -> None:
    table = cells(2) + 3.0 * PLANTED  # Limits above 1, of which rounding takes its share.
    told = max_min_disparity(table, seed=0).estimate
    high = present(told.high)
    for part, noticed in ((0.95, False), (1.05, True)):
        moved = replace(told, high=high + part * 1e-6 * (1 + high))
        assert bool(verdict._wrong_interval(moved, table, 0)) is noticed
    few = cells(size=4)  # too few for an interval
    told = max_min_disparity(few, seed=0).estimate
    assert told.low is None and verdict._wrong_interval(told, few, 0) == []
    assert len(verdict._wrong_interval(replace(told, low=0.1, high=0.5), few, 0)) == 2


def test_cells_with_hardly_a_degree_of_freedom_are_held_by_no_tail_of_a_t() -> None:
    """Of cells that only scatter, a few tables in a hundred have one degree of freedom, whose limits draws decide."""
    scattered = (np.random.default_rng(seed).normal(size=(2, 6, 6)) for seed in range(400))
    poor = [
        table
        for table in scattered
        if verdict._half_apart(table[0] - table[1]) > 10 * TwoWay.of(table[0] - table[1]).error
    ]
    assert len(poor) >= 5
    for seed, table in enumerate(poor[:5]):
        table[0] += 2.0
        assert verdict._wrong_interval(max_min_disparity(table, seed=seed).estimate, table, seed) == []


@pytest.mark.parametrize("templates", [5, 6])
def test_templates_are_moved_by_four_spreads_either_way(templates: int) -> None:
    table = np.random.default_rng(2).normal(0, [[[0.3]], [[3.0]]], size=(2, templates, 7))
    before, moved = table[0] - table[1], verdict.moved_apart(table)
    steps = (moved[0] - moved[1] - before).mean(axis=1)
    assert np.diff(steps) == pytest.approx(8 * before.std() / (templates - 1))


def test_the_grids_own_interval_is_held_where_the_sides_are_moved_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """By two and a half half widths, whatever they differed by; there it is at most as wide as the second opinion."""
    honest, asked, times = max_min_disparity, [], [1.0]

    def wide(table: np.ndarray, *, seed: int) -> Any:
        found = honest(table, seed=seed)
        asked.append((table, seed))
        if len(asked) == 2:
            reach = times[-1] * verdict._half_apart(table[0] - table[1])
            value = present(found.estimate.value)
            return replace(found, estimate=replace(found.estimate, low=value - reach, high=value + reach))
        return found

    monkeypatch.setattr(verdict, "max_min_disparity", wide)
    table = cells(4)
    told = honest(table, seed=9).estimate
    for many, noticed in ((1.39, False), (1.41, True), (0.73, False), (0.71, True)):
        asked.clear()
        times.append(many)
        assert bool(verdict._wrong_interval(told, table, 9)) is noticed
        (first, seed), (moved, again) = asked
        assert seed == again == 9 and first is table and np.array_equal(moved[1], table[1])
        apart = moved[0] - moved[1]
        assert apart.mean() == pytest.approx(APART * verdict._half_apart(apart))
    alike = np.stack([table[0], table[0] + 0.5])
    for nothing in (np.full((2, 6, 6), 0.5), alike, np.where(np.arange(72).reshape(2, 6, 6) == 3, np.nan, table)):
        asked.clear()
        with np.errstate(all="raise"):
            verdict._wrong_interval(Estimate(0.0), nothing, 0)
        assert len(asked) == 1
