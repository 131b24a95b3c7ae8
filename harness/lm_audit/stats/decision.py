"""From an interval and an effect size to words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from lm_audit.stats.checked import checked

Category = Literal["negligible", "small", "medium", "large", "not_estimable"]

PRACTICAL = 0.2
"""Standardised effects from here on are of practical significance (Cohen 1988: small)."""

LOWER_EDGES: tuple[tuple[float, Category], ...] = ((0.8, "large"), (0.5, "medium"), (PRACTICAL, "small"))


@dataclass(frozen=True, slots=True)
class Decision:
    """Tri-state answers: None (and category "not_estimable") where an input is missing, with the reason in ``note``."""

    statistically_significant: bool | None
    practically_significant: bool | None
    category: Category
    note: str | None = None


@checked
def decide(low: float | None, high: float | None, effect: float | None) -> Decision:
    """Whether an interval excludes 0 and an effect matters.

    ``low`` and ``high`` bound a difference, ``effect`` is standardised. An interval that touches 0 is not significant;
    practical means |effect| >= 0.2; 0.2, 0.5 and 0.8 belong to the upper class. None and NaN are missing.
    """
    notes = []
    interval, size = (_present(low), _present(high)), _present(effect)
    significant = None
    if interval[0] is None or interval[1] is None:
        notes.append("no interval")
    elif interval[0] > interval[1]:
        notes.append(f"interval upside down: {low} > {high}")
    else:
        significant = interval[0] > 0 or interval[1] < 0
    if size is None:
        notes.append("no effect size")
    practical = None if size is None else abs(size) >= PRACTICAL
    return Decision(significant, practical, _category(size), "; ".join(notes) or None)


def _category(effect: float | None) -> Category:
    if effect is None:
        return "not_estimable"
    return next((name for edge, name in LOWER_EDGES if abs(effect) >= edge), "negligible")


def _present(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
