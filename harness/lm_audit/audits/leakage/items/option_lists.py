"""The options of a row, whatever form they come in: a column each, a list, a mapping, a list written out as text."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from lm_audit.audits.leakage.items.answers.marks import MARK_FIELDS, ONE_RIGHT, mark_of, marks_of
from lm_audit.audits.leakage.items.cells import Unusable, text_of
from lm_audit.audits.leakage.items.item import LETTERS
from lm_audit.audits.leakage.items.labels.of_a_row import without_labels
from lm_audit.audits.leakage.items.labels.of_a_set import PlaceLabels
from lm_audit.errors import DataError
from lm_audit.shared.visible import is_blank


@dataclass(frozen=True)
class Options:
    """Texts of the options and the set's own names of them (none: empty); ``stripped`` where labels were taken off.

    ``marks`` say of each option whether it is right (1) or not (0), where the list of options does.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...] = ()
    stripped: bool = False
    marks: tuple[int, ...] = ()


def options_of(row: Mapping[str, object], columns: Sequence[str], of_set: PlaceLabels | None = None) -> Options:
    """The row's options, empty ones at the end left out and labels such as "(A)" taken off.

    ``of_set`` are labels that only many rows together show. Raises :class:`Unusable` with the reason why the row has
    none; ``DataError`` for a printed array, which spoils every row of a set alike.
    """
    texts, labels, marks = _given(row, columns)
    if not 2 <= len(texts) <= len(LETTERS):
        raise Unusable(f"{len(texts)} options; 2 to {len(LETTERS)} are expected")
    empty = [LETTERS[k] for k, option in enumerate(texts) if is_blank(option)]
    if empty:
        raise Unusable(f"option {empty[0]} is empty")
    bare = without_labels(texts) or (of_set.taken_off(texts) if of_set else None)
    names: tuple[str, ...] = tuple(labels[: len(texts)])
    if len(columns) == 1 and set(names) in ({"0", "1"}, {"0"}, {"1"}, {"True", "False"}):
        marks = marks or names
        names = names if len(set(names)) == len(names) else ()  # of two options, these may be names
    right = marks_of(marks[: len(texts)], texts, ()) or ()
    if columns[0].strip().lower() in ONE_RIGHT and right and sum(right) != 1:
        raise Unusable(f"{columns[0]} marks {sum(right)} options as right; exactly one is")
    return Options(tuple(bare or texts), names, bare is not None, right)


def unlabelled(row: Mapping[str, object], columns: Sequence[str]) -> Sequence[str]:
    """The texts of the row's options as they stand where no label shows in them; empty where one does, or none is."""
    try:
        texts, *_ = _given(row, columns)
        return texts if len(texts) > 1 and without_labels(texts) is None else ()
    except (Unusable, DataError):  # told where the row is read
        return ()


_Given = tuple[list[str], list[str], Sequence[object]]
"""Texts of options, their labels and the marks that say which of them are right; labels and marks may be absent."""


def _given(row: Mapping[str, object], columns: Sequence[str]) -> _Given:
    marks: Sequence[object] = ()
    if len(columns) > 1:
        texts, labels = [text_of(row.get(column)) for column in columns], list(_column_labels(tuple(columns)))
    else:
        texts, labels, marks = _from_value(row.get(columns[0]), scored=columns[0].strip().lower() in SCORED)
    # "nan" is what Python writes of an empty cell where the next column has a fifth option only in some rows.
    while texts and (is_blank(texts[-1]) or (len(columns) > 1 and texts[-1] == "nan")):
        texts.pop()
    return texts, labels, marks


@cache
def _column_labels(columns: tuple[str, ...]) -> tuple[str, ...]:
    """What the columns themselves call the options: "a", "b" of option_a, option_b; "0", "1" of ans0, ans1.

    Columns numbered from 1 name nothing: sets of such columns count their answers from 0 as often as from 1.
    """
    shared = next(
        (k for k, some in enumerate(zip(*columns, strict=False)) if len(set(some)) > 1), min(map(len, columns))
    )
    names = tuple(column[shared:].strip() for column in columns)
    return () if all(name.isdigit() for name in names) and names[0] != "0" else names


