"""All ways to read one answer: as a letter, a label, a number from 0 or 1, the text of an option, marks of the options.

One row alone may be read in several ways: "Bad" as letters or as an option's text, 1 as the first option or the second.
Every row is therefore kept with all its readings, and the set as a whole decides (:mod:`~.forms`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_audit.audits.hub_rows import structured
from lm_audit.audits.leakage.items.answers.marks import marks_of
from lm_audit.audits.leakage.items.cells import Unusable, text_of
from lm_audit.audits.leakage.items.item import LETTERS

LABELS, TEXTS, LETTER, FROM_0, FROM_1 = "labels", "texts", "letters", "numbers from 0", "numbers from 1"
FORMS = (LABELS, TEXTS, LETTER, FROM_0, FROM_1)
"""In the order in which a tie is decided: a set's own labels first, an option's text before letters."""

Readings = Mapping[str, str]
"""The answer's letters ("A,C") by the form in which it can be read; empty where there is no answer."""

_JOIN = r"[\s,，、;；和与及或&/|+]*"
_AND = re.compile(r"(?<=[\s)\]])(?:and|or)(?=[\s(\[])")
"""Words between letters: "A and B"."""
_LETTERS = re.compile(rf"[A-Z](?:{_JOIN}[A-Z])*|[a-z](?:{_JOIN}[a-z])*")
_SEVERAL = re.compile(rf"(?:[(\[]\s*[A-Za-z]\s*[)\]]{_JOIN}){{2,}}\.?|[A-Z]{{2,}}\.")
"""Letters in brackets of their own, or with a mark behind them: "(A), (B)", "AC."."""
_ONE = r"([A-Za-z]|[0-9]{1,2})"
_LEAD = (
    r"(?:(?:(?:the|correct|right|final|best)\s+)*(?i:option|choice|answer|ans|opt|正确选项|正确答案|参考答案|选项|答案|"
    r"故选|应选|选)(?:\s+is\b|是|为)?[\s_:：]*)?"
)
_OWN_LEAD = r"(?:[^\W\d_]+\s*[:：]\s*)?"
"""A word of any language before a colon: "Antwort: C", "Réponse : C"."""
_WRAPPED = re.compile(
    rf"(?i:{_LEAD}|{_OWN_LEAD})(?:[(\[【<{{]\s*{_ONE}\s*[)\]】>}}]?|{_ONE})\s*[.、。):]?(?:选项)?", re.IGNORECASE
)
_WITH_TEXT = re.compile(
    rf"(?i:{_LEAD}|{_OWN_LEAD})(?:[(\[【<{{]\s*{_ONE}\s*[)\]】>}}]\s*[.:、-]?|{_ONE}\s*(?:[.、):]|\s?[\u2013\u2014]|\s-)(?!\d))\s*(?P<text>\S.*)",
    re.DOTALL | re.IGNORECASE,
)
"""A letter or number with a text behind it: "A. red", "(B) blue", "Answer: C) green"."""
_WITH_TEXT_IN_BRACKETS = re.compile(rf"{_ONE}\s*[(\[](?P<text>[^()\[\]]+)[)\]]\.?")
_MARKUP = re.compile(r"\\boxed|\\text(?:bf|rm)?|[*_`$]+")
_NUMBER = re.compile(r"-?[0-9]{1,3}(?:\.0+)?")
_LIST = re.compile(r"[0-9]{1,2}(?:\s*[,，、;；/|]\s*[0-9]{1,2})+")
CONTRADICTION = "the words of the answer are not those of the option that its letter names"
_HIDDEN = ("-1", "-1.0")
"""How sets that keep their answers secret write that."""
SECRET = "secret"
"""The reading of such a number: no answer. Where it is an option's text too, the set decides."""


