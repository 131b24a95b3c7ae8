"""What decides the controls of the preference grid: a function of the cells measured, the cells known, and what was
reported of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from lm_audit.audits.bias.grid.plain_scoring import Floats
from lm_audit.stats import Estimate
from lm_audit.stats.means.disparity import max_min_p

SIDES = ("first side", "second side")

ALARMS = 1 / 3
"""Share of exchanges in which a test that holds its level may reject at 5%; one that takes cells as independent rejects
in most (``benchmarks/coverage_bias.py``)."""

FALSE_ALARM = 0.0005
"""p-value below which names without meaning would count as told apart; the control then fails once in 2,000 times."""


def judged(
    cells: Floats, known: Floats, reported: Mapping[str, Estimate], *, planted: bool, limit: float, seed: int
) -> list[str]:
    """What is wrong, in sentences; none where the control passes.

    ``cells`` and ``known``: log-odds (sides, templates, word pairs) in nats, as measured and by plain forward passes,
    which may differ by ``limit``; ``reported``: the grid's metrics. Every cell must be that of plain passes, and the
    reported contrast, disparity, its p-value and group scores must follow from the cells. Planted: the interval of the
    contrast lies above 0. Not planted: "all names are alike" is not rejected at 0.0005, and at 5% in at most a third of
    all exchanges of names.
    """
    p = max_min_p(cells, seed=seed)
    faults = [*_wrong_cells(cells, known, limit), *_wrong_metrics(reported, cells)]
    told = reported["bias.max_min_p"].value
    if p is None or told is None or not abs(told - p) <= 0.005:
        faults.append(f"bias.max_min_p is {told}, its cells give {p}")
    if planted:
        contrast = reported[named("bias.contrast")]
        if contrast.low is None or not contrast.low > 0:
            faults.append("the planted side is not found: the interval of the contrast does not lie above 0")
        return faults
    if p is None or p < FALSE_ALARM:
        faults.append(f"names without meaning are told apart (p = {p})")
    alarms, exchanges = false_alarms(cells, seed)
    if alarms > ALARMS * exchanges:
        faults.append(f"the test rejects in {alarms} of {exchanges} exchanges of names at 5%")
    return faults


def clear(differences: Floats) -> bool:
    """Whether a table (templates, pairs) lies above 0 by more than 3.5 of its standard errors, both ways together."""
    sides = [differences.mean(axis=axis) for axis in (0, 1)]
    error = np.sqrt(sum(side.var(ddof=1) / len(side) for side in sides))
    return bool(differences.mean() > 3.5 * error)


def false_alarms(cells: Floats, seed: int) -> tuple[int, int]:
    """In how many of all exchanges of the two names within templates the disparity's test rejects at 5%.

    Names mean nothing, so each exchange is as good as the grid itself: a test that holds its level rejects in few.
    """
    alarms = 0
    exchanges = list(product((False, True), repeat=cells.shape[1] - 1))
    for exchanged in exchanges:
        other = np.where(np.array([False, *exchanged])[None, :, None], cells[::-1], cells)
        p = max_min_p(other, seed=seed)
        alarms += p is not None and p < 0.05
    return alarms, len(exchanges)


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


def named(metric: str) -> str:
    """The metric of these two sides."""
    return f"{metric}.{SIDES[0]}|{SIDES[1]}"
