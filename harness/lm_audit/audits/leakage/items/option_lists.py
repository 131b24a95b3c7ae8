"""The options of a row, whatever form they come in: a column each, a list, a mapping, a list written out as text."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, takewhile
from typing import Any

from lm_audit.audits.hub_rows import records, structured
from lm_audit.audits.leakage.items.answers.marks import MARK_FIELDS, ONE_RIGHT, mark_of, marks_of
from lm_audit.audits.leakage.items.cells import Unusable, text_of
from lm_audit.audits.leakage.items.column_names import WRONG_LISTS
from lm_audit.audits.leakage.items.item import LETTERS
from lm_audit.audits.leakage.items.labels.in_one_text import labelled_parts
from lm_audit.audits.leakage.items.labels.of_a_row import without_labels
from lm_audit.audits.leakage.items.labels.of_a_set import PlaceLabels
from lm_audit.errors import DataError
from lm_audit.shared.visible import is_blank


@dataclass(frozen=True)
class Options:
    """Texts of the options and the set's own names of them (none: empty).

    ``given`` are the texts with the labels that were taken off (none: empty), ``marks`` say of each option whether it
    is right (1) or not (0), where the list of options does, ``columns`` are the columns that hold an option each.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    marks: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    padded: bool = False
    """Whether what only filled up the list was left out."""
    divided: bool = False
    """Whether they stood in one text, parted by a sign alone."""

    @property
    def stripped(self) -> bool:
        """Whether labels were taken off."""
        return bool(self.given)


def options_of(
    row: Mapping[str, object],
    columns: Sequence[str],
    of_set: PlaceLabels | None = None,
    padding: Collection[str] = (),
) -> Options:
    """The row's options, empty ones at the end left out and labels such as "(A)" taken off.

    ``of_set`` are labels that only many rows together show, ``padding`` what fills up the set's lists.
    Raises :class:`Unusable` with the reason why the row has none; ``DataError`` for a printed array, which spoils every
    row of a set alike.
    """
    texts, labels, marks = _given(row, columns)
    given = len(texts)
    while len(texts) > 2 and texts[-1].strip() in padding:
        texts.pop()
    padded = len(texts) < given
    if not 2 <= len(texts) <= len(LETTERS):
        lone = ", in one cell divided by |, by ; or in lines" if len(texts) == len(columns) == 1 else ""
        raise Unusable(f"{len(texts)} options; 2 to {len(LETTERS)} are expected{lone}")
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
    held = tuple(columns[: len(texts)]) if len(columns) > 1 and given <= len(columns) else ()
    divided = len(columns) == 1 and texts == _divided(row.get(columns[0]))
    if bare is None:
        return Options(tuple(texts), names, (), right, held, padded, divided)
    return Options(tuple(bare), names or _names_taken_off(texts, bare), tuple(texts), right, held, padded, divided)


def _names_taken_off(texts: Sequence[str], bare: Sequence[str]) -> tuple[str, ...]:
    """What labels call their options: "Б" of "Б) red". Numbers are none: answers count them as the whole set says."""
    found = []
    for text, rest in zip(texts, bare, strict=True):
        around = text.removesuffix(rest) if text.endswith(rest) else text.removeprefix(rest)
        found.append(_WORDS.findall(around)[-1:])
    names = tuple(name for parts in found for name in parts)
    plain = [unicodedata.normalize("NFKC", name) for name in names]
    return names if len(set(names)) == len(texts) and not any(name.isdecimal() for name in plain) else ()


_WORDS = re.compile(r"[^\W_]+")


def unlabelled(row: Mapping[str, object], columns: Sequence[str]) -> Sequence[str]:
    """The texts of the row's options as they stand where no label shows in them; empty where one does, or none is."""
    try:
        texts, *_ = _given(row, columns)
        return texts if len(texts) > 1 and without_labels(texts) is None else ()
    except (Unusable, DataError):  # told where the row is read
        return ()


PLACEHOLDERS = frozenset(
    ("n/a", "na", "none", "nan", "null", "nil", "-", "--", "\u2014", "[invalid]", "invalid", "\u65e0")
)
"""What stands, in small letters, where there is no option; "none" may be one."""


