"""The options of a row, whatever form they come in: a column each, a list, a mapping, a list written out as text."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, takewhile
from typing import Any

from lm_audit.audits.leakage.items.cells import Unusable, text_of
from lm_audit.audits.leakage.items.item import LETTERS
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


def options_of(row: Mapping[str, object], columns: Sequence[str]) -> Options:
    """The row's options, empty ones at the end left out and labels such as "(A)" taken off.

    Raises :class:`Unusable` with the reason why the row has none; ``DataError`` for a printed array, which spoils
    every row of a set alike.
    """
    if len(columns) > 1:
        texts, labels = [text_of(row.get(column)) for column in columns], list(_column_labels(tuple(columns)))
    else:
        texts, labels = _from_value(row.get(columns[0]))
    while texts and is_blank(texts[-1]):
        texts.pop()
    if not 2 <= len(texts) <= len(LETTERS):
        raise Unusable(f"{len(texts)} options; 2 to {len(LETTERS)} are expected")
    empty = [LETTERS[k] for k, option in enumerate(texts) if is_blank(option)]
    if empty:
        raise Unusable(f"option {empty[0]} is empty")
    bare = without_labels(texts)
    names: tuple[str, ...] = tuple(labels[: len(texts)])
    marks: tuple[int, ...] = ()
    if len(columns) == 1 and set(names) in ({"0", "1"}, {"0"}, {"1"}, {"True", "False"}):
        marks = tuple(int(name in ("1", "True")) for name in names)
        names = names if len(set(names)) == len(names) else ()  # of two options, these may be names
    return Options(tuple(bare or texts), names, bare is not None, marks)


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


def _from_value(value: object) -> tuple[list[str], list[str]]:
    if isinstance(value, str):
        value = _parsed(value)
    if value is not None and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return _from_mapping(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        named = [x for x in value if isinstance(x, Mapping)]
        if value and len(named) == len(value):
            field = next((name for name in ("text", "content", "value") if all(name in x for x in named)), None)
            if field is not None:
                names = [text_of(x.get("label", x.get("key", ""))).strip() for x in named]
                return [text_of(x[field]) for x in named], names if all(names) else []
        return [text_of(x) for x in value], []
    raise Unusable("the options are empty" if value is None else f"the options are {value!r:.60}; a list is expected")


def _from_mapping(value: Mapping[object, object]) -> tuple[list[str], list[str]]:
    lists = {str(name).lower(): _listed(entry) for name, entry in value.items()}
    texts = next((lists[name] for name in ("text", "texts", "choices", "options") if lists.get(name)), None)
    if texts is not None:
        names = next((lists[name] for name in ("label", "labels", "key", "keys") if lists.get(name)), None)
        labels = [text_of(name).strip() for name in names or []]
        if labels and len(labels) != len(texts):
            raise Unusable(f"{len(texts)} options have {len(labels)} labels")
        return [text_of(x) for x in texts], labels
    keys = list(value)
    if all(str(key).isascii() and str(key).isdigit() and len(str(key)) < 4 for key in keys):
        keys = sorted(keys, key=lambda key: int(str(key)))
    elif all(len(str(key)) == 1 for key in keys):
        keys = sorted(keys, key=str)
    return [text_of(value[key]) for key in keys], [str(key).strip() for key in keys]


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
        return [part for part in text.split("\n") if part.strip()]
    if _is_printed_array(text):
        raise DataError(
            f"the options are a printed array ({text.strip()!r:.60}), in which commas and ends of strings are lost; "
            "save the set as JSONL or Parquet",
        )
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return [part for part in text.split("\n") if part.strip()]


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

_OPEN, _CLOSE = r"[(（\[【]", r"[)）\]】]"
_ABJAD = "أبجدهوزح"
_ALPHABETS = (
    "甲乙丙丁戊己庚辛",
    "가나다라마바사아",
    "ㄱㄴㄷㄹㅁㅂㅅㅇ",
    "アイウエオカキク",
    "あいうえおかきく",
    "АБВГДЕЖЗ",
    "абвгдежз",
    "ΑΒΓΔΕΖΗΘ",
    "αβγδεζηθ",
    _ABJAD,
    "ابجدهوزح",
    "कखगघङचछज",
    "กขคงจฉชซ",
    "ＡＢＣＤＥＦＧＨ",
    "ⒶⒷⒸⒹⒺⒻⒼⒽ",
)
_OTHER = "".join(_ALPHABETS)
_NAME = rf"([A-Za-z]|[0-9]{{1,2}}|[①-⑳]|[ivx]{{1,4}}|[IVX]{{1,4}}|[{_OTHER}])"
_LETTER = rf"([A-Za-z]|[IVX]{{1,4}}|[{_OTHER}])"
_LABELS = (
    re.compile(rf"\s*(?:(?i:option|choice|answer)|选项)\s*{_OPEN}?\s*{_NAME}\s*{_CLOSE}?\s*[.:：、,-]?\s+(?=\S)"),
    re.compile(rf"\s*(?:\*\*|__)\s*{_OPEN}?{_NAME}[)）.:：]?\s*(?:\*\*|__)[.:：)]?\s*(?=\S)"),
    re.compile(rf"\s*<\s*{_NAME}\s*>[.:：]?\s*(?=\S)"),
    re.compile(rf"\s*{_OPEN}\s*{_NAME}\s*{_CLOSE}[\s.:：、]*(?=\S)"),
    re.compile(rf"\s*{_NAME}\s*(?:[)）、．]|[:：](?![0-9]))\s*(?=\S)"),
    re.compile(rf"\s*{_NAME}\s*[.](?![0-9])\s*(?=\S)"),
    re.compile(r"\s*([①-⑳Ⓐ-Ⓗ])\s*(?=\S)"),
    # Without a mark of its own a number is part of the text ("2 apples", "1 - 2 hours"), a row of letters is not.
    re.compile(rf"\s*{_LETTER}(?:\s*[-–—=|/>]+|\t)\s*(?=\S)"),
    re.compile(rf"\s*{_LETTER}\s+(?=\S)"),
)
_SERIES = (
    list(LETTERS),
    [letter.lower() for letter in LETTERS],
    [str(k) for k in range(1, 27)],
    [chr(0x2460 + k) for k in range(20)],
    ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"],
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X"],
    *(list(alphabet) for alphabet in _ALPHABETS),
)
_NUMERALS = ((0x2160, 12), (0x2170, 12), (0x249C, 26), (0x2474, 20), (0x2488, 20), (0x2776, 10), (0x3220, 10))
"""Series of Unicode's own that say their place in one character (Ⅰ, ⅰ, ⒜, ⑴, ⒈, ❶, ㈠): first one and how many."""
_FROM_ZERO = [str(k) for k in range(26)]


