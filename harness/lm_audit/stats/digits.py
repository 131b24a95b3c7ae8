"""How many digits a number is written with: one rule, for terminal, page, comparison and the sentences of audits.

A number shows what its interval lets one know: the width is written with two significant digits, and value and ends
with as many decimals. Rounding never tells another story than the numbers: ends that exclude the value of chance are
written with as many decimals as it takes to see that. Tables for programs (CSV, Parquet) keep every digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lm_audit.stats.estimate import Estimate

MINUS = "\u2212"
ABSENT = "\u2013"
MOST = 9
"""Decimals at most."""
P_VALUE = "p"
"""The unit of an estimate that is a p-value."""


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


def p_text(p: float) -> str:
    """A p-value: ``0.31``, ``0.0024``, ``< 0.0001``. One beside 0.05, where a verdict turns, is not rounded onto it."""
    if p < 0.0001 or p >= 0.995:
        return "< 0.0001" if p < 0.0001 else "1"
    texts = [number(p, digits) for digits in (2, 3, 4, 6)]
    return next((text for text in texts if p == 0.05 or float(text) != 0.05), texts[-1])


def value_text(estimate: Estimate) -> str:
    """The value alone, with the digits that its interval allows."""
    if estimate.value is None:
        return ABSENT
    if is_p_value(estimate):
        return p_text(estimate.value)
    return _texts(estimate, _decimals(estimate))[0]


def interval_text(estimate: Estimate) -> str:
    """``[0.38, 0.47]``, one side open where unknown, empty where there is no interval."""
    return _texts(estimate, _decimals(estimate))[1]


def written_apart(estimate: Estimate, limits: Sequence[float]) -> tuple[str, str]:
    """Value and interval, an end that differs from one of these ``limits`` never rounded onto it (nor onto chance)."""
    if estimate.value is None or is_p_value(estimate):
        return value_text(estimate), interval_text(estimate)
    if estimate.low is None and estimate.high is None:
        same = [limit for limit in limits if apart(estimate.value, limit)]
        digits = 3
        while digits < MOST and any(number(estimate.value, digits) == number(limit, digits) for limit in same):
            digits += 1
        return number(estimate.value, digits), ""
    places = [_decimals(replace(estimate, chance=limit)) for limit in limits]
    known = [_decimals(estimate), *places]
    most = None if any(one is None for one in known) else max(one for one in known if one is not None)
    return _texts(estimate, most)


def _texts(estimate: Estimate, places: int | None) -> tuple[str, str]:
    value, low, high = _written(estimate, places)
    if estimate.low is None and estimate.high is None:
        return value, ""
    left = "(" + MINUS + "\u221e" if estimate.low is None else "[" + low
    right = "\u221e)" if estimate.high is None else high + "]"
    return value, f"{left}, {right}"


def chance_text(estimate: Estimate) -> str:
    """What chance alone would give, with the value's digits, empty where the metric has no such value."""
    chance = estimate.chance
    if chance is None:
        return ""
    places = _decimals(estimate)
    if places is None or chance == int(chance) or round(chance, places) == 0:
        return number(chance)
    return _fixed(chance, places)


def is_p_value(estimate: Estimate) -> bool:
    """Whether the estimate is a p-value: no effect, so that it is drawn on no scale and leads nothing."""
    return estimate.unit == P_VALUE


def _written(estimate: Estimate, places: int | None) -> tuple[str, str, str]:
    known = (estimate.value, estimate.low, estimate.high)
    value, low, high = (number(v) if places is None or v is None else _fixed(v, places) for v in known)
    return value, low, high


def _decimals(estimate: Estimate) -> int | None:
    """Decimals of value and ends, ``None`` where each number is written by itself."""
    known = [v for v in (estimate.value, estimate.low, estimate.high) if v is not None]
    width = _width(estimate)
    if not width or all(v == int(v) for v in known) or not 1e-7 < max(map(abs, known)) < 1e6:
        return None
    places = min(MOST, max(0, 1 - math.floor(math.log10(width))))
    while places < MOST and _hides(estimate, places):
        places += 1
    return places


def _width(estimate: Estimate) -> float:
    value, low, high = estimate.value, estimate.low, estimate.high
    if low is not None and high is not None:
        return high - low
    end = low if high is None else high
    return 0.0 if value is None or end is None else 2 * abs(value - end)


def _hides(estimate: Estimate, places: int) -> bool:
    """Whether an end that differs from the value of chance would be written like it."""
    chance = estimate.chance
    ends = (end for end in (estimate.low, estimate.high) if end is not None)
    return chance is not None and any(
        round(end, places) == round(chance, places) and apart(end, chance) for end in ends
    )


def apart(end: float, limit: float) -> bool:
    """Whether the end of an interval differs from a limit, or from chance, by more than what rounding may do."""
    return not math.isclose(end, limit, rel_tol=1e-6)


def _fixed(value: float, places: int) -> str:
    text = f"{value:.{places}f}".replace("-", MINUS)
    return text.removeprefix(MINUS) if float(text.replace(MINUS, "-")) == 0 else text
