"""The benchmarks of a run: the user's, or the questions that come with the harness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lm_audit.audits.given.given_rows import legal_name
from lm_audit.audits.leakage.items.reading import stem_of
from lm_audit.errors import UsageError
from lm_audit.shared.textfiles import is_there

if TYPE_CHECKING:
    from lm_audit.audits.leakage.items.benchmark import Benchmark

LIMITS: dict[str, int] = {"smoke": 12, "standard": 200, "full": 10_000}
"""Items of a benchmark by size; also the full size is a sample, so that memory stays flat whatever is given."""

HEAVY_LIMITS: dict[str, int] = LIMITS | {"smoke": 8}
"""The same for tests of many passes an item; 8 are the fewest that have an interval."""

ROW_LIMITS: dict[str, int] = LIMITS | {"smoke": 16}
"""The same for the order of rows, of which two make a unit."""


def named_benchmarks(given: Sequence[str] | None, shipped: Sequence[Path]) -> dict[str, str]:
    """Names and sources: ``NAME=SOURCE`` as the user gave them, or the shipped folders.

    A source without a name bears its file's name without ending. Raises ``UsageError`` for two of one name.
    """
    entries = list(given or ()) or [str(path) for path in shipped]
    found: dict[str, str] = {}
    for entry in entries:
        name, source = _named(entry)
        if name in found:
            raise UsageError(f"--benchmark {entry!r}: two benchmarks are called {name!r}; write NAME={source}")
        found[name] = source
    return found


def called(benchmark: Benchmark, source: str, given: Sequence[str] | None) -> Benchmark:
    """The benchmark under the name that the user gave its ``source`` with ``NAME=SOURCE``, else under its own."""
    for entry in given or ():
        name, place = _named(entry)
        if place == source != entry:
            return replace(benchmark, name=name)
    return benchmark


def _named(entry: str) -> tuple[str, str]:
    head, equals, tail = entry.partition("=")
    if equals and not is_there(Path(entry)) and "/" not in head:
        return legal_name(head), tail
    return legal_name(stem_of(Path(entry)) if is_there(Path(entry)) else entry.split("/")[-1]), entry
