"""The text formats that public bias sets come in, each as numbered rows: tables, JSON, JSON lines, WinoBias lines."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError

Row = dict[str, Any]
Numbered = Iterator[tuple[int, Row]]
Reader = Callable[[str, Path], Numbered]

_WINOBIAS_NAME = re.compile(r"(pro|anti)_stereotyped_type([12])")


def text_of(path: Path) -> str:
    """The file's text: UTF-8 (with or without byte-order mark), UTF-16 with one, or GB18030 for Chinese text.

    Raises ``DataError`` with the file for what cannot be read, or is in none of them.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from error
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _decoded(content, "utf-16", path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        try:
            text = content.decode("gb18030")
        except UnicodeDecodeError:
            text = ""
        beyond = [letter for letter in text if letter > "\x7f"]
        # Latin text can happen to be valid GB18030, but then hardly of ideographs and Chinese punctuation alone.
        if beyond and sum(not _is_chinese(letter) for letter in beyond) <= len(beyond) / 20:
            return text
        raise DataError(f"is not UTF-8: byte {error.start} cannot be decoded", file=path) from error


def _decoded(content: bytes, encoding: str, path: Path) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(f"is not {encoding.upper()}: byte {error.start} cannot be decoded", file=path) from error


def _is_chinese(letter: str) -> bool:
    return "\u2e80" <= letter <= "\u9fff" or "\uff00" <= letter <= "\uffef" or letter in "“”‘’—…·《》"


def table(delimiter: str) -> Reader:
    """A reader of CSV (or TSV) with a header; a row's number is its line, or the last one that it spans."""

    def read(text: str, path: Path) -> Numbered:
        csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        # newline="" leaves line ends inside quoted fields alone; csv itself accepts LF and CRLF.
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        number = 1
        try:
            twice = [name for name, count in Counter(reader.fieldnames or ()).items() if name and count > 1]
            if twice:
                raise DataError(f"has the columns {twice} more than once", file=path, row=1)
            for number, row in enumerate(reader, start=2):
                if None in row:
                    raise DataError(f"has more fields than the {len(row) - 1} columns", file=path, row=number)
                yield number, {key: value for key, value in row.items() if key}
        except csv.Error as error:
            raise DataError(f"cannot be read as a table: {error}", file=path, row=number + 1) from error

    return read


def json_lines(text: str, path: Path) -> Numbered:
    """One JSON object a line; empty lines are passed over."""
    # Not splitlines(): U+2028 and its like may stand inside a JSON text.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _mapping(_json(line, path, number), path, number)


def json_document(text: str, path: Path) -> Numbered:
    """A list of objects; StereoSet's own release nests it by task, under ``data``."""
    document = _json(text, path, None)
    if isinstance(document, dict) and isinstance(document.get("data"), dict):
        parts = document["data"].items()
        if not all(isinstance(items, list) for _, items in parts):
            raise DataError("holds under 'data' something else than lists of items by task", file=path)
        number = 0
        for task, items in parts:
            for item in items:
                number += 1
                yield number, {"task": task, **_mapping(item, path, number)}
        return
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        document = document["data"]
    if not isinstance(document, list):
        raise DataError(f"holds a JSON {type(document).__name__}; a list of items is expected", file=path)
    for number, item in enumerate(document, start=1):
        yield number, _mapping(item, path, number)


def json_or_lines(text: str, path: Path) -> Numbered:
    """Either of the two JSON forms, by what the file holds: its ending is not always the right one."""
    start = text.lstrip()
    first = start.split("\n", 1)[0]
    if start.startswith("{") and _is_json(first) and start[len(first) :].strip():
        return json_lines(text, path)
    return json_document(text, path)


def winobias_lines(text: str, path: Path) -> Numbered:
    """Numbered sentences; the file's name says their condition and type."""
    found = _WINOBIAS_NAME.match(path.name)
    if found is None:
        raise DataError(
            "the name must begin with pro_ or anti_stereotyped_type1 or 2, which says its condition", file=path
        )
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        head, _, sentence = line.strip().partition(" ")
        if line.strip():
            if not re.fullmatch(r"[0-9]{1,9}", head) or not sentence:
                raise DataError(f"must be a number, a space and a sentence, found {line!r:.200}", file=path, row=number)
            yield number, {"sentence": sentence, "condition": found[1], "type": int(found[2]), "index": int(head)}


def _json(text: str, path: Path, row: int | None) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except _Twice as error:
        raise DataError(f"has the key {error.args[0]!r} twice in one object", file=path, row=row) from error
    except RecursionError as error:
        raise DataError("is nested too deeply", file=path, row=row) from error
    except ValueError as error:  # also numbers of more digits than Python converts
        raise DataError(f"is not JSON: {error}", file=path, row=row) from error


class _Twice(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Twice(next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1))
    return found


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _mapping(item: Any, path: Path, row: int) -> Row:
    if not isinstance(item, dict):
        raise DataError(f"is a JSON {type(item).__name__}; an object is expected", file=path, row=row)
    return item
