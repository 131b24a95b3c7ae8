"""Rows of CSV and TSV files, with a header or, as some benchmarks are published, without."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.audits.leakage.columns import has_known_columns
from lm_audit.audits.leakage.encodings import encoding_of
from lm_audit.audits.leakage.items import LETTERS
from lm_audit.errors import DataError

if TYPE_CHECKING:
    from lm_audit.audits.leakage.reading import Table

LOOKED_AT = 50
"""So many records decide whether a file without known column names has a header."""

_Record = tuple[int, list[str]]


def csv_rows(path: Path, delimiter: str, table: Table, header: str | None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows as mappings, their numbers those of the lines; fills ``table`` before the first.

    Without a header ("no", or where no name is known and the records read as question, options, answer letter) the
    columns are called "1", "2", ... Raises ``DataError`` for a broken table and for a column named twice.
    """
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with path.open(encoding=encoding_of(path), newline="") as handle:
        records = _records(csv.reader(handle, delimiter=delimiter, strict=True), path)
        first = list(islice(records, LOOKED_AT))
        if not first:
            return
        names = first[0][1]
        table.positional = header == "no" or (header is None and _reads_by_position(names, [r for _, r in first]))
        if table.positional:
            names = [str(k) for k in range(1, len(names) + 1)]
        else:
            first = first[1:]
            _check_names(names, path)
        table.names = names
        for line, record in chain(first, records):
            if len(record) > len(names):
                raise DataError(f"has more fields than the {len(names)} columns", file=path, row=line)
            yield line, dict(zip(names, [*record, *[None] * (len(names) - len(record))], strict=True))


def _records(reader: Any, path: Path) -> Iterator[_Record]:
    line = 0
    try:
        for record in reader:
            line = reader.line_num
            if record:
                yield line, record
    except csv.Error as error:
        raise DataError(f"cannot be read as a table: {error}", file=path, row=line + 1) from error


def _check_names(names: Sequence[str], path: Path) -> None:
    twice = next((name for k, name in enumerate(names) if name and name in names[:k]), None)
    if twice is not None:
        raise DataError(f"has two columns called {twice!r}; rename one, or read it with header=no", file=path, row=1)


def _reads_by_position(names: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Whether the first line is no header: it names nothing known, and all records end in the letter of an option."""
    width = len(names)
    if width < 4 or has_known_columns(names) or any(len(record) != width for record in records):
        return False
    letter = re.compile(f"[{LETTERS[: width - 2]}]")
    return all(letter.fullmatch(record[-1].strip()) for record in records)
