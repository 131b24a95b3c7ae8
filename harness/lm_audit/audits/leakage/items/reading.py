"""Reads multiple-choice sets row by row: files of rows, folders of them, what `datasets` saved, sets of the hub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.audits.given.columnar_rows import COLUMNAR, NO_ROWS, columnar_rows, saved_parts, saved_rows
from lm_audit.audits.given.given_rows import files_of_part
from lm_audit.audits.hub_rows import hub_parts, hub_set
from lm_audit.audits.leakage.items.rows.block_rows import block_rows
from lm_audit.audits.leakage.items.rows.csv_rows import Table, csv_rows
from lm_audit.audits.leakage.items.rows.json_rows import json_parts, jsonl_parts
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import (
    OnDisk,
    chosen,
    ending_of,
    files_in,
    is_folder,
    is_there,
    on_disk,
    readable_file,
)

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


_SHARD = re.compile("-[0-9]+-of-[0-9]+$")
SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", *COLUMNAR)


def sources(benchmark: str | Path, *, header: str | None = None) -> Iterator[Source]:
    """The files of a benchmark in the order of their names, each read as it is iterated.

    ``benchmark`` is a file, a folder (its files, or the splits that were saved there, are its subjects), a part of
    either (``FILE:SPLIT``, ``FOLDER:CONFIG:SPLIT``), or ``owner/name[@revision][:config[:split]]`` of the hub.
    ``header`` ("yes" or "no") says of tables whether their first line names the columns. Raises ``DataError`` where
    there is nothing to read.
    """
    here = on_disk(benchmark)
    path = here.path
    if (saved := saved_parts(here)) is not None:
        for part in saved:
            place = f"{path} ({part.split})" if part.split else str(path)
            yield Source(place, part.split or stem_of(path), saved_rows(part.files))
    elif is_folder(path):
        files = [] if here.parts else _files_of(path)
        below_it = not files
        # A clone of a hub set has its files in folders of its own.
        files = files or files_of_part(here, SUFFIXES)
        if not files:
            raise DataError(f"the folder has no file of {', '.join(SUFFIXES)}", file=path)
        for file in files:
            # Of a part, files of several folders may have one name, and shards are one subject.
            below = file.relative_to(path).parent / _SHARD.sub("", stem_of(file))
            yield from _sources(OnDisk(file), header, below.as_posix() if below_it else stem_of(file))
    elif is_there(path):
        yield from _sources(OnDisk(readable_file(path), here.parts), header, stem_of(path))
    elif (named := hub_set(benchmark)) is not None:
        for found in hub_parts(named, streaming=True):
            # Of a set that is read configuration by configuration, each is a subject.
            several = found.config is not None and named.config is None
            stem = f"{found.config}/{found.split}" if several else found.split
            yield Source(f"{benchmark} ({stem})", stem, found.rows)
    else:
        raise DataError("no such file or folder, and no hub id (owner/name)", file=str(benchmark))


def _files_of(folder: Path) -> list[Path]:
    return [path for path in files_in(folder, "*") if ending_of(path) in SUFFIXES and path.name not in NO_ROWS]


def _sources(file: OnDisk, header: str | None, stem: str) -> Iterator[Source]:
    """The file as one source, or a source for each part that a JSON document holds by name."""
    path, suffix = file.path, ending_of(file.path)
    if suffix in (".json", ".jsonl"):
        parts = [*(json_parts if suffix == ".json" else jsonl_parts)(path)]
        for place in chosen([tuple(filter(None, part.name.split("/"))) for part in parts], file):
            name, rows = parts[place].name, parts[place].rows
            yield Source(f"{path} ({name})" if name else str(path), name or stem, rows)
        return
    file.whole()
    if suffix in (".csv", ".tsv"):
        table = Table([])
        rows = csv_rows(path, "\t" if suffix == ".tsv" else ",", table, header)
        yield Source(str(path), stem, rows, table)
    elif suffix in COLUMNAR:
        yield Source(str(path), stem, columnar_rows(path))
    elif suffix == ".txt":
        yield Source(str(path), stem, block_rows(path))
    else:
        raise DataError(f"is a {suffix or 'file without an ending'}; {', '.join(SUFFIXES)} can be read", file=path)


def stem_of(path: Path) -> str:
    """The file's name without its ending, as a text that can be written: names of files may be any bytes."""
    return Path(path.name.removesuffix(".gz")).stem.encode("utf-8", "backslashreplace").decode()
