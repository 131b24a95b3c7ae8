"""Reads a benchmark: its items, or a seeded sample of them."""

from __future__ import annotations

import warnings
from pathlib import Path

from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.columns import (
    parse_mapping,
)
from lm_audit.audits.leakage.items.reading import sources, stem_of
from lm_audit.audits.leakage.items.sampling import Drawn, OnItem, Reading, Sample
from lm_audit.errors import DataWarning
from lm_audit.shared.former_names import former_arguments
from lm_audit.shared.number_checks import check_whole
from lm_audit.shared.textfiles.remembering import remembered_by_content


@former_arguments(benchmark="source")
def load_benchmark(
    source: str | Path,
    *,
    columns: str | None = None,
    limit: int | None = None,
    seed: int = 0,
    name: str | None = None,
    drawn: Drawn = "items",
    on_item: OnItem | None = None,
) -> Benchmark:
    """Read a benchmark row by row and keep at most ``limit`` items, drawn by ``seed``; ``on_item`` sees every one.

    Memory grows with that, and by 140 bytes a row, by which one that stands there again is known: it counts once.

    ``columns`` maps fields to columns, as ``question=Q,options=A|B|C|D,answer=Answer``; common names are found without.
    A row that is no usable item is left out, counted and listed. Raises ``DataError`` with file and row for what makes
    the whole file doubtful (no such columns, a broken line, mixed encodings, a printed array, answers that may count
    from 0 or 1), or where no item is left, ``UsageError`` for a limit below 1.
    """
    if limit is not None:
        check_whole("limit", limit, 1)
    mapping = parse_mapping(columns)
    reading = Reading(mapping, Sample(limit, seed, drawn), on_item)
    files = []
    for one in sources(source, header=mapping.get("header")):
        files.append(one.stem)
        reading.read(one, len(files))
    return reading.result(str(source), name or stem_of(Path(source)), list(dict.fromkeys(files)))


@remembered_by_content(maxsize=32)
def cached_benchmark(
    benchmark: str, columns: str | None, limit: int | None, seed: int, drawn: Drawn = "items"
) -> Benchmark:
    """The same, read once in a process, and again where its files changed: collection checks what the cases then use,
    and warns of what was guessed.
    """
    found = load_benchmark(benchmark, columns=columns, limit=limit, seed=seed, drawn=drawn)
    for remark in (*found.guesses, found.loss(), found.repeats()):
        if remark:
            warnings.warn(f"{benchmark}: {remark}", DataWarning, stacklevel=4)
    return found
