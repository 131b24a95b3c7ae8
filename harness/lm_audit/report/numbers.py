"""Numbers as people read them: values, intervals, counts, durations. One definition for terminal, page and tables."""

from __future__ import annotations

import math
from datetime import datetime

from lm_audit.stats.covering import too_few
from lm_audit.stats.estimate import Estimate

MINUS = "\u2212"
ABSENT = "\u2013"


def number(value: float | None, digits: int = 3) -> str:
    """``value`` with ``digits`` significant digits and a true minus sign; a dash for ``None``."""
    if value is None:
        return ABSENT
    if not math.isfinite(value):
        return str(value).replace("-", MINUS)
    if value == int(value) and abs(value) < 10**6:
        return str(int(value)).replace("-", MINUS)
    size = abs(value)
    if size >= 10**6 or size < 10**-4:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    return f"{value:.{places}f}".replace("-", MINUS)


def trimmed(value: float, digits: int = 4) -> str:
    """``value`` with at most ``digits`` significant digits and no zeros that say nothing: ``0.412``, ``−0.03``."""
    return f"{value:.{digits}g}".replace("-", MINUS)


def aligned(*values: float | None) -> tuple[str, ...]:
    """The values with one common number of decimals: ``0.420``, ``0.380``, ``0.470``."""
    known = [abs(v) for v in values if v is not None and math.isfinite(v)]
    if not known or max(known) >= 10**6 or 0 < max(known) < 10**-3:
        return tuple(number(v) for v in values)
    if all(v == int(v) for v in known):
        return tuple(number(v) for v in values)
    # A share of exactly 1 gets the decimals of the shares beside it.
    places = max(0, min(4, 2 - math.floor(math.log10(max(known) * (1 - 1e-9)))))
    return tuple(ABSENT if v is None else f"{v:.{places}f}".replace("-", MINUS) for v in values)


def value_text(estimate: Estimate) -> str:
    """The value alone, with as many decimals as its interval needs."""
    return aligned(estimate.value, estimate.low, estimate.high)[0]


def interval_text(estimate: Estimate) -> str:
    """``[0.380, 0.470]``, one side open where unknown, empty where there is no interval."""
    if estimate.low is None and estimate.high is None:
        return ""
    _, low, high = aligned(estimate.value, estimate.low, estimate.high)
    left = "(" + MINUS + "\u221e" if estimate.low is None else "[" + low
    right = "\u221e)" if estimate.high is None else high + "]"
    return f"{left}, {right}"


def chance_text(estimate: Estimate) -> str:
    """What chance alone would give, empty where the metric has no such value."""
    return "" if estimate.chance is None else number(estimate.chance)


def count(value: int | None) -> str:
    """``12,034``; a dash for ``None``."""
    return ABSENT if value is None else f"{value:,}"


def sample_size(estimate: Estimate) -> str:
    """The estimate's n, with a warning where it is too small for the interval beside it."""
    shown = count(estimate.n)
    if estimate.units is not None and estimate.units != estimate.n:
        shown = f"{shown} ({estimate.units:,} independent)"
    few = too_few(estimate) and (estimate.low is not None or estimate.high is not None)
    return f"{shown}, too few for the interval" if few else shown


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
