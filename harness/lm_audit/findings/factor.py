"""A difference of log-probabilities or log-odds as a factor, for the sentences of findings."""

from __future__ import annotations

import math

_MOST = 700.0
"""Nats of which a float still holds the factor."""


def times(nats: float) -> float:
    """How many times as likely ``nats`` more are; of more than a float holds, the factor of 700."""
    return math.exp(min(_MOST, nats))
