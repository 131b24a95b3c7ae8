"""Rows that a benchmark leaves out: never silently, always with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lm_audit.errors import DataError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Exclusion:
    """A row that was left out, and why."""

    file: str
    row: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file} row {self.row}: {self.reason}"


def parse_each(
    rows: Iterable[Mapping[str, Any]], parse: Callable[[Mapping[str, Any], int], Item]
) -> tuple[list[Item], list[Exclusion]]:
    """What ``parse(row, number)`` makes of each row, and the rows for which it raises ``DataError``."""
    items: list[Item] = []
    excluded: list[Exclusion] = []
    for number, row in enumerate(rows, start=1):
        try:
            items.append(parse(row, number))
        except DataError as error:
            excluded.append(Exclusion(str(row.get("_file", "")), int(row.get("_row", number)), str(error)))
    return items, excluded
