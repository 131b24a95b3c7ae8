"""Reads multiple-choice sets row by row: files of rows, folders of them, what `datasets` saved, sets of the hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.audits.given.columnar_rows import COLUMNAR, NO_ROWS, columnar_rows, saved_parts, saved_rows
from lm_audit.audits.hub_rows import hub_parts, hub_set
from lm_audit.audits.leakage.items.rows.block_rows import block_rows
from lm_audit.audits.leakage.items.rows.csv_rows import Table, csv_rows
from lm_audit.audits.leakage.items.rows.json_rows import json_parts, jsonl_parts
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import files_in, is_folder, is_there, readable_file

Row = Mapping[str, Any]
Rows = Iterator[tuple[int, Row]]


@dataclass(frozen=True)
class Source:
    """One file of a benchmark: its name as the user gave it, its stem (the subject), its rows with their numbers.

    ``positional`` is true where the rows have no names and columns are called "1", "2", ...; it is known once the
    first row was read. ``names`` are the columns of a table, also of one without rows.
    """

    file: str
    stem: str
    rows: Rows
    table: Table | None = None


SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", *COLUMNAR)


def sources(benchmark: str | Path, *, header: str | None = None) -> Iterator[Source]:
    """The files of a benchmark in the order of their names, each read as it is iterated.

    ``benchmark`` is a file, a folder (its files, or the splits that were saved there, are its subjects), or
    ``owner/name[@revision][:config[:split]]`` of the hub. ``header`` ("yes" or "no") says of tables whether their first
    line names the columns. Raises ``DataError`` where there is nothing to read.
    """
    path = Path(benchmark)
    if (saved := saved_parts(path)) is not None:
        for part in saved:
            place = f"{path} ({part.split})" if part.split else str(path)
            yield Source(place, part.split or stem_of(path), saved_rows(part.files))
    elif is_folder(path):
        files = _files_of(path)
        if not files:
            raise DataError(f"the folder has no file of {', '.join(SUFFIXES)}", file=path)
        for file in files:
            yield from _sources(file, header)
    elif is_there(path):
        yield from _sources(readable_file(path), header)
    elif (named := hub_set(benchmark)) is not None:
        for found in hub_parts(named, streaming=True):
            # Of a set that is read configuration by configuration, each is a subject.
            several = found.config is not None and named.config is None
            stem = f"{found.config}/{found.split}" if several else found.split
            yield Source(f"{benchmark} ({stem})", stem, found.rows)
    else:
        raise DataError("no such file or folder, and no hub id (owner/name)", file=str(benchmark))


def _files_of(folder: Path) -> list[Path]:
    return [path for path in files_in(folder, "*") if path.suffix.lower() in SUFFIXES and path.name not in NO_ROWS]


def _sources(path: Path, header: str | None) -> Iterator[Source]:
    """The file as one source, or a source for each part that a JSON document holds by name."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        table = Table([])
        rows = csv_rows(path, "\t" if suffix == ".tsv" else ",", table, header)
        yield Source(str(path), stem_of(path), rows, table)
    elif suffix in COLUMNAR:
        yield Source(str(path), stem_of(path), columnar_rows(path))
    elif suffix == ".txt":
        yield Source(str(path), stem_of(path), block_rows(path))
    elif suffix in (".json", ".jsonl"):
        for part in (json_parts if suffix == ".json" else jsonl_parts)(path):
            named = bool(part.name)
            yield Source(
                f"{path} ({part.name})" if named else str(path), part.name if named else stem_of(path), part.rows
            )
    else:
        raise DataError(f"is a {suffix or 'file without an ending'}; {', '.join(SUFFIXES)} can be read", file=path)


def stem_of(path: Path) -> str:
    """The file's name without its ending, as a text that can be written: names of files may be any bytes."""
    return path.stem.encode("utf-8", "backslashreplace").decode()
