"""What an item is, beside its name: a digest that its rows carry, so that other data under one name are told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CONTENT = "content"
"""The column of a row that holds the digest of its item."""


@dataclass(frozen=True)
class OtherData:
    """Of ``shared`` items that two runs name alike, ``others`` hold something else; ``example`` names one of them."""

    others: int
    shared: int
    example: str

    def __str__(self) -> str:
        """As a reason why nothing is compared."""
        return f"other data: {self.others} of {self.shared} items of one name hold another text, such as {self.example}"


def content_digest(*parts: object) -> str:
    """Names what an item is: what a model is given and what counts as right, nothing that a model said of it.

    Texts, numbers, truth values, ``None``, and lists or mappings of them; the same parts give the same 12 digits.
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def differing(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Which pairs of rows are known to hold other items; rows without a digest, of runs before there were, are not."""
    return [
        None not in (a := (one.get(CONTENT), other.get(CONTENT))) and a[0] != a[1]
        for one, other in zip(first, second, strict=True)
    ]


def other_data(first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]]) -> OtherData | None:
    """What two cases hold under the same names, where that is another item in more than half of the names."""
    places = {str(row.get("item")): row for row in second}
    both = [(row, places[name]) for row in first if (name := str(row.get("item"))) in places]
    moved = differing([a for a, _ in both], [b for _, b in both])
    if 2 * sum(moved) <= len(both):
        return None
    return OtherData(sum(moved), len(both), str(both[moved.index(True)][0].get("item")))