def _from_value(value: object, *, scored: bool) -> _Given:
    if isinstance(value, str):
        value = _parsed(value)
    if value is not None and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return _scored(value) if scored else _from_mapping(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        named = [x for x in value if isinstance(x, Mapping)]
        if value and len(named) == len(value):
            return _from_records(named)
        return [text_of(x) for x in value], [], ()
    raise Unusable("the options are empty" if value is None else f"the options are {value!r:.60}; a list is expected")


def _from_records(options: Sequence[Mapping[str, object]]) -> _Given:
    """Options that are records: a text each, perhaps a label, perhaps a mark."""
    field = next((name for name in _TEXT_FIELDS if all(name in option for option in options)), None)
    if field is None:
        return [text_of(option) for option in options], [], ()
    label = next((name for name in _LABEL_FIELDS if all(name in option for option in options)), None)
    names = [text_of(option[label]).strip() for option in options] if label else []
    marks = next(
        (name for name in options[0] if name.lower() in MARK_FIELDS and all(name in option for option in options)), None
    )
    return (
        [text_of(option[field]) for option in options],
        names if all(names) else [],
        [option[marks] for option in options] if marks else (),
    )


_TEXT_FIELDS = ("text", "content", "value", "atext")
_LABEL_FIELDS = ("label", "key", "aid")
_LISTED_TEXTS = ("text", "texts", "choices", "options", "content", "value", "values", "atext")
"""The same where records are stored as a dictionary of lists."""


def _scored(value: Mapping[object, object]) -> _Given:
    """Options as texts with a score each, of which 1 says right and 0 wrong (BIG-bench)."""
    if any(mark_of(score) is None for score in value.values()):
        raise Unusable("the scores of the options are not all 0 or 1, so that none is simply right")
    return [text_of(name) for name in value], [], list(value.values())


SCORED = ("target_scores",)
"""Columns of options whose mappings hold texts and scores, whatever the texts look like."""


def _from_mapping(value: Mapping[object, object]) -> _Given:
    lists = {str(name).lower(): _listed(entry) for name, entry in value.items()}
    texts = next((lists[name] for name in _LISTED_TEXTS if lists.get(name)), None)
    if texts is not None:
        names = next((lists[name] for name in ("label", "labels", "key", "keys", "aid") if lists.get(name)), None)
        labels = [text_of(name).strip() for name in names or []]
        if labels and len(labels) != len(texts):
            raise Unusable(f"{len(texts)} options have {len(labels)} labels")
        return (
            [text_of(x) for x in texts],
            labels,
            next((lists[name] or () for name in MARK_FIELDS if name in lists), ()),
        )
    keys = list(value)
    if all(isinstance(mark, int | float) and mark in (0, 1) for mark in value.values()) and any(
        len(str(key)) > 1 and not str(key).isdigit() for key in keys
    ):  # each option's text with a mark that says whether it is right (the first release of TruthfulQA)
        return _scored(value)
    if all(str(key).isascii() and str(key).isdigit() and len(str(key)) < 4 for key in keys):
        keys = sorted(keys, key=lambda key: int(str(key)))
    elif all(len(str(key)) == 1 for key in keys):
        keys = sorted(keys, key=str)
    return [text_of(value[key]) for key in keys], [str(key).strip() for key in keys], ()


def _listed(value: object) -> list[Any] | None:
    value = value.tolist() if hasattr(value, "tolist") else value
    return list(value) if isinstance(value, list | tuple) else None


_PRINTED = re.compile(r"\s*(?:\[.*\]|\{.*\}|\(.*\)|array\(.*\))\s*", re.DOTALL)


def _parsed(text: str) -> Any:
    """A list written as JSON or as Python prints it, or one option a line."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if not _PRINTED.fullmatch(text):
        return _lines(text)
    if _is_printed_array(text):
        raise DataError(
            f"the options are a printed array ({text.strip()!r:.60}), in which commas and ends of strings are lost; "
            "save the set as JSONL or Parquet",
        )
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return _lines(text)


def _lines(text: str) -> list[str]:
    return [part for part in re.split(r"\r\n|\r|\n", text) if part.strip()]


def _is_printed_array(text: str) -> bool:
    """Whether numpy printed it: strings or numbers side by side without commas, ``array(...)``, a gap in the middle."""
    body = text.strip()
    try:
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(body).readline) if t.type not in _BREAKS]
    except (tokenize.TokenError, SyntaxError):
        # Not Python either: a printed array whose strings hold quotes of both kinds.
        return bool(re.match(r"\[\s*['\"]", body)) and bool(re.search(r"['\"]\s+['\"]", body))
    side_by_side = any(
        first.type == second.type and first.type in (tokenize.STRING, tokenize.NUMBER)
        for first, second in pairwise(tokens)
    )
    return side_by_side or any(t.string in ("array", "...") and t.type != tokenize.STRING for t in tokens)


_BREAKS = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
