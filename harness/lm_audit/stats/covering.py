"""Whether an interval can be believed: the one rule by which gates, pages and terminals leave a number undecided.

An interval of few values is too narrow for what it says: of nominal 95 %, a bootstrap of 2 values covers 50 %, of 3
73 %, of 5 87 %; a test against a limit is then wrong in the rest. From :data:`FEWEST` independent units on, or
:data:`FEWEST_CLUSTERS` clusters, the intervals of this package cover (``benchmarks/coverage_intervals.py``).
"""

from __future__ import annotations

from lm_audit.stats.estimate import Estimate

CONFIDENCE = 0.9
"""How often an interval must claim to cover for anything to be concluded from it: on one side it then errs in 5 %."""

FEWEST = 8
"""Independent values from which on an interval covers, unless its method says otherwise (``Estimate.fewest``)."""

FEWEST_CLUSTERS = 6
"""Clusters from which on a clustered interval covers."""


def independent_units(estimate: Estimate) -> int | None:
    """How many independent units stand behind an estimate, ``None`` where it does not say."""
    return estimate.n if estimate.units is None else estimate.units


def fewest_units(estimate: Estimate) -> int:
    """From how many independent units on the interval of an estimate covers."""
    return FEWEST if estimate.fewest is None else estimate.fewest


def too_few(estimate: Estimate) -> bool:
    """Whether an interval stands on fewer independent units than it needs to cover what it says."""
    units = independent_units(estimate)
    return units is not None and units < fewest_units(estimate)


def shortcoming(estimate: Estimate) -> str | None:
    """Why nothing can be concluded from an estimate, ``None`` where its interval covers.

    No value, no interval, one that does not claim to cover in 90 %, an interval without width (all values equal:
    nothing tells how far chance reaches; an exact one, whose ``fewest`` is 1, may have none where its metric moves by
    steps), or too few independent units, or an unknown number of them. The reason is a phrase without a capital or a
    full stop.
    """
    if estimate.value is None:
        return f"no value: {estimate.note}"
    if estimate.low is None and estimate.high is None:
        return "it has no interval" + (f" ({estimate.note})" if estimate.note else "")
    if estimate.confidence is None or estimate.confidence < CONFIDENCE - 1e-9:
        told = "no stated share" if estimate.confidence is None else f"{100 * estimate.confidence:g} %"
        return f"its interval covers in {told} of cases, and {100 * CONFIDENCE:g} % are the least"
    if estimate.low == estimate.high and fewest_units(estimate) > 1:
        return "its interval has no width, as where all values are equal: nothing tells how far chance reaches"
    if independent_units(estimate) is None and fewest_units(estimate) > 1:
        return (
            f"it does not say how many items stand behind its interval, which covers from {fewest_units(estimate)} on"
        )
    if too_few(estimate):
        return f"{unit_count(estimate)} of the {fewest_units(estimate)} from which on its interval covers"
    return None


def unit_count(estimate: Estimate) -> str:
    """``12 items``, or ``3 independent units (of 60)`` where values hang together."""
    units = independent_units(estimate)
    if units is None:
        return "an unknown number of items"
    if estimate.units is not None and estimate.n is not None and estimate.units != estimate.n:
        return f"{units} independent unit{'' if units == 1 else 's'} ({estimate.n} values)"
    return f"{units} item{'' if units == 1 else 's'}"
