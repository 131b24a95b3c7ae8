"""Spans: inclusive token ranges in generation coordinates, checked where they enter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lm_audit.errors import UsageError

Span = tuple[int, int]
"""``(first, last)``, both inclusive, counted from the first generated token."""


def checked_span(span: Any, length: int, name: str) -> Span:
    """The span as two integers; ``UsageError`` when it is not a pair, is reversed, or leaves ``0..length-1``."""
    try:
        first, last = (int(edge) for edge in span)
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {span!r}; a span is a pair (first, last) of token numbers") from None
    if first > last:
        raise UsageError(f"{name} is reversed: ({first}, {last}); first must not be after last")
    if first < 0 or last >= length:
        raise UsageError(f"{name} is ({first}, {last}), but the generation has the tokens 0 to {length - 1}")
    return first, last


def span_indices(span: Span) -> list[int]:
    """All token numbers of a span, in order."""
    return list(range(span[0], span[1] + 1))


def near_equal_segments(span: Span, parts: int) -> list[Span]:
    """At most ``parts`` consecutive segments of a span; the first ``length mod parts`` are one token longer."""
    length = span[1] - span[0] + 1
    return [(span[0] + start, span[0] + stop - 1) for start, stop in near_equal_ranges(length, parts)]


def near_equal_ranges(length: int, parts: int) -> list[tuple[int, int]]:
    """Half-open ranges that cut ``0..length`` into at most ``parts`` pieces, larger ones first."""
    parts = min(max(1, parts), length) if length else 0
    bounds = [0]
    for part in range(parts):
        bounds.append(bounds[-1] + length // parts + (part < length % parts))
    return list(pairwise(bounds))


def tokens_in_characters(offsets: Sequence[tuple[int, int]], first: int, last: int) -> list[int]:
    """Token numbers whose character range overlaps ``[first, last)``."""
    return [index for index, (start, stop) in enumerate(offsets) if start < last and stop > first]
