"""Numbers as people read them: values, intervals, counts, durations. One definition for terminal, page and tables."""

from __future__ import annotations

from datetime import datetime

from lm_audit.stats.covering import fewest_units, independent_units, too_few
from lm_audit.stats.digits import ABSENT, MINUS, chance_text, interval_text, is_p_value, number, p_text, value_text
from lm_audit.stats.estimate import Estimate

__all__ = [
    "ABSENT",
    "chance_text",
    "count",
    "duration",
    "few_reason",
    "few_text",
    "file_size",
    "interval_text",
    "is_p_value",
    "moment",
    "number",
    "p_text",
    "sample_size",
    "trimmed",
    "value_text",
]


def trimmed(value: float, digits: int = 4) -> str:
    """``value`` with at most ``digits`` significant digits and no zeros that say nothing: ``0.412``, ``−0.03``."""
    return f"{value:.{digits}g}".replace("-", MINUS)


def count(value: int | None) -> str:
    """``12,034``; a dash for ``None``."""
    return ABSENT if value is None else f"{value:,}"


def sample_size(estimate: Estimate) -> str:
    """The estimate's n, and of how many independent units, with a warning where the interval needs more."""
    shown = count(estimate.n)
    if estimate.units is not None and estimate.units != estimate.n:
        shown = f"{shown} ({estimate.units:,} independent)"
    few = few_text(estimate)
    return f"{shown}, {few}" if few else shown


def few_text(estimate: Estimate) -> str:
    """``too few for the interval``: what stands beside every interval of fewer units than it needs; else empty."""
    drawn = estimate.low is not None or estimate.high is not None
    return "too few for the interval" if drawn and too_few(estimate) else ""


def few_reason(estimate: Estimate) -> str:
    """The sentence behind :func:`few_text`."""
    units, fewest = independent_units(estimate), fewest_units(estimate)
    return f"{units} of the {fewest} independent items from which on this interval covers: it decides nothing"


def duration(seconds: float | None) -> str:
    """``0.4 s``, ``12 s``, ``4 min 12 s``, ``2 h 5 min``; a dash for ``None``."""
    if seconds is None or seconds < 0:
        return ABSENT
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def file_size(size: int) -> str:
    """Bytes in the unit people use: ``812 B``, ``3.4 MB``."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= step:
            return f"{size / step:.1f} {unit}"
    return f"{size} B"


def moment(text: object) -> str:
    """An ISO time stamp as ``2 March 2026, 14:05 UTC``; the text itself where it is not one."""
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return "" if text is None else str(text)
    zone = f" {when.tzname()}" if when.tzinfo else ""
    return f"{when.day} {when:%B %Y, %H:%M}{zone}"
