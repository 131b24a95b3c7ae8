"""Shares in the sentences of findings, as counts of a hundred."""

from __future__ import annotations


def of_hundred(share: float) -> str:
    """``share`` as a count of a hundred, with three digits: ``94.1``, ``3``, ``0.25``."""
    return f"{100 * share:.3g}"


def more_of_hundred(difference: float, what: str) -> str:
    """A difference of shares, its sign in words: ``3 more of 100 options``, ``2 fewer of 100 options``."""
    count = of_hundred(abs(difference))
    if float(count) == 0:
        return f"no more of 100 {what}"
    return f"{count} {'more' if difference > 0 else 'fewer'} of 100 {what}"
