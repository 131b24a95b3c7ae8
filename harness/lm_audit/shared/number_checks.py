"""Numbers and choices from options, configs and callers: one set of rules, and errors that name the field.

NaN, infinity, truth values and numbers beyond a limit are no numbers here unless they are asked for; 0 is a number.
"""

from __future__ import annotations

import math
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeGuard

from lm_audit.errors import UsageError

LARGEST = 2**63 - 1
LARGEST_SEED = 2**32 - 1
"""What numpy, torch and the Python library take alike."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether ``value`` is a finite number; truth values are none, nor are whole numbers larger than any float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def check_whole(name: str, value: object, least: int = 0, most: int = LARGEST) -> None:
    """``UsageError`` unless ``value`` is a whole number from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise UsageError(f"{name} {_wanted_whole(least, most)}, got {shown_shortly(value)}")


def check_number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> None:
    """``UsageError`` unless ``value`` is a finite number within the limits."""
    if not _fits(value, above, least, below, most):
        raise UsageError(f"{name} must be a number{_limits(above, least, below, most)}, got {shown_shortly(value)}")


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """``UsageError``, with the nearest one, unless ``value`` is among ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        hint = suggestion(value, allowed) if isinstance(value, str) else ""
        raise UsageError(f"{name} must be {' or '.join(map(repr, allowed))}, got {shown_shortly(value)}{hint}")


def check_seed(name: str, value: object) -> None:
    """``UsageError`` unless ``value`` can be a seed everywhere."""
    check_whole(name, value, 0, LARGEST_SEED)


def whole_number(least: int, most: int = LARGEST) -> Callable[[str], int]:
    """A type for ``argparse`` and ``AuditOption``: whole numbers in digits, anything else refused by name."""

    def parse(text: str) -> int:
        number = int(text) if _WHOLE.fullmatch(text.strip()) else None
        if number is None or not least <= number <= most:
            raise ArgumentTypeError(f"{shown_shortly(text)} is not {_whole_words(least, most)}")
        return number

    return parse


def real_number(
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    unit: str = "",
) -> Callable[[str], float]:
    """The same for numbers; ``infinite`` takes "inf" as well, ``unit`` stands in the message."""
    wanted = f"a number{f' of {unit}' if unit else ''}{_limits(above, least, below, most)}"

    def parse(text: str) -> float:
        if infinite and text.strip() == "inf":
            return math.inf
        value = float(text) if _DECIMAL.fullmatch(text.strip()) else math.nan
        if not _fits(value, above, least, below, most):
            raise ArgumentTypeError(f"{shown_shortly(text)} is not {wanted}")
        return value

    return parse


def seed_number() -> Callable[[str], int]:
    """The same for seeds."""
    return whole_number(0, LARGEST_SEED)


def filled(text: str) -> str:
    """The same for text that is not empty, since an empty value would count as none given."""
    if not text.strip():
        raise ArgumentTypeError("the value is empty; leave the option out, or give it one")
    return text


def suggestion(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` with the nearest of ``known``, empty where none is near; case and dashes do not count."""
    near = nearest(name, known, 0.5)
    return f"; did you mean {near!r}?" if near else ""


def nearest(name: str, known: Iterable[str], cutoff: float) -> str | None:
    """The nearest of ``known`` at least ``cutoff`` alike (0 to 1); case, dashes and white space do not count."""
    folded: dict[str, str] = {}
    for one in known:
        folded.setdefault(_folded(one), one)
    near = get_close_matches(_folded(name[:200]), folded, 1, cutoff)
    return folded[near[0]] if near else None


def _folded(name: str) -> str:
    return re.sub(r"[-\s]+", "_", name.strip().casefold())


def _fits(given: object, above: float | None, least: float | None, below: float | None, most: float | None) -> bool:
    if isinstance(given, bool) or not isinstance(given, Real):
        return False
    value: Any = given
    return bool(
        abs(value) <= sys.float_info.max
        and (above is None or value > above)
        and (least is None or value >= least)
        and (below is None or value < below)
        and (most is None or value <= most)
    )


def _limits(above: float | None, least: float | None, below: float | None, most: float | None) -> str:
    limits = ((above, "above"), (least, "at least"), (below, "below"), (most, "at most"))
    words = " and ".join(f"{word} {limit:g}" for limit, word in limits if limit is not None)
    return f" {words}" if words else ""


def _wanted_whole(least: int, most: int) -> str:
    return f"must be at least {least}" + ("" if most == LARGEST else f" and at most {most}") + ", a whole number"


def _whole_words(least: int, most: int) -> str:
    return f"a whole number of at least {least}" if most == LARGEST else f"a whole number from {least} to {most}"


def shown_shortly(value: object) -> str:
    """``repr`` of a value, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:60]}..."
