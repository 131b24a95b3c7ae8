"""Clean items, which the model cannot have seen: held against the benchmark, of which none may be one."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Collection
from dataclasses import replace

from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import Item
from lm_audit.audits.leakage.items.loading import load_benchmark
from lm_audit.errors import DataError, DataWarning

Asked = tuple[str, ...]
SHARED = "the benchmark asks it too"


def clean_of(clean: Benchmark, source: str, columns: str | None) -> Benchmark:
    """``clean`` without what the whole benchmark at ``source`` asks, of which a run may use a sample.

    Warns (``DataWarning``) of items that are left out. Raises ``DataError`` where that is more than half of them.
    """
    wanted = {asked(item) for item in clean.items}
    met: set[Asked] = set()

    def note(item: Item) -> None:
        content = asked(item)
        if content in wanted:
            met.add(content)

    load_benchmark(source, columns=columns, limit=1, on_item=note)
    kept = without(clean, met, source)
    lost = kept.excluded.get(SHARED, 0) - clean.excluded.get(SHARED, 0)
    if lost:
        warnings.warn(f"{clean.name}: {_told(lost, len(clean.items), source)}", DataWarning, stacklevel=3)
    return kept


def without(clean: Benchmark, met: Collection[Asked], benchmark: str) -> Benchmark:
    """``clean`` without the items that ask what is in ``met``; ``DataError`` where that is more than half of them."""
    kept = tuple(item for item in clean.items if asked(item) not in met)
    lost = len(clean.items) - len(kept)
    if not lost:
        return clean
    if 2 * lost > len(clean.items):
        raise DataError(
            f"{_told(lost, len(clean.items), benchmark)}; clean items are ones that the model cannot have seen",
            file=clean.name,
        )
    excluded = {**clean.excluded, SHARED: clean.excluded.get(SHARED, 0) + lost}
    return replace(clean, items=kept, places=(), excluded=excluded)


def asked(item: Item) -> Asked:
    """What an item asks, by case, width and white space aside, in whatever order its options stand."""
    return (_plain(item.question), *sorted(map(_plain, item.options)))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _told(lost: int, total: int, benchmark: str) -> str:
    return f"{lost} of {total} clean items are questions of {benchmark} too, and are left out"
