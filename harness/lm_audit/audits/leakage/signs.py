"""Tests of paired differences between a question's published order and shuffled ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lm_audit.errors import UsageError
from lm_audit.stats import Estimate
from lm_audit.stats.inputs import finite_array, no_p_value, p_value

Alternative = Literal["greater", "two-sided"]

UNREACHABLE = "no p-value below"
"""How the note of a test begins that cannot reject at 5% whatever is measured."""

LEVEL = 0.05

_LARGEST_DENOMINATOR = 60
_LARGEST_SUM = 200_000
_ENUMERATED = 18


def paired_sign_flip(
    differences: ArrayLike, *, alternative: Alternative = "greater", n_resamples: int = 9999, seed: int = 0
) -> Estimate:
    """The p-value of "differences are symmetric about 0" by flipping their signs; "greater": their mean is above 0.

    Exact, identity included, where the differences are multiples of one unit (counts of hits, or means of a few) or
    at most 18 differ from 0; Monte Carlo with p = (1 + k) / (1 + R) otherwise. All differences 0 give 1.
    """
    if alternative not in ("greater", "two-sided"):
        raise UsageError(f"alternative {alternative!r}; it is 'greater' or 'two-sided'")
    values = finite_array(differences, "differences")
    if isinstance(values, str):
        return no_p_value(values, method="paired sign flip", n=np.size(differences))
    moving = values[values != 0]
    units = _whole_units(moving)
    if not len(moving):
        same = f"all {len(values)} differences are 0"
        return p_value(1.0, n=len(values), method="paired sign flip, exact", note=same)
    note = unreachable(0.5 ** (len(moving) - (alternative == "two-sided")), f"{len(moving)} differences that are not 0")
    if units is not None:
        share = _lattice_share(units, alternative)
        return p_value(share, n=len(values), method="paired sign flip, exact", note=note)
    if len(moving) <= _ENUMERATED:
        sums = np.zeros(1)
        for value in moving:
            sums = np.concatenate([sums + value, sums - value])
        share = _share(sums, moving, alternative)
        return p_value(share, n=len(values), method="paired sign flip, exact", note=note)
    reached = _sampled(moving, alternative, n_resamples, np.random.default_rng(seed))
    method = f"paired sign flip, Monte Carlo, R={n_resamples}"
    return p_value((1 + reached) / (1 + n_resamples), n=len(values), method=method)


def unreachable(smallest: float, what: str) -> str | None:
    """A note where the smallest p-value that a test can give is above the level; else ``None``."""
    return f"{what} can give {UNREACHABLE} {smallest:.2g}" if smallest > LEVEL else None


def _whole_units(values: NDArray[np.float64]) -> NDArray[np.int64] | None:
    for denominator in range(1, _LARGEST_DENOMINATOR + 1):
        scaled = values * denominator
        if np.abs(scaled - np.rint(scaled)).max(initial=0.0) < 1e-9 and np.abs(scaled).sum() <= _LARGEST_SUM:
            return np.rint(scaled).astype(np.int64)
    return None


def _lattice_share(units: NDArray[np.int64], alternative: Alternative) -> float:
    """The exact tail: the distribution of the signed sum is a product of two-point distributions."""
    total = int(np.abs(units).sum())
    chances = np.zeros(2 * total + 1)
    chances[total] = 1.0
    for size in np.abs(units):
        chances = 0.5 * (np.roll(chances, size) + np.roll(chances, -size))
    sums = np.arange(-total, total + 1)
    observed = int(units.sum())
    reached = sums >= observed if alternative == "greater" else np.abs(sums) >= abs(observed)
    return min(1.0, float(chances[reached].sum()))


def _share(sums: NDArray[np.float64], values: NDArray[np.float64], alternative: Alternative) -> float:
    slack = 4 * len(values) * float(np.finfo(np.float64).eps) * float(np.abs(values).sum())
    if alternative == "greater":
        return float((sums >= values.sum() - slack).mean())
    return float((np.abs(sums) >= abs(values.sum()) - slack).mean())


def _sampled(values: NDArray[np.float64], alternative: Alternative, n_resamples: int, rng: np.random.Generator) -> int:
    reached, batch = 0, max(1, 2_000_000 // len(values))
    for start in range(0, n_resamples, batch):
        signs = rng.integers(0, 2, (min(batch, n_resamples - start), len(values))) * 2 - 1
        sums = signs @ values
        reached += round(_share(sums, values, alternative) * len(sums))
    return reached


def published_place_test(scores: Sequence[Sequence[float]], *, n_resamples: int = 9999, seed: int = 0) -> Estimate:
    """The p-value of "the published order is any of its item's orders" against "it scores higher".

    ``scores[i]`` holds item i's score in the published order and then in its others (one at least; items may have
    different numbers). The statistic is the mean over items of published minus mean of the others; the place of the
    published order is drawn anew within every item, p = (1 + reached) / (1 + R). Valid for any number of orders, where
    flipping the sign of a difference from a mean of several is exact only for one.
    """
    method = f"published order among its item's orders, Monte Carlo, R={n_resamples}"
    kept = [np.asarray(row, dtype=np.float64) for row in scores if len(row) > 1]
    if not kept:
        return no_p_value("no item has a second order", method=method, n=len(scores))
    gains = [(row * len(row) - row.sum()) / (len(row) - 1) for row in kept]
    reached = _reached_by_places(gains, n_resamples, np.random.default_rng(seed))
    smallest = float(np.prod([1 / len(row) for row in kept])) if len(kept) < 20 else 0.0
    note = unreachable(smallest, f"{len(kept)} items with other orders")
    return p_value((1 + reached) / (1 + n_resamples), n=len(kept), method=method, note=note)


def _reached_by_places(gains: Sequence[NDArray[np.float64]], n_resamples: int, rng: np.random.Generator) -> int:
    """How often a random place in every item gains as much as the published one (place 0) does."""
    sizes = np.array([len(row) for row in gains])
    table = np.zeros((len(gains), sizes.max()))
    for row, values in zip(table, gains, strict=True):
        row[: len(values)] = values
    observed, slack = float(table[:, 0].sum()), 1e-9 * (1 + float(np.abs(table).sum()))
    rows, reached, batch = np.arange(len(gains)), 0, max(1, 2_000_000 // len(gains))
    for start in range(0, n_resamples, batch):
        places = (rng.random((min(batch, n_resamples - start), len(gains))) * sizes).astype(np.int64)
        reached += int((table[rows, places].sum(axis=1) >= observed - slack).sum())
    return reached
