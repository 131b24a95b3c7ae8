"""A tier of few members tells little, however large the effect: the smallest p that a comparison of it could have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.units import RowTable
from lm_audit.stats import able


def tier_change(moved: np.ndarray[Any, Any], *, clusters: tuple[str, ...] = ()) -> Change:
    """Of three members to each of a tier, a third of them in it, and 60 twins of which every third has its mark too."""
    rng = np.random.default_rng(len(moved))
    scores = rng.normal(size=len(moved) + 60)
    after = scores.copy()
    after[: len(moved)] += 5.0 * moved
    after[len(moved) :] += rng.normal(size=60)
    rows = [
        RowTable(
            [
                {"item": f"i{k}", "role": "m" if k < len(moved) else "c", "times": k % 3, "pair": k // 6, "v": float(v)}
                for k, v in enumerate(run)
            ]
        )
        for run in (scores, after)
    ]
    source = MetricSource.members(
        "exposure", "v", {"role": "m"}, {"role": "c"}, options={"tier": {"times": 1}}, clusters=clusters
    )
    found = change_between(source, *rows, resolution=0.01)
    assert isinstance(found, Change)
    return found


@pytest.mark.parametrize(("in_tier", "floor"), [(5, 2**-5), (8, 2**-8), (10, 2**-10)])
def test_a_tier_tells_no_more_than_its_own_members_do(in_tier: int, floor: float) -> None:
    """A tier of 5 has p about 0.03 at best, and takes no share of the level from other headlines."""
    found = tier_change(np.ones(3 * in_tier))
    assert found.floor == floor
    assert found.p is not None and floor / 50 < found.p < 4 * floor
    assert (able([("privacy", "a", "e"), ("bias", "b", "d")], [found.floor, 0.001]) == [0, 1]) is (in_tier > 5)


def test_members_of_a_tier_that_did_not_move_tell_nothing() -> None:
    moved = np.ones(24)
    moved[[1, 4, 7]] = 0.0  # of the tier: 1, 4, 7, ...
    assert tier_change(moved).floor == 2.0**-5
    moved[[0, 2, 3]] = 0.0
    assert tier_change(moved).floor == 2.0**-5
    # Where none of them moved, the twins alone are exchanged.
    moved[1::3] = 0.0
    assert tier_change(moved).floor < 2.0**-8


def test_members_of_one_cluster_tell_once() -> None:
    """Two of the tier among each six."""
    assert tier_change(np.ones(30), clusters=("pair",)).floor == 2.0**-5