def padding_of(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> frozenset[str]:
    """What stands in place of options that a row does not have, as MMLU-Pro's "N/A": twice or more at the end of one.

    A single "N/A" may be an option; two in one row are none, and then it is none in the other rows either.
    """
    found = set()
    for row in rows:
        texts = unlabelled(row, columns)
        if len(texts) > 3 and texts[-1].strip() == texts[-2].strip() and texts[-1].strip().casefold() in PLACEHOLDERS:
            found.add(texts[-1].strip())
    return frozenset(found)


_Given = tuple[list[str], list[str], Sequence[object]]
"""Texts of options, their labels and the marks that say which of them are right; labels and marks may be absent."""


def _given(row: Mapping[str, object], columns: Sequence[str]) -> _Given:
    marks: Sequence[object] = ()
    if len(columns) > 1:
        texts, labels = _of_columns([row.get(column) for column in columns], tuple(columns))
    else:
        texts, labels, marks = _from_value(row.get(columns[0]), scored=columns[0].strip().lower() in SCORED)
    # "nan" is what Python writes of an empty cell where the next column has a fifth option only in some rows.
    while texts and (is_blank(texts[-1]) or (len(columns) > 1 and texts[-1] == "nan")):
        texts.pop()
    return texts, labels, marks


def _of_columns(cells: Sequence[object], columns: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The options of several columns, and what these call them; one of them may hold a list (of wrong answers)."""
    plural = [_folded(name) in _LISTS_OF_WRONG for name in columns]
    lists = [_listed_texts(cell) if many else cell for cell, many in zip(cells, plural, strict=True)]
    if not any(isinstance(cell, list | tuple) for cell in lists):
        return [text_of(cell) for cell in cells], list(_column_labels(columns))
    parts = [cell if isinstance(cell, list | tuple) else [given] for given, cell in zip(cells, lists, strict=True)]
    return [text_of(part) for some in parts for part in some], []


@cache
def _folded(name: str) -> str:
    return "_".join(re.split(r"[\s-]+", name.strip().lower()))


_LISTS_OF_WRONG = frozenset(name for name in WRONG_LISTS if name.endswith("s"))


def _listed_texts(cell: object) -> object:
    """A cell of a column of wrong answers: a list, also one written in a line ("a; b", "a | b") or in lines."""
    found = structured(cell)
    parts = re.split(r"\s*[;|\n]\s*", found.strip(" ;|\n")) if isinstance(found, str) else []
    return parts if len(parts) > 1 and all(parts) else found


@cache
def _column_labels(columns: tuple[str, ...]) -> tuple[str, ...]:
    """What the columns themselves call the options: "a", "b" of option_a, option_b; "0", "1" of ans0, ans1.

    What they share leaves at least a letter of each: "i" of option_i, option_ii. Columns numbered from 1 name nothing:
    sets of such columns count their answers from 0 as often as from 1.
    """
    shared = next(
        (k for k, some in enumerate(zip(*columns, strict=False)) if len(set(some)) > 1), min(map(len, columns)) - 1
    )
    names = tuple(column[shared:].strip() for column in columns)
    return () if all(name.isdigit() for name in names) and names[0] != "0" else names


def _from_value(value: object, *, scored: bool) -> _Given:
    if isinstance(value, str):
        text, value = value, _parsed(value)
        if isinstance(value, list) and len(value) == 1 and (parts := labelled_parts(text)) is not None:
            return [*parts.texts], [*parts.labels], ()
        if isinstance(value, list) and len(value) == 1:
            value = _divided(text) or value
    if value is not None and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        held = any(_listed(entry) is not None for entry in value.values())
        return _scored(value) if scored and not held else _from_mapping(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        named = [x for x in value if isinstance(x, Mapping)]
        if value and len(named) == len(value):
            return _from_records(named)
        return [text_of(x) for x in value], [], ()
    raise Unusable("the options are empty" if value is None else f"the options are {value!r:.60}; a list is expected")


def _from_records(options: Sequence[Mapping[str, object]]) -> _Given:
    """Options that are records: a text each, perhaps a label, perhaps a mark; or a text under its own label alone."""
    field = _shared_field(options, _TEXT_FIELDS)
    alone = {str(name): text for option in options if len(option) == 1 for name, text in option.items()}
    if field is None and len(alone) == len(options):
        return [text_of(text) for text in alone.values()], list(alone), ()
    if field is None:
        return [text_of(option) for option in options], [], ()
    label, marks = _shared_field(options, _LABEL_FIELDS), _shared_field(options, MARK_FIELDS)
    names = [text_of(option[label]).strip() for option in options] if label else []
    return (
        [text_of(option[field]) for option in options],
        names if all(names) else [],
        [option[marks] for option in options] if marks else (),
    )


def _shared_field(options: Sequence[Mapping[str, object]], known: Sequence[str]) -> str | None:
    """The first known field, in whatever case, that all options have."""
    shared = [name for name in options[0] if all(name in option for option in options)]
    return next((name for plain in known for name in shared if str(name).lower() == plain), None)


def are_marked(value: object) -> bool:
    """Whether a cell is a list of records that are options, each with its text and a mark that says if it is right.

    Records may be stored as a dictionary of lists.
    """
    value = records(structured(value))
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(one, Mapping) for one in value):
        return False
    field, marks = _shared_field(value, _TEXT_FIELDS), _shared_field(value, MARK_FIELDS)
    return field is not None and marks is not None and all(mark_of(one[marks]) is not None for one in value)


_TEXT_FIELDS = (
    "text", "content", "value", "atext", "answer", "option", "choice", "body", "sentence", "answer_text", "option_text",
    "choice_text",
)  # fmt: skip
_LABEL_FIELDS = ("label", "key", "aid", "letter", "id", "index", "option_id")
_LISTED_TEXTS = ("text", "texts", "choices", "options", "content", "value", "values", "atext")
"""The same where records are stored as a dictionary of lists."""


def _scored(value: Mapping[object, object]) -> _Given:
    """Options as texts with a score each, of which 1 says right and 0 wrong (BIG-bench)."""
    if any(mark_of(score) is None for score in value.values()):
        raise Unusable("the scores of the options are not all 0 or 1, so that none is simply right")
    return [text_of(name) for name in value], [], list(value.values())


SCORED = ("target_scores", "mc1_targets")
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
    marked = all(isinstance(mark, int | float) and mark in (0, 1) for mark in value.values())
    if marked and (any(len(str(key)) > 1 and not str(key).isdigit() for key in keys) or _are_numbers_of_one(value)):
        # each option's text with a mark that says whether it is right (the first release of TruthfulQA)
        return _scored(value)
    ordered = _in_order([str(key) for key in keys])
    keys = [keys[place] for place in ordered]
    return [text_of(value[key]) for key in keys], [str(key).strip() for key in keys], ()


def _are_numbers_of_one(value: Mapping[object, object]) -> bool:
    """Whether the keys are numbers that count no options (54, 58, 63), one of them marked as right."""
    numbers = sorted(int(str(key)) for key in value if str(key).isdecimal() and len(str(key)) < 19)
    counted = numbers in ([*range(len(value))], [*range(1, len(value) + 1)])
    return len(numbers) == len(value) > 2 and not counted and sum(mark == 1 for mark in value.values()) == 1


def _in_order(names: Sequence[str]) -> list[int]:
    """The places of names in the order that their numbers or letters say, a beginning in common aside ("option_10").

    What sorts keys as texts puts "option_10" before "option_2". Names of any other kind stay as they are.
    """
    alike = takewhile(lambda column: len(set(column)) == 1, zip(*names, strict=False))
    shared = "".join(column[0] for column in alike).rstrip("0123456789")
    rests = [name[len(shared) :] for name in names]
    places = list(range(len(names)))
    if all(rest.isascii() and rest.isdigit() and len(rest) < 4 for rest in rests):
        return sorted(places, key=lambda place: int(rests[place]))
    if all(len(rest) == 1 for rest in rests):
        return sorted(places, key=lambda place: rests[place])
    return places


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


def _divided(cell: object) -> list[str]:
    """The parts of a text in one line between bars, or else semicolons; empty without either."""
    for sign in "|;" if isinstance(cell, str) and "\n" not in cell.strip() else "":
        parts = [part.strip() for part in str(cell).strip(f" {sign}").split(sign)]
        if len(parts) > 1 and all(parts):
            return parts
    return []


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
