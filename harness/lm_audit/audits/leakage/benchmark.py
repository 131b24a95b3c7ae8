"""A benchmark as the audit uses it: its items or a seeded sample of them, and what was left out and why."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from lm_audit.audits.leakage.columns import Columns, Unusable, find_columns, item_of, parse_mapping
from lm_audit.audits.leakage.items import Item
from lm_audit.audits.leakage.reading import Source, csv_columns, sources
from lm_audit.errors import DataError

LISTED = 200
"""So many excluded rows are listed; all are counted."""


@dataclass(frozen=True)
class Exclusion:
    """A row that was left out: where it stands and why."""

    file: str
    row: int
    reason: str


@dataclass(frozen=True)
class Benchmark:
    """``items`` in the order of the files (a sample where ``rows`` has more usable ones), ``files`` also those without.

    ``excluded`` counts rows that could not be used, by reason; ``exclusions`` lists the first of them.
    """

    name: str
    items: tuple[Item, ...]
    files: tuple[str, ...]
    rows: int
    usable: int
    excluded: Mapping[str, int] = field(default_factory=dict)
    exclusions: tuple[Exclusion, ...] = ()

    def __repr__(self) -> str:
        return f"Benchmark({self.name!r}, {len(self.items)} of {self.usable} usable items, {self.rows} rows)"


def load_benchmark(
    benchmark: str | Path,
    *,
    columns: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    name: str | None = None,
) -> Benchmark:
    """Read a benchmark row by row and keep at most ``limit`` items, drawn by ``seed``; memory grows with that only.

    ``columns`` maps fields to columns, as ``question=Q,options=A|B|C|D,answer=Answer``; common names are found without.
    A row that is no usable item is left out, counted and listed. Raises ``DataError`` with file and row for what makes
    the whole file doubtful (no such columns, a broken line, mixed encodings), or where no item is left.
    """
    mapping = parse_mapping(columns)
    sample, files, log = _Sample(limit, seed), [], _Log()
    for file, stem, rows in sources(benchmark):
        files.append(stem)
        for number, item in _items((file, stem, rows), mapping, log):
            sample.add(item, len(files), number)
    if not sample.seen:
        why = f": {dict(log.reasons)}" if log.reasons else ""
        raise DataError(f"has no usable item in {log.rows} rows{why}", file=str(benchmark))
    named = name or Path(str(benchmark)).stem
    found = tuple(_unique(sample.items()))
    subjects = dict.fromkeys([*files, *(item.file for item in found)]) if _plain_files(found, files) else files
    return Benchmark(named, found, tuple(subjects), log.rows, sample.seen, dict(log.reasons), tuple(log.listed))


@lru_cache(maxsize=32)
def cached_benchmark(benchmark: str, columns: str | None, limit: int | None, seed: int) -> Benchmark:
    """The same, read once in a process: collection checks what the cases then use."""
    return load_benchmark(benchmark, columns=columns, limit=limit, seed=seed)


def _plain_files(items: tuple[Item, ...], files: list[str]) -> bool:
    return any(item.file not in files for item in items)


class _Log:
    """Counts rows and exclusions."""

    def __init__(self) -> None:
        self.rows = 0
        self.reasons: Counter[str] = Counter()
        self.listed: list[Exclusion] = []

    def exclude(self, file: str, row: int, reason: str) -> None:
        self.reasons[_kind(reason)] += 1
        if len(self.listed) < LISTED:
            self.listed.append(Exclusion(file, row, reason))


def _kind(reason: str) -> str:
    """The reason without its values, so that counts stay few."""
    return reason.split(" names ")[0] + " names no option" if " names " in reason else reason


def _items(source: Source, mapping: Mapping[str, str], log: _Log) -> Iterator[tuple[int, Item]]:
    file, stem, rows = source
    columns: Columns | None = None
    for number, row in rows:
        log.rows += 1
        columns = columns or find_columns(list(row), mapping, file=file)
        try:
            yield number, item_of(row, columns, file=stem, number=number)
        except Unusable as reason:
            log.exclude(file, number, str(reason))
    if columns is None and Path(file).suffix.lower() in (".csv", ".tsv"):
        find_columns(csv_columns(Path(file)), mapping, file=file)


class _Sample:
    """The ``limit`` items whose hashed places are smallest: a sample that needs no second pass and little memory."""

    def __init__(self, limit: int | None, seed: int):
        self._limit, self._seed = limit, seed
        self._kept: list[tuple[int, int, int, Item]] = []
        self.seen = 0

    def add(self, item: Item, file: int, row: int) -> None:
        self.seen += 1
        place = (-self._priority(file, row), file, row, item)
        if self._limit is None or len(self._kept) < self._limit:
            heapq.heappush(self._kept, place)
        elif place[:3] > self._kept[0][:3]:
            heapq.heapreplace(self._kept, place)

    def items(self) -> list[Item]:
        return [item for _, _, _, item in sorted(self._kept, key=lambda kept: kept[1:3])]

    def _priority(self, file: int, row: int) -> int:
        digest = blake2b(f"{self._seed}:{file}:{row}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big")


def _unique(items: list[Item]) -> Iterator[Item]:
    """Items whose keys differ: an id that a file uses twice gets a number behind it."""
    from dataclasses import replace

    seen: Counter[str] = Counter()
    for item in items:
        seen[item.key] += 1
        yield item if seen[item.key] == 1 else replace(item, id=f"{item.id}#{seen[item.key]}")
