"""A largest difference between groups changed only where some group changed otherwise than the others."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.clusters import clusterings
from lm_audit.sources.exchanges import swaps
from lm_audit.sources.exchanges.alike import changed_alike
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


@pytest.mark.parametrize("source", [BY_REQUEST, PLAIN], ids=["by request", "each by itself"])
@pytest.mark.parametrize("other", [False, True], ids=["paired", "other items"])
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
    assert change(PLAIN, a, b).p is None