def readings(
    value: object,
    options: Sequence[str],
    labels: Sequence[str],
    given: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> dict[str, str] | None:
    """All ways to read an answer; empty where there is none, ``None`` where no way gives an option.

    ``value`` is a cell, a list of several right answers, a record of one option, or a list or mapping that says of each
    option whether it is right (0 and 1, true and false); ``labels`` are the set's own names of the options, ``given``
    their texts with labels that were taken off, ``columns`` the columns that hold one each ("option_2"). Raises
    :class:`Unusable` for a letter whose words are those of another option, or of none, and for a record that names two.
    """
    value = _unprinted(value, options)
    if isinstance(value, Mapping) and _RECORD & {str(name).lower() for name in value}:
        return _of_record(value, options, labels, given, columns)
    marks = marks_of(value, options, labels)
    if marks is not None:
        return of_marks(marks)
    parts = [part for part in _parts(value) if text_of(part).strip()]
    open_parts = [part for part in parts if not _is_hidden(part)]
    # A column that is called by a number or a letter names no option by that: "2" may be the second or the third.
    choices = _Choices(options, labels, given, columns if all(len(name) > 2 for name in columns) else ())
    found = [_of_part(part, choices) for part in open_parts]
    if len(found) == 1 and not found[0] and (listed := _LIST.fullmatch(text_of(open_parts[0]).strip())):
        found = [_of_part(part, choices) for part in re.findall(r"[0-9]+", listed.group())]
    for part in filter(_is_hidden, parts):
        # -1 says nothing beside other numbers, and is a text or a label beside others of these.
        own = {form: places for form, places in _of_part(part, choices).items() if form in (LABELS, TEXTS)}
        found.append({form: own.get(form, []) for form in FORMS} if open_parts else own)
    if not parts:
        return {}
    shared = [form for form in FORMS if all(form in part for part in found)]
    read = {form: ",".join(sorted({x for part in found for x in part[form]})) for form in shared}
    return read | ({} if open_parts else {SECRET: ""}) or None


_TEXTS_OF = ("text", "content", "value", "answer", "option")
_NAMES_OF = ("label", "key", "letter", "id", "index", "idx")
_RECORD = {*_TEXTS_OF, *_NAMES_OF}


def _of_record(
    record: Mapping[object, object],
    options: Sequence[str],
    labels: Sequence[str],
    given: Sequence[str],
    columns: Sequence[str],
) -> dict[str, str] | None:
    """The readings of an answer that is a record of the right option: its text, else its label; they must agree."""
    fields = {str(name).lower(): value for name, value in record.items()}
    named = [
        next((fields[name] for name in names if fields.get(name) is not None), None) for names in (_TEXTS_OF, _NAMES_OF)
    ]
    found = [readings(value, options, labels, given, columns) for value in named if value is not None]
    if not found or None in found:
        return None
    read = [one for one in found if one is not None]
    if len(read) == 2 and not set(read[0].values()) & set(read[1].values()):
        raise Unusable(f"{CONTRADICTION}: {dict(record)!r:.80}")
    return read[0]


@dataclass(frozen=True)
class _Choices:
    """The options of a row, what the set calls them, their texts with the labels that were taken off, their columns."""

    texts: Sequence[str]
    labels: Sequence[str]
    given: Sequence[str]
    columns: Sequence[str]


def _is_hidden(part: object) -> bool:
    return text_of(part).strip() in _HIDDEN


def _parts(value: object) -> list[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, list | tuple) else [value]


def of_marks(marks: Sequence[int]) -> dict[str, str]:
    """The readings of an answer that marks each option as right (1) or wrong (0): the same whatever the set says."""
    right = ",".join(LETTERS[k] for k, mark in enumerate(marks) if mark)
    return dict.fromkeys(FORMS, right) if right else {}


def _unprinted(value: object, options: Sequence[str]) -> object:
    """A list or mapping that a table holds as text ("[0, 1, 0]", "['A', 'C']"), unless it is an option's text."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return value if isinstance(value, str) and _place(value.strip(), options) is not None else structured(value)


def _of_part(value: object, choices: _Choices) -> dict[str, list[str]]:
    options, labels = choices.texts, choices.labels
    text = text_of(value).strip()
    found: dict[str, list[str]] = {}
    for form, names in (
        (LABELS, labels),
        (LABELS, choices.columns),
        (TEXTS, options),
        (TEXTS, choices.given),
    ):
        place = None if form in found else _place(text, names)
        if place is not None:
            found[form] = [LETTERS[place]]
    if TEXTS in found or LABELS in found:  # an option that itself looks like a letter with words behind it
        text = _core(text, options) or text
    else:
        core = _core(text, options)
        if core is None:
            raise Unusable(f"{CONTRADICTION}: {text!r:.80}")
        text = core
    if LABELS not in found and (place := _place(text, labels)) is not None:
        found[LABELS] = [LETTERS[place]]
    letters = _letters(text, len(options))
    if letters:
        found[LETTER] = letters
    number = _number(text)
    if number is not None:
        for form, first in ((FROM_0, 0), (FROM_1, 1)):
            if 0 <= number - first < len(options):
                found[form] = [LETTERS[number - first]]
    if not found and (place := _only([_plain(text) == _plain(option) for option in options])) is not None:
        found[TEXTS] = [LETTERS[place]]  # "Red clay.", ‘red clay’
    return found


def _only(hits: Sequence[bool]) -> int | None:
    return hits.index(True) if sum(hits) == 1 else None


def _place(text: str, names: Sequence[str]) -> int | None:
    """Where the name stands, told apart by case only if need be; ``None`` where none or several are meant."""
    for fold in (str.strip, lambda name: " ".join(name.split()).casefold()):
        places = [k for k, name in enumerate(names) if fold(name) == fold(text)]
        if places:
            return places[0] if len(places) == 1 else None
    return None


def _core(text: str, options: Sequence[str]) -> str | None:
    """The letter or number that an answer is written around; the text itself where it is written around none.

    Full-width forms count as plain ones. A text behind the letter or number ("A. red", "2) blue, since ...") must be
    that of the option, or begin with it and name no other; ``None`` where it is another text.
    """
    if len(text) == 1 and text.isascii():
        return text
    plain = _in_ascii_digits(_MARKUP.sub("", unicodedata.normalize("NFKC", text)).strip(_QUOTES).lstrip("# "))
    wrapped = _WRAPPED.fullmatch(plain)
    if wrapped:
        return next(group for group in wrapped.groups() if group)
    joined = _AND.sub(",", plain)
    if _LETTERS.fullmatch(joined):
        return joined
    if _SEVERAL.fullmatch(joined):
        return ",".join(re.findall("[A-Za-z]", joined))
    first, _, rest = plain.partition("\n")
    alone = _WRAPPED.fullmatch(first.strip())
    if alone and rest.strip():  # "C", and in the lines below why
        core = next(group for group in alone.groups() if group)
        place = _said(rest, options)
        return core if place is None or (core.isalpha() and LETTERS[place] == core.upper()) else None
    behind = _WITH_TEXT.fullmatch(plain) or _WITH_TEXT_IN_BRACKETS.fullmatch(plain)
    if behind is None:
        return plain
    core = next(group for group in behind.groups()[:2] if group)
    place = _said(behind["text"], options)
    if place is None and not core.isalpha():
        return plain  # words behind a number may be anything: "3. March", "1: 30"
    named = {core.upper()} if core.isalpha() else {LETTERS[k] for k in (int(core), int(core) - 1) if 0 <= k < 26}
    return LETTERS[place] if place is not None and LETTERS[place] in named else None


def _in_ascii_digits(text: str) -> str:
    """Digits of every script as 0 to 9."""
    return "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in text)


_QUOTES = " \t\r\n\"'\u201c\u201d\u2018\u2019\u00ab\u00bb"


def _said(words: str, options: Sequence[str]) -> int | None:
    """The option that words behind a letter say, by case, width, quotes and closing marks apart; ``None`` for none."""
    said, texts = _plain(words), [_plain(option) for option in options]
    exact = [k for k, text in enumerate(texts) if text == said]
    if exact:
        return exact[0] if len(exact) == 1 else _place(words.strip(), options)
    begun = [k for k, text in enumerate(texts) if text and said.startswith(text) and not _goes_on(said[len(text) :])]
    longest = max(begun, key=lambda k: len(texts[k]), default=None)
    if longest is None:
        return None
    rest = said[len(texts[longest]) :]
    others = any(text and text in rest for k, text in enumerate(texts) if k != longest)
    return None if others or _ANOTHER.search(rest) else longest


_ANOTHER = re.compile(r"(?<![^\W_])(?:[(\[]\s*[a-z]\s*[)\]]|[a-z][.)])")
"""The mark of one more letter in what follows an option: the answer names several."""


def _goes_on(rest: str) -> bool:
    """Whether the word that came before does not end here: "red" in "redder"."""
    return rest[:1].isalnum()


def _plain(text: str) -> str:
    """Words as they are compared: no markup, outer quotes or closing marks, whatever their case, width and gaps."""
    bare = _MARKUP.sub("", unicodedata.normalize("NFKC", text))
    return " ".join(bare.split()).casefold().strip(f"{_QUOTES}.;,\u3002")


def _letters(text: str, count: int) -> list[str] | None:
    if not _LETTERS.fullmatch(text):
        return None
    found = [character.upper() for character in text if character.isascii() and character.isalpha()]
    # A letter twice, or one beyond the options, is a word: "Dad", "cafe".
    within = all(LETTERS.index(letter) < count for letter in found)
    return found if within and len(set(found)) == len(found) else None


def _number(text: str) -> int | None:
    return int(float(text)) if _NUMBER.fullmatch(text) else None
