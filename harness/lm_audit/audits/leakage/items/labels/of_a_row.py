"""Labels that the options of one row show by themselves: a known series, in all options, between the same marks.

A label says where its option stands, so that the published order would be recognised without memory.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import takewhile

from lm_audit.audits.leakage.items.cells import Unusable
from lm_audit.audits.leakage.items.item import LETTERS

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
    "ａｂｃｄｅｆｇｈ",
    "ⒶⒷⒸⒹⒺⒻⒼⒽ",
    "ⓐⓑⓒⓓⓔⓕⓖⓗ",
    "אבגדהוזח",
)
_OTHER = "".join(_ALPHABETS)
_NAME = rf"([A-Za-z]|[0-9]{{1,2}}|[①-⑳]|[ivx]{{1,4}}|[IVX]{{1,4}}|[{_OTHER}])"
_LETTER = rf"([A-Za-z]|[IVX]{{1,4}}|[ivx]{{1,4}}|[{_OTHER}])"
_LABELS = (
    re.compile(rf"\s*(?:(?i:option|choice|answer)|选项)\s*{_OPEN}?\s*{_NAME}\s*{_CLOSE}?\s*[.:：、,-]?\s+(?=\S)"),
    re.compile(rf"\s*(?:\*\*|__)\s*{_OPEN}?{_NAME}[)）.:：]?\s*(?:\*\*|__)[.:：)]?\s*(?=\S)"),
    re.compile(rf"\s*<\s*{_NAME}\s*>[.:：]?\s*(?=\S)"),
    re.compile(rf"\s*{_OPEN}\s*{_NAME}\s*{_CLOSE}[\s.:：、]*(?=\S)"),
    re.compile(rf"\s*{_NAME}\s*(?:[)）、．]|[:：](?![0-9]))\s*(?=\S)"),
    re.compile(rf"\s*{_NAME}\s*[.](?![0-9])[.)）]*\s*(?=\S)"),
    re.compile(r"\s*([①-⑳Ⓐ-Ⓗⓐ-ⓗ])\s*(?=\S)"),
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
_NUMERALS = (
    *((0x2160, 12), (0x2170, 12), (0x249C, 26), (0x2474, 20), (0x2488, 20), (0x2776, 10), (0x3220, 10), (0x3260, 14)),
    *((0x326E, 14), (0x1F130, 26), (0x1F150, 26), (0x1F170, 26), (0x1F1E6, 26)),
    *((digit, 9) for digit in (0xFF11, 0x0661, 0x06F1, 0x0967, 0x09E7, 0x0E51)),
)
"""Series of Unicode's own that say their place in one character (Ⅰ, ⅰ, ⒜, ⑴, ⒈, ❶, ㈠, ㉠, 🅐, １, ١, १): first one
and how many."""
_FROM_ZERO = [str(k) for k in range(26)]


def without_labels(options: Sequence[str]) -> list[str] | None:
    """The options without the labels that they all bear ("(A)", "b.", "③"), or ``None`` where they bear none.

    Raises :class:`Unusable` where only some options bear the label of their place, or where all bear labels in another
    order.
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
        own = _is_sign(names[0])
        mark = _MARKED.match(rests[0]) or (_SPACED.match(rests[0]) if own or before.strip() in _BEFORE_ONE else None)
        if mark is None or not all(rest.startswith(mark.group()) for rest in rests):
            continue
        bare = [rest[mark.end() :].strip() for rest in rests]
        # "1.5 m", "1:30", "1 - 2 hours": the number goes on.
        if not (names[0].isdecimal() and all(rest[:1].isdecimal() for rest in bare)):
            return bare
    return None


def _is_sign(name: str) -> bool:
    """Whether a name is one sign that is a label by itself: ③, 🅐, a digit in a key cap (1️⃣), a flag's letter."""
    return unicodedata.category(name[0]) in ("No", "So") or name[-1] == "\u20e3"


def _before_frame(options: Sequence[str], names: Sequence[str]) -> list[str] | None:
    found = [_TRAILING.fullmatch(option) for option in options]
    if [match.group(2) if match else None for match in found] != list(names):
        return None
    return [match.group(1).strip() for match in found if match]


_FRAME = 24
"""Characters within which a label must begin."""
_NAME_OF = re.compile(r"[0-9]\ufe0f?\u20e3|[A-Za-z0-9]+|[^\s]")
_MARKED = re.compile(r"\s*(?:[:：)）\]】}>、．.。]+|</\w+>|[\"'”’](?=[\s:])[\s:]*|\s[-–—]+(?=\s))\s*")
_BEFORE_ONE = ("#", "№", "No.", "no.", "Nr.", "(", "[", "{", "（")
"""What stands before the one label of an option, so that a gap behind it is mark enough: "(a red", "№ 1 red"."""
_SPACED = re.compile(r"\s+")
_TRAILING = re.compile(r"(.*\S)(?:\s+[(\[]|\s*[（【])\s*([A-Za-z]|[0-9]{1,2})\s*[)）\]】]\s*[.。]?\s*", re.DOTALL)
_RUNS: tuple[Sequence[str], ...] = (
    *_SERIES,
    list("FGHJK"),
    list("一二三四五六七八九十"),
    *([chr(first + k) for k in range(many)] for first, many in _NUMERALS),
    [f"{k}\ufe0f\u20e3" for k in range(1, 10)],
    ["first", "second", "third", "fourth", "fifth", "sixth"],
    ["First", "Second", "Third", "Fourth", "Fifth", "Sixth"],
)
_PLACES: dict[str, list[tuple[Sequence[str], int]]] = {}
"""Where a name stands: the series that hold it, and its place in each."""
for _series in _RUNS:
    for _place, _name in enumerate(_series):
        _PLACES.setdefault(_name, []).append((_series, _place))
