"""Where canaries go in a corpus, and how many a corpus may hold."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from lm_audit.errors import UsageError

WARN_SHARE = Fraction(8, 1000)
REFUSE_SHARE = Fraction(1, 100)


def insertion_positions(num_documents: int, num_canaries: int) -> list[int]:
    """``floor(i n / k)`` for i in 0 .. k-1: the index of the document before which canary i goes.

    Gaps, the one at the tail included, differ by at most one, so each lies within half and twice the average.
    Raises ``UsageError`` for negative counts or more canaries than documents (gaps would be empty).
    """
    _check_counts(num_documents, num_canaries)
    if num_canaries > num_documents:
        raise UsageError(f"{num_canaries} rows of canaries do not fit between {num_documents} documents; add documents")
    return [i * num_documents // num_canaries for i in range(num_canaries)]


def gaps(positions: Sequence[int], num_documents: int) -> list[int]:
    """Documents before the first canary (if any), between neighbours, and after the last one."""
    if not positions:
        return [num_documents]
    inner = [b - a for a, b in zip(positions, [*positions[1:], num_documents], strict=True)]
    return [positions[0], *inner] if positions[0] else inner


def gaps_are_even(positions: Sequence[int], num_documents: int) -> bool:
    """Whether every gap lies within half and twice the average; up to one canary always does."""
    if len(positions) <= 1:
        return True
    average = Fraction(num_documents, len(positions))
    return all(average / 2 <= gap <= 2 * average for gap in gaps(positions, num_documents))


def canary_ratio(num_documents: int, num_canaries: int, *, denominator: Literal["total", "corpus"] = "total") -> float:
    """Share of unique canaries: k / (n + k) with ``"total"`` (the one that binds), k / n with ``"corpus"``.

    Raises ``UsageError`` for negative counts, an empty corpus or another denominator.
    """
    _check_counts(num_documents, num_canaries)
    if denominator not in ("total", "corpus"):
        raise UsageError(f"denominator must be 'total' or 'corpus', got {denominator!r}")
    whole = num_documents + num_canaries if denominator == "total" else num_documents
    if whole == 0:
        raise UsageError("an empty corpus has no canary ratio; give at least one document")
    return num_canaries / whole


def check_ratio(share: float) -> Literal["ok", "warn"]:
    """``"ok"`` up to 0.8%, ``"warn"`` above; raises ``UsageError`` above 1% (or for a share outside 0 .. 1)."""
    if not 0 <= share <= 1:
        raise UsageError(f"a canary ratio lies between 0 and 1, got {share!r}")
    if share > float(REFUSE_SHARE):
        raise UsageError(
            f"canaries are {share:.3%} of the corpus, above the limit of 1%: they would change what the model learns; "
            "some 100 documents a canary are needed: use fewer canaries or more documents"
        )
    return "warn" if share > float(WARN_SHARE) else "ok"


def _check_counts(num_documents: int, num_canaries: int) -> None:
    if num_documents < 0 or num_canaries < 0:
        raise UsageError(f"counts must not be negative, got {num_documents} documents and {num_canaries} canaries")
