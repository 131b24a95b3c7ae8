"""Rows of CSV and TSV files, with a header or, as some benchmarks are published, without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from lm_audit.audits.leakage.items.columns import has_known_columns
from lm_audit.audits.leakage.items.item import LETTERS
from lm_audit.shared.textfiles import table_records
from lm_audit.shared.textfiles.tables import check_names, named_record

LOOKED_AT = 50
"""So many records decide whether a file without known column names has a header."""


@dataclass
class Table:
    """What a table's first line said."""

    names: list[str]
    positional: bool = False


def csv_rows(path: Path, delimiter: str, table: Table, header: str | None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows as mappings, their numbers those of the lines; fills ``table`` before the first.

    Without a header ("no", or where no name is known and the records read as question, options, answer letter) the
    columns are called "1", "2", ... Raises ``DataError`` for a broken table and for a column named twice.
    """
    records = table_records(path, delimiter)
    first = list(islice(records, LOOKED_AT))
    if not first:
        return
    names = first[0][1]
    table.positional = header == "no" or (header is None and _reads_by_position(names, [r for _, r in first]))
    if table.positional:
        names = [str(k) for k in range(1, len(names) + 1)]
    else:
        first = first[1:]
        check_names(names, path, "rename one, or read it with header=no")
    table.names = names
    for line, record in chain(first, records):
        yield line, named_record(names, record, path, line)


def _reads_by_position(names: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Whether the first line is no header: it names nothing known, and all records end in the letter of an option."""
    width = len(names)
    if width < 4 or has_known_columns(names) or any(len(record) != width for record in records):
        return False
    letters = LETTERS[: width - 2]
    ends = {record[-1].strip() for record in records}
    return ends <= set(letters) or ends <= set(letters.lower())
