"""What decides the controls of the preference grid: a function of the cells measured, the cells known, and what was
reported of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import stdtrit

from lm_audit.audits.bias.grid.controls.exchanges import TwoWay, unlike_right_ones
from lm_audit.audits.bias.grid.controls.plain_scoring import Floats
from lm_audit.audits.second_opinion import LONGEST, SHORTEST, Level
from lm_audit.stats import Estimate, crossed_contrast, crossed_equivalence, max_min_permutation
from lm_audit.stats.means.disparity import max_min_disparity, max_min_p

SIDES = ("first side", "second side")

MARGIN = 0.5
"""Nats of the control's test of equivalence."""

APART = 2.5
"""Half widths by which two sides are moved apart, where the interval of the disparity must be that of the contrast."""

FALSE_ALARM = 0.0005
"""p-value below which names without meaning would count as told apart; the control then fails once in 2,000 times."""


def judged(
    cells: Floats, known: Floats, reported: Mapping[str, Estimate], *, planted: bool, limit: float, seed: int
) -> list[str]:
    """What is wrong, in sentences; none where the control passes.

    ``cells`` and ``known``: log-odds (sides, templates, word pairs) in nats, as measured and by plain forward passes,
    which may differ by ``limit``; ``reported``: the grid's metrics. Every cell must be that of plain passes; the
    reported contrast, disparity and group scores, their numbers of cells and units, and the p-value of each test must
    follow from the cells. Planted: the interval of the contrast lies above 0. Not planted: "all names are alike" is not
    rejected at 0.0005, and of exchanged names each test says what a right test does
    (:mod:`lm_audit.audits.bias.grid.controls.exchanges`).
    """
    faults = [
        *_wrong_cells(cells, known, limit),
        *_wrong_metrics(reported, cells),
        *_wrong_counts(reported, cells),
        *_wrong_tests(reported, cells, seed),
        *_wrong_interval(reported["bias.max_min_disparity"], cells, seed),
    ]
    if planted:
        contrast = reported[named("bias.contrast")]
        if contrast.low is None or not contrast.low > 0:
            faults.append("the planted side is not found: the interval of the contrast does not lie above 0")
        return faults
    p = max_min_p(cells, seed=seed)
    if p is None or p < FALSE_ALARM:
        faults.append(f"names without meaning are told apart (p = {p})")
    if np.isfinite(cells).all():
        faults += unlike_right_ones(cells[0] - cells[1], seed)
    return faults


def wrong_effects(shown: Mapping[str, object], cells: Floats) -> list[str]:
    """What the table of contrasts shows of the one contrast and its cells do not give: nats, the ratio of odds, and the
    mean in standard deviations over pairs (``d_z``) and over both sides' pairs together (``weat``)."""
    first, second = cells.mean(axis=1)
    mean = float((first - second).mean())
    known = {"difference": mean, "odds_ratio": float(np.exp(mean))}
    for name, pairs in (("d_z", first - second), ("weat", np.concatenate([first, second]))):
        deviation = float(pairs.std(ddof=1))
        # Cells that are all alike have no such effect, and are told by what differs from plain passes.
        known |= {name: mean / deviation} if deviation > 1e-6 * (1 + abs(mean)) else {}
    return [
        f"the table of contrasts shows {name} {told}, its cells give {value:.4g}"
        for name, value in known.items()
        for told in [shown.get(name)]
        if not isinstance(told, float) or not abs(told - value) <= 1e-6 * (1 + abs(value))
    ]


def chance_levels(cells: Floats) -> dict[str, Level]:
    """What chance gives of two groups that are alike: no score, and the mean of |error| of a normal contrast.

    The reported mean is that of 2,000 draws, whose standard error is 1.7 %.
    """
    mean = TwoWay.of(cells[0] - cells[1]).error * float(np.sqrt(2 / np.pi))
    scores: dict[str, Level] = {f"bias.group_score.{side}": 0.0 for side in SIDES}
    return {**scores, "bias.max_min_disparity": (0.93 * mean, 1.07 * mean)}


def clear(differences: Floats) -> bool:
    """Whether a table (templates, pairs) lies above 0 by more than 3.5 of its standard errors, both ways together."""
    sides = [differences.mean(axis=axis) for axis in (0, 1)]
    error = np.sqrt(sum(side.var(ddof=1) / len(side) for side in sides))
    return bool(differences.mean() > 3.5 * error)


def _wrong_cells(cells: Floats, known: Floats, limit: float) -> list[str]:
    wrong = ~(np.abs(cells - known) <= limit)
    if not wrong.any():
        return []
    furthest = float(np.nanmax(np.abs(cells - known), initial=0.0))
    return [
        f"{int(wrong.sum())} of {known.size} cells are not those of plain forward passes (up to {furthest:.2f} nats)"
    ]


