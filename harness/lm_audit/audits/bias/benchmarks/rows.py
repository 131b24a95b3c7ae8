"""Rows of the public bias benchmarks as plain dictionaries, whatever published form they come in.

Published files, folders of them, Parquet copies and data sets of the hub give the same rows. What cannot be read as its
format raises ``DataError`` with the row's number. Rows that parse but are unusable (two blanks, no group metadata) are
kept: each benchmark excludes them by name and counts them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_audit.audits.bias.benchmarks.bbq.other_releases import in_columns_of_bbq
from lm_audit.audits.bias.benchmarks.formats import (
    Numbered,
    Reader,
    json_document,
    json_or_lines,
    lines,
    table,
    winobias_lines,
)
from lm_audit.audits.bias.benchmarks.published_columns import COLUMNS
from lm_audit.audits.bias.benchmarks.stereoset.spread import sentences_of
from lm_audit.audits.bias.benchmarks.wino.winobias_items import bracketed
from lm_audit.audits.given.columnar_rows import COLUMNAR, NO_ROWS, columnar_rows, saved_parts, saved_rows
from lm_audit.audits.given.flat_columns import unflattened
from lm_audit.audits.hub_rows import HubSet, hub_parts, hub_set, records, structured
from lm_audit.errors import DataError, DataWarning, UsageError
from lm_audit.shared.former_names import former_arguments
from lm_audit.shared.textfiles import (
    OnDisk,
    chosen_files,
    ending_of,
    files_in,
    is_file,
    is_folder,
    is_there,
    on_disk,
    readable_file,
)

Row = dict[str, Any]

KINDS = tuple(COLUMNS)

_OTHER_NAMES = {
    "bbq": {"answer_label": "label"},
    "cbbq": {"answer_label": "label"},
    "winobias": {"polarity": "condition"},
}
"""Columns that copies of a set call otherwise."""

_NESTED = {
    "stereoset": ("sentences",),
    "bbq": ("answer_info", "additional_metadata"),
    "cbbq": ("answer_info", "additional_metadata"),
    "winobias": ("tokens", "coreference_clusters"),
}
"""Columns that hold structures, and that copies store as text."""

_TARGETS = "additional_metadata.csv"
"""BBQ's file of targets, by category and example (https://github.com/nyu-mll/BBQ, folder ``supplemental``)."""

_WINOBIAS_CONFIG = re.compile(r"type([12])_(pro|anti)")


@former_arguments(path_or_hub_id="source")
def load_rows(source: str | Path, kind: str) -> list[Row]:
    """The rows of a public benchmark, from a file, a folder of its files, or a data set of the hub.

    A hub set is named ``OWNER/NAME@REVISION:CONFIG:SPLIT``, part of what is here ``FILE:SPLIT`` or
    ``FOLDER:CONFIG:SPLIT``; what is not named is read whole. Every row carries
    ``_file`` and ``_row`` (1-based) beside the published columns. Raises ``UsageError`` for an unknown kind,
    ``DataError`` for a file that is absent, broken or lacks a column.
    """
    if kind not in COLUMNS:
        raise UsageError(f"unknown kind of benchmark {kind!r}; one of {list(KINDS)}")
    here, hub = on_disk(source), hub_set(source)
    path = here.path
    if (saved := saved_parts(here)) is not None:
        rows = [row for part in saved for row in _rows(saved_rows(part.files), kind, part.split or path.name, path)]
    elif is_folder(path):
        files = _files_of(here, kind)
        rows = [row for file in files for row in _read(OnDisk(file), kind, str(file.relative_to(path)))]
    elif is_there(path):
        rows = list(_read(OnDisk(readable_file(path), here.parts), kind, path.name))
    elif hub is not None:
        rows = list(_from_hub(hub, kind))
    else:
        raise DataError("no such file or folder, and no hub id (OWNER/NAME@REVISION:CONFIG:SPLIT)", file=path)
    if not rows:
        raise DataError(f"holds no {kind} rows", file=source)
    if kind == "bbq" and hub is None:
        _add_targets(rows, path)
    return rows


