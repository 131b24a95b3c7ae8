"""The text formats that public bias sets come in, each as numbered rows: tables, JSON, JSON lines, WinoBias lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from lm_audit.audits.given.json_documents import document_rows
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import OnDisk, json_lines, objects_of_lines, parse_json, table_rows, text_of
from lm_audit.shared.textfiles.plain import lines_of

Row = dict[str, Any]
Numbered = Iterator[tuple[int, Row]]
Reader = Callable[[OnDisk], Numbered]

_WINOBIAS_NAME = re.compile(r"(pro|anti)_stereotyped_type([12])")


def table(delimiter: str) -> Reader:
    """A reader of CSV (or TSV) with a header; a row's number is its line, or the last one that it spans."""

    def read(file: OnDisk) -> Numbered:
        for number, row in table_rows(file.whole(), delimiter):
            yield number, {name: value for name, value in row.items() if name}

    return read


def lines(file: OnDisk) -> Numbered:
    """An object a line."""
    return json_lines(file.whole())


def json_document(file: OnDisk) -> Numbered:
    """A list of objects; StereoSet's own release nests it by task, under ``data``."""
    yield from _of_document(parse_json(text_of(file.path), file.path, None), file)


def _of_document(document: object, file: OnDisk) -> Numbered:
    for name, number, row in document_rows(document, file):
        yield number, {"task": name, **row} if name else row


def json_or_lines(file: OnDisk) -> Numbered:
    """Either of the two JSON forms, by what the file holds: its ending is not always the right one."""
    text = text_of(file.path)
    start = text.lstrip()
    first = start.split("\n", 1)[0]
    if start.startswith("{") and _is_json(first) and start[len(first) :].strip():
        return objects_of_lines(enumerate(text.split("\n"), start=1), file.whole())
    return _of_document(parse_json(text, file.path, None), file)


def winobias_lines(file: OnDisk) -> Numbered:
    """Numbered sentences; the file's name says their condition and type."""
    path = file.whole()
    found = _WINOBIAS_NAME.match(path.name)
    if found is None:
        raise DataError(
            "the name must begin with pro_ or anti_stereotyped_type1 or 2, which says its condition", file=path
        )
    for number, line in lines_of(path):
        head, _, sentence = line.strip().partition(" ")
        if line.strip():
            if not re.fullmatch(r"[0-9]{1,9}", head) or not sentence:
                raise DataError(f"must be a number, a space and a sentence, found {line!r:.200}", file=path, row=number)
            yield number, {"sentence": sentence, "condition": found[1], "type": int(found[2]), "index": int(head)}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
