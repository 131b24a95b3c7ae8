"""Tables with a delimiter (CSV, TSV): records, and rows by the names in the first line."""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError, DataWarning
from lm_audit.shared.textfiles.plain import opened

Record = tuple[int, list[str]]
Numbered = tuple[int, dict[str, Any]]


def table_records(path: str | Path, delimiter: str) -> Iterator[Record]:
    """Pairs (line, or the last one that it spans; fields) of every record that is not empty.

    Fields may be quoted and then hold line breaks. ``DataError`` with the row for a quote that is never closed. A table
    that ``delimiter`` does not divide and another one does (spreadsheets of many countries write CSV with ``;``) is
    read by that, with a ``DataWarning``.
    """
    path, line = Path(path), 0
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    delimiter = _delimiter(path, delimiter)
    with opened(path) as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        try:
            for record in reader:
                line = reader.line_num
                if record:
                    yield line, record
        except csv.Error as error:
            raise DataError(f"cannot be read as a table: {error}", file=path, row=line + 1) from error


def _delimiter(path: Path, expected: str) -> str:
    """The ``expected`` delimiter, or the one that divides the first records evenly where that does not."""
    with opened(path) as stream:
        begin = stream.read(_LOOKED_AT)
        whole = len(begin) < _LOOKED_AT
    widths = {delimiter: _width(begin, delimiter, whole) for delimiter in (expected, *_DELIMITERS)}
    if widths[expected] > 1:
        return expected
    found = max(_DELIMITERS, key=lambda delimiter: widths[delimiter])
    if widths[found] < 2:
        return expected
    names = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
    warnings.warn(
        f"{path}: divided by {names[found]}, not by {names[expected]} as its ending says; read so",
        DataWarning,
        stacklevel=2,
    )
    return found


_DELIMITERS = (",", ";", "\t", "|")
_LOOKED_AT = 2**16
"""So many characters say what divides the fields."""


def _width(begin: str, delimiter: str, whole: bool) -> int:
    """How many fields each record has, 0 where they differ in that or cannot be read."""
    try:
        records = [record for record in csv.reader(io.StringIO(begin, newline=""), delimiter=delimiter) if record]
    except csv.Error:
        return 0
    widths = {len(record) for record in (records if whole or len(records) < 2 else records[:-1])}
    return widths.pop() if len(widths) == 1 else 0


def table_rows(path: str | Path, delimiter: str) -> Iterator[Numbered]:
    """The records as mappings by the names in the first; a field that is not there is None.

    ``DataError`` as :func:`table_records`, for a column named twice and for a record with more fields than names.
    """
    records = table_records(path, delimiter)
    _, names = next(records, (1, []))
    check_names(names, Path(path))
    for line, record in records:
        yield line, named_record(names, record, Path(path), line)


def check_names(names: Sequence[str], path: Path, hint: str = "rename one") -> None:
    """``DataError`` for a name that stands twice; columns without a name may be several."""
    twice = next((name for k, name in enumerate(names) if name and name in names[:k]), None)
    if twice is not None:
        raise DataError(f"has two columns called {twice[:60]!r}; {hint}", file=path, row=1)


def named_record(names: Sequence[str], record: Sequence[str], path: Path, line: int) -> dict[str, Any]:
    """One record by the names of its columns."""
    if len(record) > len(names):
        raise DataError(f"has more fields than the {len(names)} columns", file=path, row=line)
    return dict(zip(names, [*record, *[None] * (len(names) - len(record))], strict=True))
