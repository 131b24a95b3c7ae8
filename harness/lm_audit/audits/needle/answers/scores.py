"""Deterministic scores of one answer against its references; every score is a share between 0 and 1."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from lm_audit.audits.needle.answers.borders import NUMBERS, may_grow, whole
from lm_audit.models.text.thinking import split_reply

_CONTROL = re.compile(r"[\x00-\x1f]")


def clean(prediction: str) -> str:
    """The prediction as RULER scores it: stripped, control characters turned to line breaks, stripped again.

    Digits of other scripts and full-width letters count as their ASCII forms.
    Of a reply that begins with a thought only what follows it counts; nothing, where the thought never ended.
    """
    return _CONTROL.sub("\n", _plain(split_reply(prediction).answer or "").strip()).strip()


_EMPHASIS = re.compile(r"(?<!\w)(_{1,3})(?=[^\s_])([^_\n]{1,200})(?<=[^\s_])\1(?!\w)")
_COUNTED = re.compile(r"(?m)^([^\w\n]*[0-9]{1,3}):(?=[0-9])")
_LIST_MARK = re.compile(r"(?m)^([ \t]*)[-\u2011\ufe63](?=[ \t]?[0-9])")


def _plain(text: str) -> str:
    """The text in composed characters (NFC), with decimal digits of any script and full-width signs as ASCII.

    Marks of Markdown that would read as parts of a number become others, as long: of emphasis (``_1234567_``), and
    dashes at the beginnings of lines where several have one.
    """
    text = _EMPHASIS.sub(lambda found: found[0].replace("_", "*"), _composed(text))
    # Numbers before a colon count lines where several have one; alone it is a ratio or a time.
    text = _COUNTED.sub(r"\1;", text) if len(_COUNTED.findall(text)) > 1 else text
    return _LIST_MARK.sub(r"\1*", text) if len(_LIST_MARK.findall(text)) > 1 else text


def _composed(text: str) -> str:
    if text.isascii():
        return text
    # A full-width comma parts clauses and numbers; between digits an ASCII comma would join them.
    text = re.sub(r"(?<=[0-9])，(?=[0-9])", "、", unicodedata.normalize("NFC", text))
    return "".join(map(_ascii, text))


def _ascii(character: str) -> str:
    if 0xFF01 <= ord(character) <= 0xFF5E:
        return chr(ord(character) - 0xFEE0)
    digit = unicodedata.decimal(character, None)
    return character if digit is None else str(digit)


def score_all(prediction: str, references: Sequence[str]) -> float:
    """The share of references that the prediction contains, whatever the case (RULER's ``string_match_all``)."""
    return _share([_contains(prediction, reference) for reference in references])


def score_any(prediction: str, references: Sequence[str]) -> float:
    """1.0 where the prediction contains any reference, else 0.0 (RULER's ``string_match_part``)."""
    return float(any(_contains(prediction, reference) for reference in references))


def score_boundary(prediction: str, references: Sequence[str]) -> float:
    """The share of references that stand in the prediction as whole words: 12345678 does not hold 1234567."""
    text = clean(prediction)
    return _share([_whole_word(reference).search(text) is not None for reference in references])


def precision(prediction: str, references: Sequence[str]) -> float | None:
    """The share of seven-digit numbers in the prediction that are references; ``None`` where it names none.

    A model that lists every number of the text finds all references with a low precision.
    """
    named = set(whole(NUMBERS, number=True).findall(clean(prediction)))
    return len(named & {_plain(reference) for reference in references}) / len(named) if named else None


def settled(prediction: str, references: Sequence[str]) -> bool:
    """Whether no further text can change the scores: each reference stands there, and something ended it."""
    text = _plain(prediction)
    return all(any(not may_grow(text, found.end()) for found in _whole_word(one).finditer(text)) for one in references)


def _contains(prediction: str, reference: str) -> bool:
    return _plain(reference).lower() in clean(prediction).lower()


def _whole_word(reference: str) -> Any:
    plain = _plain(reference)
    return whole(re.escape(plain), first=plain[:1], last=plain[-1:])


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found) if found else 0.0
