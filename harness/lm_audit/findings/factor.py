"""A difference of log-probabilities or log-odds as a factor, for the sentences of findings."""

from __future__ import annotations

import math

from lm_audit.stats.digits import number

_MOST = 700.0
"""Nats of which a float still holds the factor."""
_MANY, _FEW = 10.0**6, 10.0**-3
"""Beyond these factors nobody reads the digits."""


def times(nats: float) -> float:
    """How many times as likely ``nats`` more are; of more than a float holds, the factor of 700."""
    return math.exp(min(_MOST, nats))


def times_text(nats: float) -> str:
    """The factor as one reads it: ``2.77``, ``12,300``, ``more than a million``, ``less than a thousandth``."""
    factor = times(nats)
    if factor >= _MANY:
        return "more than a million"
    if factor <= _FEW:
        return "less than a thousandth"
    if factor >= 1000:
        return f"{float(f'{factor:.3g}'):,.0f}"
    return f"{factor:.2f}" if 1 <= factor < 10 else number(factor, 3)