def without_labels(options: Sequence[str]) -> list[str] | None:
    """The options without the labels that they all bear ("(A)", "b.", "③"), or ``None`` where they bear none.

    A label says where its option stands, so that the published order would be recognised without memory. Raises
    :class:`Unusable` where only some options bear the label of their place, or where all bear labels in another order.
    """
    for pattern in _LABELS:
        found = [pattern.match(option) for option in options]
        names = [match.group(1) if match else None for match in found]
        if names.count(None) > len(names) - 2:
            continue
        for series in (*_SERIES, _FROM_ZERO):
            wanted = series[: len(options)]
            if len(wanted) < len(options):
                continue
            if names == wanted:
                bare = [option[match.end() :] for option, match in zip(options, found, strict=True) if match]
                # "α decay", "β decay", "γ decay": what tells the options apart is no label.
                return bare if len(set(bare)) == len(bare) else None
            if set(names) == set(wanted):
                raise Unusable("the options bear labels that are not in their order")
            placed = sum(name == want for name, want in zip(names, wanted, strict=True))
            if placed >= 2 and placed * 2 >= len(options):
                raise Unusable("some options bear a label and others do not")
    return _without_frame(options)


def _without_frame(options: Sequence[str]) -> list[str] | None:
    """The same for labels of any other make: a series that stands in all options between the same marks.

    "Antwort A: red", "Antwort B: blue"; "一、红", "二、蓝"; "Ⅲ. red", "Ⅳ. blue"; "red (A)", "blue (B)". Four in a row
    may begin anywhere, as ACT's options from F on; three ("C. elegans", "D. rerio", "E. coli") may do so by chance.
    """
    count = len(options)
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(*options[:2], strict=False))
    shared = "".join(character for character, _ in alike)[:_FRAME]
    trailing = _TRAILING.fullmatch(options[0])
    first = [match.group() for place in _starts(shared) if (match := _NAME_OF.match(options[0], place))]
    for name in [*first, *([trailing.group(2)] if trailing else [])]:
        for series, start in _PLACES.get(name, ()):
            names = series[start : start + count]
            if len(names) < count or (start and count < 4):
                continue
            bare = _within_frame(options, names, shared) or _before_frame(options, names)
            if bare is not None and len(set(bare)) == count and all(bare):
                return bare
    return None


