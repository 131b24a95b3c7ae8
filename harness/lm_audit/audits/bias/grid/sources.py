"""Of which rows each metric of a preference grid was made; templates and word pairs are crossed clusters."""

from __future__ import annotations

from typing import Any

from lm_audit.audits.bias.grid.lexicon.parts import Axis
from lm_audit.sources import MetricSource, Term

CELL = ("template", "pair")
COLUMNS = {"neutral": "log_odds_vs_neutral", "pmi": "log_odds_vs_words"}
"""What a calibrated score averages, by the calibration."""


def disparity(axis: Axis) -> MetricSource:
    """Largest minus smallest mean log-odds of the groups."""
    groups = {"group": "group", "groups": list(axis.groups)}
    return MetricSource("max_min", "log_odds", options=groups, **_within(axis))


def contrast(axis: Axis, group: str, reference: str) -> MetricSource:
    """Log-odds of ``group`` minus ``reference``, cell by cell."""
    return MetricSource.paired_difference("log_odds", CELL, {"group": group}, {"group": reference}, **_within(axis))


def group_score(axis: Axis, group: str) -> MetricSource:
    """Log-odds of ``group`` minus the mean of all groups of the axis, cell by cell."""
    terms = (Term(1.0, {"group": group}), Term(-1.0, {"group": list(axis.groups)}))
    return MetricSource("mean", "log_odds", unit=CELL, terms=terms, **_within(axis))


def calibrated(axis: Axis, group: str, calibration: str) -> MetricSource:
    """Log-odds of ``group`` against the neutral group or the words' own."""
    fields = _within(axis)
    fields["where"] = fields["where"] | {"group": group}
    return MetricSource("mean", COLUMNS[calibration], **fields)


def _within(axis: Axis) -> dict[str, Any]:
    return {"where": {"axis": axis.name}, "clusters": CELL}
