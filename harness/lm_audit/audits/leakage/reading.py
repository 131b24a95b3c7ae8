"""Reads multiple-choice sets row by row: CSV, TSV, JSONL, Parquet, folders of them, data sets of the hub."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_audit.audits.leakage.encodings import encoding_of
from lm_audit.errors import DataError, UsageError

Row = Mapping[str, Any]
Source = tuple[str, str, Iterator[tuple[int, Row]]]
"""Name of the file as the user gave it, its stem (the subject), its rows with their numbers."""

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
_HUB = re.compile(r"[\w.-]+/[\w.-]+(?:@[\w.-]+)?(?::[\w.-]*){0,2}")


def sources(benchmark: str | Path) -> Iterator[Source]:
    """The files of a benchmark in the order of their names, each read as it is iterated.

    ``benchmark`` is a file, a folder (its files are its subjects), or ``owner/name[@revision][:config[:split]]`` of the
    hub. Raises ``DataError`` where there is nothing to read.
    """
    path = Path(benchmark)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
        if not files:
            raise DataError(f"the folder has no file of {', '.join(SUFFIXES)}", file=path)
        for file in files:
            yield str(file), file.stem, _rows(file)
    elif path.is_file():
        yield str(path), path.stem, _rows(path)
    elif _HUB.fullmatch(str(benchmark)) and path.suffix.lower() not in SUFFIXES:
        yield from _hub(str(benchmark))
    else:
        raise DataError("no such file or folder, and no hub id (owner/name)", file=str(benchmark))


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return _csv(path, "\t" if suffix == ".tsv" else ",")
    if suffix == ".jsonl":
        return _jsonl(path)
    if suffix == ".parquet":
        return _parquet(path)
    raise DataError(f"is a {suffix or 'file without an ending'}; {', '.join(SUFFIXES)} can be read", file=path)


def _csv(path: Path, delimiter: str) -> Iterator[tuple[int, Row]]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    encoding = encoding_of(path)
    with path.open(encoding=encoding, newline="") as handle:
        reader = csv.DictReader(handle, delimiter=delimiter, strict=True)
        line = 1
        try:
            for row in reader:
                line = reader.line_num
                if None in row:
                    raise DataError(f"has more fields than the {len(row) - 1} columns", file=path, row=line)
                yield line, row
        except csv.Error as error:
            raise DataError(f"cannot be read as a table: {error}", file=path, row=line + 1) from error


def csv_columns(path: Path) -> list[str]:
    """The column names of a CSV or TSV file, also of one without rows."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding=encoding_of(path), newline="") as handle:
        return list(csv.DictReader(handle, delimiter=delimiter).fieldnames or [])


def _jsonl(path: Path) -> Iterator[tuple[int, Row]]:
    with path.open(encoding=encoding_of(path)) as handle:
        for number, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"is not JSON: {error}", file=path, row=number) from error
            if not isinstance(row, dict):
                raise DataError(f"is a JSON {type(row).__name__}; an object is expected", file=path, row=number)
            yield number, row


def _parquet(path: Path) -> Iterator[tuple[int, Row]]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"cannot be read as Parquet: {error}", file=path) from error


def _hub(name: str) -> Iterator[Source]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise UsageError(f"{name!r} is no file here; reading it from the hub needs the package `datasets`") from error
    where, *rest = name.split(":")
    repo, _, revision = where.partition("@")
    config = rest[0] or None if rest else None
    split = rest[1] or None if len(rest) > 1 else None
    try:
        found = load_dataset(repo, config, split=split, revision=revision or None, streaming=True)
    except Exception as error:  # the hub's client raises a dozen types; each means that the rows are not to be had
        raise DataError(f"could not be loaded from the hub: {error}", file=name) from error
    splits: Mapping[str, Iterable[Row]] = {split or "all": found} if split else found
    for part, rows in splits.items():
        yield f"{name} ({part})", part, _numbered(rows, name)


def _numbered(rows: Iterable[Row], name: str) -> Iterator[tuple[int, Row]]:
    try:
        yield from enumerate(rows, start=1)
    except Exception as error:  # see above
        raise DataError(f"could not be read from the hub: {error}", file=name) from error