def _wrong_metrics(reported: Mapping[str, Estimate], cells: Floats) -> list[str]:
    """Reported numbers that do not follow from the cells, by formulas of their own."""
    first, second = (float(value) for value in cells.mean(axis=(1, 2)))
    middle = (first + second) / 2
    expected = {
        named("bias.contrast"): first - second,
        "bias.max_min_disparity": abs(first - second),
        f"bias.group_score.{SIDES[0]}": first - middle,
        f"bias.group_score.{SIDES[1]}": second - middle,
    }
    faults = []
    for name, value in expected.items():
        found = reported[name].value
        if found is None or not abs(found - value) <= 1e-6 * (1 + abs(value)):
            faults.append(f"{name} is {found}, its cells give {value:.3f}")
    return faults


def _wrong_counts(reported: Mapping[str, Estimate], cells: Floats) -> list[str]:
    """Numbers of cells and of independent units that are not those of the table."""
    sides, templates, pairs = cells.shape
    table = templates * pairs
    expected = {named("bias.contrast"): table, "bias.max_min_disparity": sides * table}
    expected |= {f"bias.group_score.{side}": table for side in SIDES}
    return [
        f"{name} is said to rest on {found.n} cells and {found.units} units, not on {n} and {min(templates, pairs)}"
        for name, n in expected.items()
        for found in [reported[name]]
        if (found.n, found.units) != (n, min(templates, pairs))
    ]


def _wrong_disparity(reported: Estimate, cells: Floats) -> list[str]:
    """An interval of the disparity that is not about that of the contrast, of two groups that are far apart."""
    if reported.value is None or reported.low is None or reported.high is None:
        return []
    half = _half_apart(cells[0] - cells[1])
    reach = max(reported.value - reported.low, reported.high - reported.value)
    if SHORTEST * half <= reach <= LONGEST * half:
        return []
    return [f"bias.max_min_disparity: its interval reaches {reach:.3f} from its value, that of the contrast {half:.3f}"]


def _half_apart(differences: Floats) -> float:
    """Half the width of the interval of a difference that is far from 0, by a t whose degrees of freedom count
    templates, pairs and what is left, also where one of them is all there is: right ones reach 0.91 to 1.17 times as
    far."""
    rows, columns = differences.shape
    whole = TwoWay.of(differences)
    by_row, by_column = differences.mean(axis=1), differences.mean(axis=0)
    rest = differences - by_row[:, None] - by_column + whole.mean
    freedom = np.array([rows - 1, columns - 1, (rows - 1) * (columns - 1)])
    parts = np.array([by_row.var(ddof=1) / rows, by_column.var(ddof=1) / columns, 0.0])
    parts[2] = (rest**2).sum() / freedom[2] / differences.size
    df = max(1.0, float(whole.error**4 / (parts**2 / freedom).sum()))
    return float(stdtrit(df, 0.975)) * whole.error


def _wrong_interval(reported: Estimate, cells: Floats, seed: int) -> list[str]:
    """An interval of the disparity that does not follow from the cells.

    No other formula is at hand where the sides lie near each other or the cells hold hardly any degree of freedom: it
    must be that which the grid gives for these cells, and the grid's must be right for the same cells moved apart.
    """
    if reported.value is None:
        return []
    again = max_min_disparity(cells, seed=seed).estimate
    faults = [
        f"bias.max_min_disparity reaches to {told}, its cells give {known}"
        for told, known in ((reported.low, again.low), (reported.high, again.high))
        if not (told == known or (told is not None and known is not None and abs(told - known) <= 1e-6 * (1 + known)))
    ]
    if not np.isfinite(cells).all() or not TwoWay.of(cells[0] - cells[1]).half > 0:
        return faults
    apart = moved_apart(cells)
    return [*faults, *_wrong_disparity(max_min_disparity(apart, seed=seed).estimate, apart)]


def moved_apart(cells: Floats) -> Floats:
    """The cells with sides so far from each other that 0 has no part in the interval, and templates that differ most.

    Where templates, pairs and what is left cancel out, a degree of freedom may be all that there is. A thousandth of a
    t's draws then decide how far an interval reaches, and two right ones lie as far apart as a right and a halved one.
    """
    differences = cells[0] - cells[1]
    steps = 4 * float(differences.std()) * np.linspace(-1, 1, len(differences))
    apart = cells.copy()
    apart[0] += steps[:, None] - differences.mean()
    apart[0] += APART * _half_apart(apart[0] - apart[1])
    return apart


def _wrong_tests(reported: Mapping[str, Estimate], cells: Floats, seed: int) -> list[str]:
    """p-values that the grid's tests do not give for these cells."""
    table = cells[0] - cells[1]
    contrast = crossed_contrast(table, method="t", seed=seed)
    expected = {
        "bias.max_min_p": max_min_p(cells, seed=seed),
        "bias.max_min_permutation_p": max_min_permutation(cells, seed=seed).value,
        named("bias.holm_p"): contrast.two_way.value,
        named("bias.sign_flip_holm_p"): contrast.sign_flip.larger.value,
        named("bias.equivalence_p"): crossed_equivalence(table, MARGIN, method="t", seed=seed).value,
    }
    return [
        f"{name} is {told}, its cells give {p}"
        for name, p in expected.items()
        for told in [reported[name].value]
        if not (told == p or (told is not None and p is not None and abs(told - p) <= 0.005))
    ]


def named(metric: str) -> str:
    """The metric of these two sides."""
    return f"{metric}.{SIDES[0]}|{SIDES[1]}"
