"""A largest difference between groups changed only where some group changed otherwise than the others."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.clusters import clusterings
from lm_audit.sources.exchanges import swaps
from lm_audit.sources.exchanges.alike import changed_alike, moved_alike
from lm_audit.sources.units import RowTable, units_of
from tests.present import present

Rows = list[dict[str, Any]]
BY_REQUEST = MetricSource("max_min", "v", options={"group": "g"}, clusters=("request",))
PLAIN = MetricSource("max_min", "v", options={"group": "g"})
CROSSED = MetricSource("max_min", "v", options={"group": "g"}, clusters=("r", "c"))


def answers(values: np.ndarray[Any, Any], name: str = "") -> Rows:
    """Rows of values (requests, groups)."""
    return [
        {"item": f"{name}{r}/{g}", "request": f"{name}{r}", "g": f"g{g}", "v": float(value)}
        for (r, g), value in np.ndenumerate(values)
    ]


def change(source: MetricSource, a: Rows, b: Rows, **options: Any) -> Change:
    """The change, which there is."""
    found = change_between(source, RowTable(a), RowTable(b), **options)
    assert isinstance(found, Change)
    return found


def alike(source: MetricSource, a: Rows, b: Rows, **options: Any) -> swaps.Tested:
    """The test that all groups changed alike."""
    first, second = (units_of(source, RowTable(rows)) for rows in (a, b))
    given: dict[str, Any] = {"resolution": 1e-3, "seed": 0} | options
    found = changed_alike(source, first, second, clusterings(source, first), **given)
    assert found is not None
    return found


# Items each by themselves have exact answers below: of all changes, and of a t.
@pytest.mark.parametrize(
    "source",
    [pytest.param(BY_REQUEST, id="by request"), pytest.param(PLAIN, id="each by itself", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    "other", [pytest.param(False, id="paired", marks=pytest.mark.slow), pytest.param(True, id="other items")]
)
def test_groups_that_all_refuse_more_often_are_no_further_apart(source: MetricSource, other: bool) -> None:
    """Nine groups, 24 requests: of a twentieth refused and of a half, the largest difference grew in 29 of 100."""
    sure = []
    for seed in range(30):
        rng = np.random.default_rng([9, seed])
        base = rng.normal(size=(2, 24, 1)) + 0.5 * rng.normal(size=(2, 24, 9))
        before, after = (base[0] > 1.9), (base[int(other)] + 0.5 * rng.normal(size=(24, 9)) > 0.0)
        a, b = answers(before), answers(after, "new " if other else "")
        p = change(source, a, b, seed=seed, resolution=0.01).p
        sure.append(p is not None and p <= 0.05)
    assert np.mean(sure) <= 0.055 + 2 * 0.042


@pytest.mark.parametrize("source", [BY_REQUEST, PLAIN], ids=["by request", "each by itself"])
@pytest.mark.parametrize("other", [False, True], ids=["paired", "other items"])
def test_a_group_that_alone_is_refused_is_further_from_the_others(source: MetricSource, other: bool) -> None:
    rng = np.random.default_rng(4)
    before = rng.random((24, 9)) < 0.05
    after = rng.random((24, 9)) < np.where(np.arange(9) == 3, 0.95, 0.05)
    found = change(source, answers(before), answers(after, "new " if other else ""), resolution=1e-3)
    assert present(found.p) < 0.001 and present(found.difference.value) > 0.5


def exact(changes: np.ndarray[Any, Any], ways: list[np.ndarray[Any, Any]]) -> tuple[float, float]:
    """The share of ways whose groups' means are as far apart, and the smallest such share."""
    sizes = np.array([np.ptp(way.mean(axis=0)) for way in ways])
    share = np.mean(sizes >= np.ptp(changes.mean(axis=0)) - 1e-12)
    return float(share), float(np.mean(sizes >= sizes.max() - 1e-12))


def test_the_changes_of_a_request_change_groups_within_it() -> None:
    changes = np.array([[0.9, 0.1, 0.2], [0.8, 0.3, 0.15], [0.7, 0.05, 0.25], [0.1, 0.6, 0.33]])
    found = alike(BY_REQUEST, answers(np.zeros((4, 3))), answers(changes))
    ways = [np.array(way) for way in product(*(list(permutations(row)) for row in changes))]
    share, least = exact(changes, ways)
    assert found.p == pytest.approx(share, abs=3 * (share * (1 - share) / 2000) ** 0.5)
    assert found.floor == pytest.approx(least) == 6 / 6**4