def _starts(shared: str) -> list[int]:
    """Where a label may begin: where two options part, or before what two Roman numbers have in common."""
    place = len(shared)
    numerals = len(shared) - len(shared.rstrip("IVXivx"))
    return [place - back for back in range(min(numerals, 3) + 1)]


def _within_frame(options: Sequence[str], names: Sequence[str], shared: str) -> list[str] | None:
    for place in _starts(shared):
        before = shared[:place]
        if not all(option.startswith(before + name) for option, name in zip(options, names, strict=True)):
            continue
        rests = [option[place + len(name) :] for option, name in zip(options, names, strict=True)]
        own = len(names[0]) == 1 and unicodedata.category(names[0]) in ("No", "So")
        mark = _MARKED.match(rests[0]) or (_SPACED.match(rests[0]) if own or before.strip() in ("#", "№") else None)
        if mark is None or not all(rest.startswith(mark.group()) for rest in rests):
            continue
        bare = [rest[mark.end() :].strip() for rest in rests]
        # "1.5 m", "1:30", "1 - 2 hours": the number goes on.
        if not (names[0].isdecimal() and all(rest[:1].isdecimal() for rest in bare)):
            return bare
    return None


def _before_frame(options: Sequence[str], names: Sequence[str]) -> list[str] | None:
    found = [_TRAILING.fullmatch(option) for option in options]
    if [match.group(2) if match else None for match in found] != list(names):
        return None
    return [match.group(1).strip() for match in found if match]


_FRAME = 24
"""Characters within which a label must begin."""
_NAME_OF = re.compile(r"[A-Za-z0-9]+|[^\s]")
_MARKED = re.compile(r"\s*(?:[:：)）\]】、．.。]+|\s[-–—]+(?=\s))\s*")
_SPACED = re.compile(r"\s+")
_TRAILING = re.compile(r"(.*\S)\s+[(（\[【]\s*([A-Za-z]|[0-9]{1,2})\s*[)）\]】]\s*[.。]?\s*", re.DOTALL)
_RUNS: tuple[Sequence[str], ...] = (
    *_SERIES,
    list("FGHJK"),
    list("一二三四五六七八九十"),
    *([chr(first + k) for k in range(many)] for first, many in _NUMERALS),
    ["first", "second", "third", "fourth", "fifth", "sixth"],
    ["First", "Second", "Third", "Fourth", "Fifth", "Sixth"],
)
_PLACES: dict[str, list[tuple[Sequence[str], int]]] = {}
"""Where a name stands: the series that hold it, and its place in each."""
for _series in _RUNS:
    for _place, _name in enumerate(_series):
        _PLACES.setdefault(_name, []).append((_series, _place))
