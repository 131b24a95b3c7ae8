"""Kish's effective number: of how many equal parts an uneven whole is worth (Kish 1965, Survey Sampling)."""

from __future__ import annotations

from lm_audit.stats.inputs import Array


def effective_number(weights: Array) -> float:
    """How many equal weights are worth as much: all where they are equal, 1 where one has it all, 0 of none."""
    total = float(weights.sum())
    return total**2 / float((weights**2).sum()) if total > 0 else 0.0
