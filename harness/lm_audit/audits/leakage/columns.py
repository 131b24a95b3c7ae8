"""From a row of any multiple-choice set to an Item: which columns hold the question, the options, the answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_audit.audits.leakage.items import LETTERS, Item
from lm_audit.errors import DataError, UsageError

QUESTIONS = ("question", "query", "prompt", "stem", "input", "题目", "问题")
OPTION_LISTS = ("options", "choices", "选项")
ANSWERS = ("answer", "answers", "answerkey", "label", "target", "correct", "答案")
IDS = ("id", "item_id", "question_id", "uid", "编号")
_FIELDS = ("question", "options", "answer", "id", "subject")


class Unusable(Exception):
    """Why a row is left out; it is counted and listed."""


@dataclass(frozen=True)
class Columns:
    """The columns of a set. ``options`` is one column that holds a list, or one a letter; ``answer`` may be absent.

    ``subject`` names the file of an item where one file holds several subjects.
    """

    question: str
    options: tuple[str, ...]
    answer: str | None = None
    id: str | None = None
    subject: str | None = None


def parse_mapping(text: str | None) -> dict[str, str]:
    """``question=Q,options=A|B|C|D,answer=ans`` as a mapping; ``UsageError`` for an unknown field."""
    if not text:
        return {}
    mapping = {}
    for part in text.split(","):
        name, equals, column = part.partition("=")
        if not equals or name.strip() not in _FIELDS or not column.strip():
            raise UsageError(
                f"column mapping {part!r}: write FIELD=COLUMN with a field of {', '.join(_FIELDS)}; options may name "
                "several columns, as in options=A|B|C|D"
            )
        mapping[name.strip()] = column.strip()
    return mapping


def find_columns(names: Sequence[str], mapping: Mapping[str, str], *, file: str) -> Columns:
    """The columns of a set with these column names; ``DataError`` that says what is missing and what is there."""
    known = {str(name).strip().lower(): str(name) for name in names if name}
    for field, column in mapping.items():
        absent = [part for part in column.split("|") if part not in names]
        if absent:
            raise DataError(
                f"has no column {absent[0]!r}, which {field} was mapped to; it has {list(names)}", file=file
            )
    question = mapping.get("question") or _first(known, QUESTIONS)
    options = _mapped_options(mapping) or _option_columns(known, names)
    missing = [name for name, found in (("question", question), ("options", options)) if not found]
    if missing or question is None:
        raise DataError(
            f"has no column for {' and '.join(missing)}; it has {list(names)}. Columns A, B, C, ... or one of "
            f"{', '.join(OPTION_LISTS)} hold options; name others by "
            "--leakage-columns question=...,options=A|B|C",
            file=file,
        )
    answer = mapping.get("answer") or _first(known, ANSWERS)
    return Columns(question, options, answer, mapping.get("id") or _first(known, IDS), mapping.get("subject"))


def _first(known: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((known[name] for name in names if name in known), None)


def _mapped_options(mapping: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(mapping["options"].split("|")) if "options" in mapping else ()


def _option_columns(known: Mapping[str, str], names: Sequence[str]) -> tuple[str, ...]:
    for form in ("{}", "option_{}", "option {}", "option{}", "choice_{}", "choice{}", "选项{}"):
        found = []
        for letter in LETTERS:
            column = known.get(form.format(letter).lower())
            if column is None:
                break
            found.append(column)
        if len(found) >= 2:
            return tuple(found)
    one = _first(known, OPTION_LISTS)
    return (one,) if one else ()


def item_of(row: Mapping[str, Any], columns: Columns, *, file: str, number: int) -> Item:
    """The row as an item; raises :class:`Unusable` with the reason why it cannot be one."""
    question = _text(row.get(columns.question)).strip("\r\n")
    if not question.strip():
        raise Unusable("the question is empty")
    options, labels = _options(row, columns)
    _check_options(options)
    answer = _answer(row.get(columns.answer) if columns.answer else None, options, labels)
    name = _text(row.get(columns.id)).strip() if columns.id else ""
    subject = _text(row.get(columns.subject)).strip() if columns.subject else ""
    return Item(name or str(number), subject or file, question, tuple(options), answer)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _options(row: Mapping[str, Any], columns: Columns) -> tuple[list[str], list[str]]:
    """The options, and their labels where the set names them otherwise than by letter."""
    if len(columns.options) > 1:
        texts = [_text(row.get(column)) for column in columns.options]
        while texts and not texts[-1].strip():
            texts.pop()
        return texts, []
    value = row.get(columns.options[0])
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, Mapping):
        if "text" in value:
            return [_text(x) for x in value["text"]], [_text(x) for x in value.get("label") or []]
        return [_text(value[key]) for key in sorted(value)], [str(key) for key in sorted(value)]
    if value is not None and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value and all(isinstance(x, Mapping) and "text" in x for x in value):
            return [_text(x["text"]) for x in value], [_text(x.get("label", "")) for x in value]
        return [_text(x) for x in value], []
    raise Unusable(f"the options are {value!r:.60}; a list is expected")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [part for part in text.split("\n") if part.strip()]


def _check_options(options: Sequence[str]) -> None:
    if not 2 <= len(options) <= len(LETTERS):
        raise Unusable(f"{len(options)} options; 2 to {len(LETTERS)} are expected")
    empty = [LETTERS[k] for k, option in enumerate(options) if not option.strip()]
    if empty:
        raise Unusable(f"option {empty[0]} is empty")


def _answer(value: Any, options: Sequence[str], labels: Sequence[str]) -> str:
    """The answer as sorted letters joined by commas; a number counts from 0 where options come as a list."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    parts = list(value) if isinstance(value, list | tuple) else [value]
    letters: set[str] = set()
    for part in parts:
        letters.update(_letters(part, options, labels))
    return ",".join(sorted(letters))


def _letters(value: Any, options: Sequence[str], labels: Sequence[str]) -> list[str]:
    text = _text(value).strip()
    if not text:
        return []
    if text in labels:
        return [LETTERS[labels.index(text)]]
    if re.fullmatch(r"[A-Ja-j](?:[\s,，、;；和与&]*[A-Ja-j])*", text):
        found = [c.upper() for c in text if c.isalpha() and c.isascii()]
        beyond = [letter for letter in found if LETTERS.index(letter) >= len(options)]
        if not beyond:
            return found
    else:
        beyond = []
    if text in options:
        return [LETTERS[list(options).index(text)]]
    if text.isdigit():
        return [_indexed(int(text), options)]
    named = f"{beyond[0]!r}, which is beyond" if beyond else f"{text!r:.40}, which is none of"
    raise Unusable(f"the answer names {named} the options {LETTERS[0]} to {LETTERS[len(options) - 1]}")


def _indexed(place: int, options: Sequence[str]) -> str:
    if place >= len(options):
        raise Unusable(f"the answer is index {place} (counted from 0), but there are {len(options)} options")
    return LETTERS[place]