def test_items_of_one_group_each_change_theirs_among_all() -> None:
    changes = np.array([[1.0, 0.1], [0.8, 0.2], [0.9, 0.35], [0.3, 0.45]])
    found = alike(PLAIN, answers(np.zeros((4, 2))), answers(changes))
    ways = [np.array(way).reshape(4, 2) for way in permutations(changes.ravel())]
    share, least = exact(changes, ways)
    assert found.p == pytest.approx(share, abs=3 * (share * (1 - share) / 2000) ** 0.5)
    assert found.floor == pytest.approx(least) == 2 / 70


def test_a_request_without_an_answer_of_some_group_deals_out_what_it_has() -> None:
    rng = np.random.default_rng(8)
    before, after = rng.normal(size=(12, 3)), rng.normal(size=(12, 3)) + 1.5 * (np.arange(3) == 1)
    whole = alike(BY_REQUEST, answers(before), answers(after))
    fewer = alike(BY_REQUEST, answers(before)[1:], answers(after)[1:])
    assert whole.p < 0.05 and fewer.p < 0.05 and fewer.p != whole.p


def test_a_disparity_of_a_grid_is_as_sure_as_a_large_family_asks() -> None:
    """Of two models' grids one has less than a two-thousandth of 5 %: 2,000 draws could not reach that."""
    rng = np.random.default_rng(5)
    base = rng.normal(size=(2, 8, 8))
    moved = base + 0.1 * rng.normal(size=base.shape) + np.array([9.0, 0.0])[:, None, None]
    a, b = (
        [
            {"item": f"{g}/{r}/{c}", "g": f"g{g}", "r": r, "c": c, "v": float(value)}
            for (g, r, c), value in np.ndenumerate(run)
        ]
        for run in (base, moved)
    )
    fine, coarse = (change(CROSSED, a, b, resolution=resolution) for resolution in (1e-4, 1e-2))
    assert present(fine.p) <= 1e-4 and fine.floor == 1 / 100_000
    assert present(coarse.p) >= coarse.floor == 1 / 2000


def test_runs_without_two_groups_in_common_say_nothing_of_their_distance() -> None:
    rng = np.random.default_rng(6)
    a = answers(rng.normal(size=(12, 2)))
    b = [{**row, "g": f"other {row['g']}"} for row in answers(rng.normal(size=(12, 2)), "new ")]
    found = change(PLAIN, a, b)
    assert found.p is None and isinstance(found.floor, float)


def cells(values: np.ndarray[Any, Any], name: str = "") -> Rows:
    """Rows of a grid of values (groups, rows, columns)."""
    return [
        {"item": f"{name}{g}/{r}/{c}", "g": f"g{g}", "r": f"{name}{r}", "c": f"{name}{c}", "v": float(value)}
        for (g, r, c), value in np.ndenumerate(values)
    ]


def apart(source: MetricSource, a: Rows, b: Rows, **options: Any) -> swaps.Tested | None:
    """The test that all groups moved alike, of runs with other items."""
    runs = [units_of(source, RowTable(rows)) for rows in (a, b)]
    given: dict[str, Any] = {"resolution": 1e-3, "seed": 0} | options
    return moved_alike(source, runs, [clusterings(source, units) for units in runs], **given)


def ungrouped(*groups: list[float], name: str = "") -> Rows:
    """Rows of groups of any sizes, each item by itself."""
    return [
        {"item": f"{name}{g}/{k}", "g": f"g{g}", "v": value}
        for g, values in enumerate(groups)
        for k, value in enumerate(values)
    ]


def near(p: float, wanted: float, draws: int = 10_000) -> bool:
    """Within four standard errors of what ``draws`` random ones tell of a p-value."""
    return bool(abs(p - wanted) <= 4 * (wanted * (1 - wanted) / draws) ** 0.5 + 1 / draws)


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (3, 3, 3, 3), (4, 7, 9, 5)])
def test_two_groups_of_other_items_are_held_against_a_t(sizes: tuple[int, int, int, int]) -> None:
    """Its degrees of freedom are those of the smallest of the four samples."""
    rng = np.random.default_rng(sum(sizes))
    a, a2, b, b2 = (list(rng.normal(at, 1.0, size)) for at, size in zip((0, 0, 0, 1.5), sizes, strict=True))
    found = present(apart(PLAIN, ungrouped(a, a2), ungrouped(b, b2, name="new ")))
    error = sum(np.var(one, ddof=1) / len(one) for one in (a, a2, b, b2)) ** 0.5
    size = abs(np.mean(b2) - np.mean(a2) - np.mean(b) + np.mean(a))
    assert near(found.p, 2 * stats.t.sf(size / error, min(sizes) - 1))
    assert found.floor == 1 / 10_001