def _add_targets(rows: list[Row], path: Path) -> None:
    """Put the authors' ``target_loc`` into BBQ rows, where their file lies beside or above the data.

    Warns (``DataWarning``) of a file that names none of the rows, and of examples that have two targets in it or whose
    number stands at two different rows: these then have what their rows say.
    """
    folder = path if is_folder(path) else path.parent
    places = [place / part / _TARGETS for place in (folder, folder.parent) for part in (".", "supplemental")]
    found = next((place for place in places if is_file(place)), None)
    if found is None:
        return
    targets: dict[tuple[str, str], Any] = {}
    doubtful: dict[tuple[str, str], int] = {}
    for number, row in table(",")(OnDisk(found)):
        if not {"category", "example_id", "target_loc"} <= set(row):
            raise DataError("lacks category, example_id or target_loc", file=found, row=number)
        if targets.setdefault(_example(row), row["target_loc"]) != row["target_loc"]:
            doubtful.setdefault(_example(row), number)
    named = [row for row in rows if _example(row) in targets]
    asked: dict[tuple[str, str], tuple[object, ...]] = {}
    twice = {
        _example(row)
        for row in named
        if asked.setdefault(_example(row), _asked(row)) != _asked(row) and _example(row) not in doubtful
    }
    if not named:
        warnings.warn(f"{found}: names no example of {path}, which is read without it", DataWarning, stacklevel=5)
    if doubtful:
        (category, example), number = next(iter(doubtful.items()))
        warnings.warn(
            f"{found}: gives {len(doubtful)} examples two targets, first {category} {example} in row {number}; of "
            "these no target is taken",
            DataWarning,
            stacklevel=5,
        )
    if twice:
        category, example = min(twice)
        warnings.warn(
            f"{path}: {len(twice)} numbers of examples stand at two different rows, first {category} {example}; of "
            f"these no target is taken from {found.name}",
            DataWarning,
            stacklevel=5,
        )
    for row in named:
        if _example(row) not in twice | doubtful.keys():
            row.setdefault("target_loc", targets[_example(row)])


def _example(row: Mapping[str, Any]) -> tuple[str, str]:
    """What the authors' file names a row by; tables write the number as ``3`` or ``3.0``."""
    category, number = str(row.get("category", "")), str(row.get("example_id", ""))
    return category.strip().lower(), number.strip().removesuffix(".0")


def _asked(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row.get(column) for column in ("context", "question", "ans0", "ans1", "ans2"))


def is_hub_id(source: str | Path) -> bool:
    """Whether a source can only be a data set of the hub: it has the form, and nothing of that name is here."""
    return hub_set(source) is not None


_PATTERNS = {
    "crows_pairs": ("*.csv", "*.tsv", "*.parquet", "*.arrow"),
    "stereoset": ("*.json", "*.jsonl", "*.parquet", "*.arrow"),
    "winobias": ("*_stereotyped_type*.txt*", "*.parquet", "*.arrow"),
    "winogender": ("all_sentences.tsv", "*.parquet", "*.arrow"),
    "bbq": ("*.jsonl", "*.json", "*.parquet", "*.arrow", "*.csv", "*_samples.tsv"),
    "cbbq": ("*.json", "*.jsonl", "*.parquet", "*.arrow", "*.csv"),
}
"""The files of a folder: those of the first pattern that any file has, there or in the folders below."""


def _files_of(named: OnDisk, kind: str) -> list[Path]:
    folder = named.path
    for pattern in _PATTERNS[kind]:
        globs = (pattern, f"{pattern}.gz")
        # A part may be a folder in it.
        files = (not named.parts and files_in(folder, *globs)) or files_in(folder, *globs, below=True)
        files = [file for file in files if file.name not in (_TARGETS, *NO_ROWS)]
        if files:
            return chosen_files(files, named)
    raise DataError(f"the folder has no file {_PATTERNS[kind][0]!r}, which {kind} rows come in", file=folder)


