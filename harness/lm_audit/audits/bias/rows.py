"""Rows of the public bias benchmarks, read from their published files as plain dictionaries.

A file that cannot be read as its format raises ``DataError`` with the row's number. Rows that parse but are unusable
(two blanks, no group metadata) are kept: each benchmark excludes them by name and counts them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError, UsageError

Row = dict[str, Any]

_COLUMNS = {
    "crows_pairs": ("sent_more", "sent_less", "stereo_antistereo", "bias_type"),
    "stereoset": ("target", "bias_type", "context", "sentences"),
    "winobias": ("sentence", "condition", "type"),
    "winogender": ("sentid", "sentence"),
    "bbq": ("question_polarity", "context_condition", "context", "question", "ans0", "ans1", "ans2", "label"),
    "cbbq": ("question_polarity", "context_condition", "context", "question", "ans0", "ans1", "ans2", "label"),
}
KINDS = tuple(_COLUMNS)


def load_rows(path_or_hub_id: str | Path, kind: str) -> list[Row]:
    """The rows of a public benchmark, from a file, a folder of its files, or a hub data set.

    Every row carries ``_file`` and ``_row`` (1-based) beside the published columns. Raises ``UsageError`` for an
    unknown kind, ``DataError`` for a file that is absent, broken or lacks a column.
    """
    if kind not in _COLUMNS:
        raise UsageError(f"unknown kind of benchmark {kind!r}; one of {list(KINDS)}")
    path = Path(path_or_hub_id)
    if path.is_dir():
        rows = [row for file in _files_of(path, kind) for row in _read(file, kind)]
    elif path.is_file():
        rows = list(_read(path, kind))
    elif is_hub_id(path_or_hub_id):
        rows = _from_hub(str(path_or_hub_id), kind)
    else:
        raise DataError("no such file or folder", file=path_or_hub_id)
    if not rows:
        raise DataError(f"holds no {kind} rows", file=path_or_hub_id)
    return rows


def is_hub_id(path_or_hub_id: str | Path) -> bool:
    """Whether a source can only be a data set of the hub: ``owner/name``, and nothing of that name on this machine."""
    path = Path(path_or_hub_id)
    relative = not path.is_absolute() and not str(path_or_hub_id).startswith(".")
    return "/" in str(path_or_hub_id) and relative and not path.suffix and not path.exists()


_PATTERNS = {
    "crows_pairs": "*.csv",
    "stereoset": "*.json",
    "winobias": "*_stereotyped_type*.txt*",
    "winogender": "all_sentences.tsv",
    "bbq": "*.jsonl",
    "cbbq": "*.json",
}


def _files_of(folder: Path, kind: str) -> list[Path]:
    files = sorted(folder.glob(_PATTERNS[kind]))
    if not files:
        raise DataError(f"the folder has no file {_PATTERNS[kind]!r}, which {kind} rows come in", file=folder)
    return files


def _read(path: Path, kind: str) -> Iterator[Row]:
    try:
        # utf-8-sig: several published files begin with a byte-order mark.
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from error
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8: byte {error.start} cannot be decoded", file=path) from error
    for number, row in _READERS[kind](text, path):
        row = {key.lstrip("\ufeff"): value for key, value in row.items()}
        missing = [column for column in _COLUMNS[kind] if row.get(column) is None]
        if missing:
            raise DataError(f"lacks {missing}; {kind} rows have {list(_COLUMNS[kind])}", file=path, row=number)
        yield {**row, "_file": path.name, "_row": number}


def _read_table(delimiter: str) -> Callable[[str, Path], Iterator[tuple[int, Row]]]:
    def read(text: str, path: Path) -> Iterator[tuple[int, Row]]:
        # newline="" leaves line ends inside quoted fields alone; csv itself accepts LF and CRLF.
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        number = 1
        try:
            for number, row in enumerate(reader, start=2):
                if None in row:
                    raise DataError(f"has more fields than the {len(row) - 1} columns", file=path, row=number)
                yield number, {key: value for key, value in row.items() if key}
        except csv.Error as error:
            raise DataError(f"cannot be read as a table: {error}", file=path, row=number + 1) from error

    return read


def _read_jsonl(text: str, path: Path) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _mapping(_json(line, path, number), path, number)


def _read_json(text: str, path: Path) -> Iterator[tuple[int, Row]]:
    document = _json(text, path, None)
    if isinstance(document, dict) and "data" in document:  # StereoSet's own release nests by task
        document = [{**item, "task": task} for task, items in document["data"].items() for item in items]
    if not isinstance(document, list):
        raise DataError(f"holds a JSON {type(document).__name__}; a list of items is expected", file=path)
    for number, item in enumerate(document, start=1):
        yield number, _mapping(item, path, number)


def _read_winobias(text: str, path: Path) -> Iterator[tuple[int, Row]]:
    condition, _, rest = path.name.partition("_stereotyped_type")
    if condition not in ("pro", "anti") or rest[:1] not in ("1", "2"):
        raise DataError(
            "the name must begin with pro_ or anti_stereotyped_type1 or 2, which says its condition", file=path
        )
    for number, line in enumerate(text.splitlines(), start=1):
        head, _, sentence = line.strip().partition(" ")
        if line.strip():
            if not head.isdigit() or not sentence:
                raise DataError(f"must be a number, a space and a sentence, found {line!r}", file=path, row=number)
            yield number, {"sentence": sentence, "condition": condition, "type": int(rest[0]), "index": int(head)}


_READERS: dict[str, Callable[[str, Path], Iterator[tuple[int, Row]]]] = {
    "crows_pairs": _read_table(","),
    "stereoset": _read_json,
    "winobias": _read_winobias,
    "winogender": _read_table("\t"),
    "bbq": _read_jsonl,
    "cbbq": _read_json,
}


def _json(text: str, path: Path, row: int | None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"is not JSON: {error}", file=path, row=row) from error


def _mapping(item: Any, path: Path, row: int) -> Row:
    if not isinstance(item, dict):
        raise DataError(f"is a JSON {type(item).__name__}; an object is expected", file=path, row=row)
    return item


def _from_hub(hub_id: str, kind: str) -> list[Row]:
    try:
        from datasets import concatenate_datasets, load_dataset
    except ImportError as error:
        raise UsageError(f"{hub_id!r} is no file here; reading it from the hub needs the package `datasets`") from error
    name, _, revision = hub_id.partition("@")
    try:
        splits = load_dataset(name, revision=revision or None)
    except Exception as error:  # the hub's client raises a dozen types; each means that the rows are not to be had
        raise DataError(f"could not be loaded from the hub: {error}", file=hub_id) from error
    table = concatenate_datasets(list(splits.values()))
    missing = [column for column in _COLUMNS[kind] if column not in table.column_names]
    if missing:
        raise DataError(f"lacks {missing}; {kind} rows have {list(_COLUMNS[kind])}", file=hub_id)
    return [{**row, "_file": hub_id, "_row": number} for number, row in enumerate(table, start=1)]