def test_groups_of_a_grid_err_by_what_its_rows_and_its_columns_do_together() -> None:
    rng = np.random.default_rng(3)
    runs = [rng.normal(size=(2, 5, 1)) + rng.normal(size=(2, 1, 4)) + rng.normal(size=(2, 5, 4)) for _ in "ab"]
    runs[1][1] += 1.0
    found = present(apart(CROSSED, cells(runs[0]), cells(runs[1], "new ")))
    variance = 0.0
    for run in runs:
        beside = (run - run.mean(axis=(1, 2), keepdims=True)) / 20
        for axis, many in ((2, 5), (1, 4)):
            parts = beside.sum(axis=axis)  # of each group: by row, then by column
            variance += many / (many - 1) * float(((parts[1] - parts[0]) ** 2).sum())
    first, second = (run[1].mean() - run[0].mean() for run in runs)
    assert near(found.p, 2 * stats.t.sf(abs(second - first) / variance**0.5, 3))


def test_what_other_items_tell_of_groups_at_the_ends() -> None:
    same = [[0.5] * 4, [0.25] * 4]
    assert apart(PLAIN, ungrouped(*same), ungrouped(*same, name="new ")) == swaps.Tested(1.0, 1 / 10_001)
    moved = [[0.5] * 4, [0.75] * 4]
    assert apart(PLAIN, ungrouped(*same), ungrouped(*moved, name="new ")) == swaps.Tested(1 / 10_001, 1 / 10_001)
    three = [[*same, [0.0] * 4], [*moved, [0.3] * 4]]
    assert apart(PLAIN, ungrouped(*three[0]), ungrouped(*three[1], name="new ")) == swaps.Tested(1 / 10_001, 1 / 10_001)
    # One item tells nothing of how far a mean errs, nor do groups that one run alone has.
    assert apart(PLAIN, ungrouped(*same), ungrouped([0.5] * 4, [0.5], name="new ")) is None
    assert apart(PLAIN, ungrouped(*same), ungrouped([0.5] * 4, name="new ")) is None