_READERS: dict[str, dict[str, Reader]] = {
    ".csv": dict.fromkeys(KINDS, table(",")),
    ".tsv": dict.fromkeys(KINDS, table("\t")),
    ".jsonl": dict.fromkeys(KINDS, lines),
    ".json": dict.fromkeys(KINDS, json_or_lines),
}
_PUBLISHED: dict[str, Reader] = {
    "crows_pairs": table(","),
    "stereoset": json_document,
    "winobias": winobias_lines,
    "winogender": table("\t"),
    "bbq": lines,
    "cbbq": json_document,
}
"""How a file is read whose ending says nothing."""


def _read(file: OnDisk, kind: str, name: str) -> Iterator[Row]:
    path, ending = file.path, ending_of(file.path)
    if ending in COLUMNAR:
        yield from _rows(columnar_rows(file.whole()), kind, name, path, config=path.parent.name)
        return
    # WinoBias' lines carry their part as an ending (.txt.dev).
    reader = _READERS.get(ending, {}).get(kind, _PUBLISHED[kind])
    yield from _rows(reader(file), kind, name, path)


def _from_hub(source: HubSet, kind: str) -> Iterator[Row]:
    for part in hub_parts(source):
        place = ":".join([str(source).split(":")[0], *filter(None, (part.config, part.split))])
        yield from _rows(part.rows, kind, place, place, config=part.config)


def _rows(numbered: Numbered, kind: str, name: str, file: str | Path, config: str | None = None) -> Iterator[Row]:
    """Rows in the published form; the first place where one is not stops the reading."""
    for number, raw in numbered:
        row: Row = {_as_published(str(key), kind, raw): value for key, value in raw.items()}
        for other, column in _OTHER_NAMES.get(kind, {}).items():
            if row.get(column) is None and row.get(other) is not None:
                row[column] = row[other]
        for column in _NESTED.get(kind, ()):
            if column in row:
                row[column] = structured(row[column])
        if kind in ("bbq", "cbbq"):
            row.update(unflattened(row, _NESTED[kind], "._/:|"))
        if kind == "bbq":
            row.update(in_columns_of_bbq(row))
        if kind == "stereoset":
            given = row.get("sentences")
            row["sentences"] = sentences_of(row) if given is None else records(given)
            if config in ("intrasentence", "intersentence"):
                row.setdefault("task", config)
        if kind == "winobias":
            row.update(_winobias(row, config, file, number))
        missing = [column for column in COLUMNS[kind] if row.get(column) is None]
        if missing:
            rows = f"{kind} rows have {list(COLUMNS[kind])}"
            hint = next((text for column, text in _HINTS.items() if column in missing), "")
            raise DataError(f"lacks {missing}; {rows}{hint}; it has {list(raw)[:20]}", file=file, row=number)
        yield {**row, "_file": name, "_row": number}


_HINTS = {
    "ans0": ", a question with its three answers in one row",
    "sentences": ", a context in one row with its three sentences: as a list of records of sentence and gold_label, or "
    "in columns stereotype, anti-stereotype and unrelated",
}


def _as_published(name: str, kind: str, row: Mapping[str, Any]) -> str:
    """A column's name, or the published one where it differs from it in white space and capitals alone."""
    name = name.lstrip("\ufeff")
    plain = "_".join(name.lower().split())
    return plain if plain in COLUMNS[kind] and plain not in row else name


def _winobias(row: Mapping[str, Any], config: str | None, file: str | Path, number: int) -> Row:
    """What the hub's form (tokens, and spans by the numbers of their tokens) lacks of the published one."""
    found: Row = {}
    named = _WINOBIAS_CONFIG.search(str(config or ""))
    if named:
        found = {"type": int(named[1]), "condition": named[2]}
    if row.get("sentence") is None and row.get("tokens") is not None:
        try:
            found["sentence"] = bracketed(row["tokens"], row.get("coreference_clusters") or ())
        except DataError as error:
            raise DataError(str(error), file=file, row=number) from error
    return found


def unique_items(names: Iterable[tuple[str, str]]) -> list[str]:
    """An id for each row from (its own id or nothing, its place): the own ones where they are there and all differ."""
    pairs = list(names)
    own = [name for name, _ in pairs]
    return own if all(own) and len(set(own)) == len(own) else [place for _, place in pairs]