@pytest.mark.parametrize("sizes", [(1, 2, 3), (2, 4)])
def test_items_of_groups_of_other_sizes_are_dealt_out_among_all(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(11)
    parts = [list(rng.normal(g, 1.0, size)) for g, size in enumerate(sizes)]
    found = alike(PLAIN, ungrouped(*([0.0] * size for size in sizes)), ungrouped(*parts))
    cuts = np.cumsum((0, *sizes))

    def size_of(values: Any) -> float:
        return float(np.ptp([np.mean(values[i:j]) for i, j in pairwise(cuts)]))

    observed = [value for part in parts for value in part]
    share = float(np.mean([size_of(way) >= size_of(observed) - 1e-12 for way in permutations(observed)]))
    assert near(found.p, share, 2000)


def test_the_least_that_a_dealing_can_give() -> None:
    """Of two requests of three groups each a sixth; a request of one group and one of two say nothing."""
    two = np.array([[0.9, 0.1, 0.2], [0.8, 0.3, 0.15]])
    assert alike(BY_REQUEST, answers(np.zeros((2, 3))), answers(two)).floor == pytest.approx(1 / 6)
    rows = [
        row for row in answers(np.array([[0.9, 0.1, 0.2], [0.8, 0.3, 0.15]])) if row["item"] in ("0/0", "1/1", "1/2")
    ]
    before = [{**row, "v": 0.0} for row in rows]
    found = alike(BY_REQUEST, before, rows)
    assert found.floor == 1.0 and found.p <= 1.0


def test_a_clear_answer_of_a_grid_is_not_drawn_out() -> None:
    """2,000 draws tell that groups moved alike; only where few lie as far out are as many drawn as were asked for."""
    rng = np.random.default_rng(5)
    base, noise = rng.normal(size=(3, 6, 6)), rng.normal(size=(3, 6, 6))
    for shift, draws in ((0.0, 2000), (30.0, 100_000)):
        moved = base + noise + np.array([shift, 0.0, 0.0])[:, None, None]
        found = alike(CROSSED, cells(base), cells(moved), resolution=1e-4)
        assert found.p * draws == pytest.approx(round(found.p * draws)) and found.floor == 1 / 100_000
        assert (found.p > 0.02) == (shift == 0.0)
    whole = units_of(CROSSED, RowTable(cells(base[:, :1])))
    few = changed_alike(CROSSED, whole, whole, clusterings(CROSSED, whole) * 2, resolution=1e-3, seed=0)
    assert few is None


@pytest.mark.parametrize("source", [BY_REQUEST, CROSSED], ids=["dealt", "a grid"])
@pytest.mark.parametrize("other", ["", "new "], ids=["paired", "other items"])
def test_what_is_drawn_hangs_on_the_seed_alone(source: MetricSource, other: str) -> None:
    rng = np.random.default_rng(7)
    made = [rng.normal(size=(3, 6, 6)) for _ in "ab"]
    flat = [one.reshape(3, 36).T for one in made]
    if source is CROSSED:
        a, b = cells(made[0]), cells(made[1], other)
    else:
        a, b = answers(flat[0]), answers(flat[1], other)
    ask = apart if other else alike
    first, again, another = (ask(source, a, b, seed=seed) for seed in (3, 3, 4))
    assert first == again != another
    assert change(source, a, b) == change(source, a, b, seed=0)


@pytest.mark.parametrize("crossed", [False, True], ids=["by request", "crossed"])
@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ((0.0, 0.0), (0.0, 0.0), False),
        ((0.8, 0.0), (0.8, 0.0), False),
        # Both moved alike; the difference turned its sign: neither is further apart.
        ((0.5, 0.0), (1.5, 1.0), False),
        ((0.8, 0.0), (0.0, 0.8), False),
        ((0.2, 0.0), (1.2, 0.0), True),
        ((0.0, 0.2), (0.0, 1.2), True),
        ((1.2, 0.0), (0.2, 0.0), True),
        ((0.2, 0.0), (0.0, 1.2), True),
    ],
)
def test_two_groups_are_further_apart_where_their_distance_changed(
    before: tuple[float, float], after: tuple[float, float], changed: bool, crossed: bool
) -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(size=(3, 36, 2))
    # Noise that takes no part in the means, so that they are as they are said to be.
    noise -= noise.mean(axis=1, keepdims=True)
    runs = [answers(noise[0] + 0.3 * noise[1 + k] + np.array(means)) for k, means in enumerate((before, after))]
    for row in (*runs[0], *runs[1]):
        row |= {"r": int(row["request"]) // 6, "c": int(row["request"]) % 6}
    found = change(CROSSED if crossed else BY_REQUEST, *runs, seed=1, resolution=0.01)
    assert "two groups over" in (found.difference.method or "")
    assert (present(found.p) <= 0.05) is changed


def two_groups(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any], **options: Any) -> Change:
    """The change of the distance of two groups that answered the same requests."""
    return change(BY_REQUEST, answers(before), answers(after), **options)


def test_a_distance_that_turned_its_sign_is_held_against_the_t_of_the_sum_of_both() -> None:
    rng = np.random.default_rng(9)
    before = rng.normal(size=(12, 2)) + np.array([2.0, 0.0])
    after = before + 0.4 * rng.normal(size=(12, 2)) + np.array([-0.6, 0.6])
    found = two_groups(before, after, resolution=1e-3)
    first, second = (run[:, 0] - run[:, 1] for run in (before, after))
    error = np.std(first - second, ddof=1) / 12**0.5
    assert 0.01 < present(found.p) < 0.9
    assert found.p == pytest.approx(2 * stats.t.sf(abs(first.mean() + second.mean()) / error, 11))
    # Towards a target the distance from it counts, which the exchange of runs tells.
    aimed = two_groups(before, after, resolution=1e-3, target=0.3)
    assert aimed.difference.method == "paired, 12 clusters exchanged; t interval"
    few = two_groups(before[:5], after[:5], resolution=1e-3)
    assert few.difference.method == "paired, 5 clusters exchanged; t interval"


def test_groups_that_all_changed_by_as_much_are_told_by_the_exchange_of_runs() -> None:
    """Without a spread there is no t."""
    before = np.arange(16.0).reshape(8, 2) % 3
    found = two_groups(before, before + np.array([2.0, 0.0]), resolution=1e-3)
    assert found.difference.method == "paired, 8 clusters exchanged; t interval" and found.p is not None


def test_two_groups_of_a_grid_that_lacks_cells_have_no_test() -> None:
    rng = np.random.default_rng(10)
    runs = [cells(rng.normal(size=(2, 6, 6)) + k) for k in range(2)]
    some = [[row for row in run if not (row["g"] == "g1" and row["r"] != row["c"])] for run in runs]
    found = change(CROSSED, some[0], some[1])
    assert found.p is None and "two-way t" in (found.difference.method or "")


def uneven(rng: np.random.Generator, requests: int) -> tuple[Rows, Rows]:
    """One group refused in 3 %, one in 40 %, each with 1 to 12 answers of a request; both runs of one law."""
    runs: tuple[Rows, Rows] = ([], [])
    latent = rng.normal(size=(requests, 2)) + np.array([-2.1, -0.3])
    counts = rng.choice([1, 1, 2, 3, 6, 12], size=(requests, 2))
    for (r, g), middle in np.ndenumerate(latent):
        for k, run in product(range(counts[r, g]), runs):
            value = float(middle + 0.5 * rng.normal() > 0)
            run.append({"item": f"{r}/{g}/{k}", "request": f"r{r}", "g": f"g{g}", "v": value})
    return runs


@pytest.mark.parametrize("seed", range(3))
def test_parts_of_two_groups_that_share_requests_have_either_sign(seed: int) -> None:
    """Whatever the numbers of answers: the share of all signs under which the groups lie as far apart."""
    a, b = uneven(np.random.default_rng(seed), 9)
    sizes = {g: sum(row["g"] == g for row in a) for g in ("g0", "g1")}
    parts: dict[str, float] = {}
    for x, y in zip(a, b, strict=True):
        sign = 1 if x["g"] == "g0" else -1
        parts[x["request"]] = parts.get(x["request"], 0.0) + sign * (y["v"] - x["v"]) / sizes[x["g"]]
    moved = np.array([part for part in parts.values() if part])
    flips = np.array([abs(float(np.dot(signs, moved))) for signs in product((1, -1), repeat=len(moved))])
    known = float((flips >= abs(moved.sum()) * (1 - 1e-9)).mean()) if len(moved) else 1.0
    assert alike(BY_REQUEST, a, b).p == pytest.approx(known)


def test_requests_in_which_both_groups_changed_alike_are_not_too_few_to_tell() -> None:
    before = np.zeros((24, 2))
    after = np.repeat(np.arange(24) % 2, 2).reshape(24, 2)
    found = alike(BY_REQUEST, answers(before), answers(after))
    assert found.p == 1.0 and found.floor == pytest.approx(2.0**-11)
    # One request alone has one sign, whatever it is.
    one = alike(BY_REQUEST, answers(before), answers(np.eye(24)[:, [3, 3]]))
    assert (one.p, one.floor) == (1.0, 1.0)


@pytest.mark.slow
def test_two_groups_of_other_shares_and_numbers_of_answers_keep_the_level() -> None:
    """Cells that change groups rejected in 5.7 %; 20,000 runs stand in docs/statistics.md."""
    sure = [
        (change(BY_REQUEST, *uneven(np.random.default_rng([8, seed]), 24), resolution=0.01).p or 1.0) <= 0.05
        for seed in range(600)
    ]
    assert np.mean(sure) <= 0.055


def test_signs_of_many_requests_are_drawn_by_the_seed() -> None:
    rng = np.random.default_rng(12)
    a, b = answers(rng.normal(size=(30, 2))), answers(rng.normal(0.4, 1.0, size=(30, 2)))
    first, again, another = (alike(BY_REQUEST, a, b, seed=seed) for seed in (3, 3, 4))
    assert first == again != another
    other = [{**row, "item": f"new {row['item']}", "request": f"new {row['request']}"} for row in b]
    told = [change(BY_REQUEST, a, other, seed=seed).p for seed in (3, 3, 4)]
    assert told[0] == told[1] != told[2]
    a, b = answers(rng.normal(size=(30, 3))), answers(rng.normal(0.4, 1.0, size=(30, 3)))
    first, again, another = (alike(BY_REQUEST, a, b, seed=seed) for seed in (3, 3, 4))
    assert first == again != another


@pytest.mark.parametrize("unit", [1e-7, 1.0, 1e7])
def test_requests_whose_groups_rounding_alone_sets_apart_did_not_change(unit: float) -> None:
    """0.1 + 0.2 against 0.3, in each of ten requests, beside two that moved: all might have told."""
    both = np.tile([0.1 + 0.2, 0.3], (12, 1))
    both[:2] += [[1.0, 0.0], [0.0, -2.0]]
    found = alike(BY_REQUEST, answers(np.zeros((12, 2))), answers(unit * both))
    assert (found.p, found.floor) == (0.5, 2.0**-11)
