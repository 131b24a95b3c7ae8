"""What an answer column means: letters, labels, numbers from 0 or 1, or the text of an option; decided for a whole set.

One row alone may be read in several ways: "Bad" as letters or as an option's text, 1 as the first option or the second.
Every row is therefore kept with all its readings, and the set as a whole decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_audit.audits.leakage.items.cells import Unusable, text_of
from lm_audit.audits.leakage.items.item import LETTERS
from lm_audit.errors import DataError

LABELS, TEXTS, LETTER, FROM_0, FROM_1 = "labels", "texts", "letters", "numbers from 0", "numbers from 1"
FORMS = (LABELS, TEXTS, LETTER, FROM_0, FROM_1)
"""In the order in which a tie is decided: a set's own labels first, an option's text before letters."""

Readings = Mapping[str, str]
"""The answer's letters ("A,C") by the form in which it can be read; empty where there is no answer."""

_JOIN = r"[\s,，、;；和与&/|]*"
_LETTERS = re.compile(rf"[A-Z](?:{_JOIN}[A-Z])*|[a-z](?:{_JOIN}[a-z])*")
_ONE = r"([A-Za-z]|[0-9]{1,2})"
_LEAD = (
    r"(?:(?:(?:the|correct|right|final|best)\s+)*(?i:option|choice|answer|ans|选项|答案)(?:\s+is\b|是|为)?[\s_:：]*)?"
)
_OWN_LEAD = r"(?:[^\W\d_]+\s*[:：]\s*)?"
"""A word of any language before a colon: "Antwort: C", "Réponse : C"."""
_WRAPPED = re.compile(rf"(?i:{_LEAD}|{_OWN_LEAD})(?:[(\[【<{{]\s*{_ONE}\s*[)\]】>}}]|{_ONE})\s*[.、):]?", re.IGNORECASE)
_WITH_TEXT = re.compile(
    rf"(?i:{_LEAD}|{_OWN_LEAD})(?:[(\[【<{{]\s*{_ONE}\s*[)\]】>}}]\s*[.:、-]?|{_ONE}\s*(?:[.、):]|\s?[\u2013\u2014]|\s-)(?!\d))\s*(?P<text>\S.*)",
    re.DOTALL | re.IGNORECASE,
)
"""A letter or number with a text behind it: "A. red", "(B) blue", "Answer: C) green"."""
_MARKUP = re.compile(r"\\boxed|\\text(?:bf|rm)?|[*_`$]+")
_NUMBER = re.compile(r"-?[0-9]{1,3}(?:\.0+)?")
_LIST = re.compile(r"[0-9]{1,2}(?:\s*[,，、;；/|]\s*[0-9]{1,2})+")
CONTRADICTION = "the words of the answer are not those of the option that its letter names"
_HIDDEN = ("-1", "-1.0")
"""How sets that keep their answers secret write that."""
SECRET = "secret"
"""The reading of such a number: no answer. Where it is an option's text too, the set decides."""


def readings(value: object, options: Sequence[str], labels: Sequence[str]) -> dict[str, str] | None:
    """All ways to read an answer; empty where there is none, ``None`` where no way gives an option.

    ``value`` is a cell, a list of several right answers, or a list that says of each option whether it is right (0 and
    1, true and false); ``labels`` are the set's own names of the options. Raises :class:`Unusable` for a letter whose
    words are those of another option, or of none.
    """
    marked = (
        _marked(_parts(value), len(options)) if isinstance(value, list | tuple) or hasattr(value, "tolist") else None
    )
    if marked is not None:
        return dict.fromkeys(FORMS, ",".join(LETTERS[k] for k in marked)) if marked else {}
    parts = [part for part in _parts(value) if text_of(part).strip()]
    open_parts = [part for part in parts if not _is_hidden(part)]
    found = [_of_part(part, options, labels) for part in open_parts]
    if len(found) == 1 and not found[0] and (listed := _LIST.fullmatch(text_of(open_parts[0]).strip())):
        found = [_of_part(part, options, labels) for part in re.findall(r"[0-9]+", listed.group())]
    for part in filter(_is_hidden, parts):
        # -1 says nothing beside other numbers, and is a text or a label beside others of these.
        own = {form: places for form, places in _of_part(part, options, labels).items() if form in (LABELS, TEXTS)}
        found.append({form: own.get(form, []) for form in FORMS} if open_parts else own)
    if not parts:
        return {}
    shared = [form for form in FORMS if all(form in part for part in found)]
    read = {form: ",".join(sorted({x for part in found for x in part[form]})) for form in shared}
    return read | ({} if open_parts else {SECRET: ""}) or None


def _is_hidden(part: object) -> bool:
    return text_of(part).strip() in _HIDDEN


def _parts(value: object) -> list[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return list(value) if isinstance(value, list | tuple) else [value]


def _marked(parts: Sequence[object], count: int) -> list[int] | None:
    """The options that a list with one mark an option calls right; ``None`` where the list is of another kind."""
    if count < 2 or len(parts) != count or not all(isinstance(part, int | float) and part in (0, 1) for part in parts):
        return None
    return [k for k, part in enumerate(parts) if part]


def _of_part(value: object, options: Sequence[str], labels: Sequence[str]) -> dict[str, list[str]]:
    text = text_of(value).strip()
    found: dict[str, list[str]] = {}
    for form, names in ((LABELS, labels), (TEXTS, options)):
        place = _place(text, names)
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
    return found


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
    plain = _MARKUP.sub("", unicodedata.normalize("NFKC", text)).strip()
    wrapped = _WRAPPED.fullmatch(plain)
    if wrapped:
        return next(group for group in wrapped.groups() if group)
    if _LETTERS.fullmatch(plain):
        return plain
    behind = _WITH_TEXT.fullmatch(plain)
    if behind is None:
        return plain
    core = next(group for group in behind.groups()[:2] if group)
    place = _said(behind["text"], options)
    if place is None and not core.isalpha():
        return plain  # words behind a number may be anything: "3. March", "1: 30"
    named = {core.upper()} if core.isalpha() else {LETTERS[k] for k in (int(core), int(core) - 1) if 0 <= k < 26}
    return LETTERS[place] if place is not None and LETTERS[place] in named else None


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
    return " ".join(bare.split()).casefold().strip("\"'\u201c\u201d\u2018\u2019\u00ab\u00bb.;,\u3002 ")


def _letters(text: str, count: int) -> list[str] | None:
    if not _LETTERS.fullmatch(text):
        return None
    found = [character.upper() for character in text if character.isascii() and character.isalpha()]
    # A letter twice, or one beyond the options, is a word: "Dad", "cafe".
    within = all(LETTERS.index(letter) < count for letter in found)
    return found if within and len(set(found)) == len(found) else None


def _number(text: str) -> int | None:
    return int(float(text)) if _NUMBER.fullmatch(text) else None


@dataclass
class AnswerForms:
    """Counts, row by row, in which ways a set's answers can be read, and decides in the end."""

    _seen: Counter[frozenset[str]] = field(default_factory=Counter)
    _differing: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, row: Readings) -> None:
        """One usable row's readings."""
        self._seen[frozenset(row)] += 1
        if len(set(row.values())) > 1:
            self._differing.update((one, other) for one in row for other in row if row[one] != row[other])

    def decide(self, base: int | None, *, file: str, main: str | None = None) -> AnswerForm:
        """The form that reads most answers, earlier ones of :data:`FORMS` first, unless the user says which.

        ``base`` (0 or 1) says where numbers count from, ``main`` ("texts", "letters", "labels") what the answers are.
        Raises ``DataError`` where the answers are numbers that could count from 0 and from 1 alike, or from neither.
        """
        answered = {forms: count for forms, count in self._seen.items() if forms and SECRET not in forms}
        reads = {form: sum(count for forms, count in answered.items() if form in forms) for form in FORMS}
        best = max(FORMS, key=lambda form: reads[form])
        numbers = None if base is None else (FROM_0, FROM_1)[base]
        if main is not None:
            return AnswerForm(main, numbers)
        if not answered:
            return AnswerForm(self._of_secrets(), None)
        if numbers is not None and best == TEXTS and reads[numbers] == reads[best]:
            return AnswerForm(numbers, numbers)
        if best not in (FROM_0, FROM_1):
            # A stray number among letters or texts is read only where the user says how.
            others = [form for form in (LETTER, FROM_0, FROM_1) if best == TEXTS and reads[form] == reads[best]]
            rivals = tuple(form for form in others if self._differing[best, form])
            return AnswerForm(best, numbers, rivals=rivals)
        chosen = self._base(answered, base, file)
        return AnswerForm(chosen, chosen, guessed=base is None)

    def _of_secrets(self) -> str | None:
        """What -1 is where no answer is anything else: a text or a label if it is one in every row, else no answer."""
        rows = [forms for forms in self._seen if forms]
        return next((form for form in (TEXTS, LABELS) if rows and all(form in forms for forms in rows)), None)

    @staticmethod
    def _base(answered: Mapping[frozenset[str], int], base: int | None, file: str) -> str:
        if base is not None:
            return (FROM_0, FROM_1)[base]
        zero = sum(count for forms, count in answered.items() if FROM_0 in forms and FROM_1 not in forms)
        last = sum(count for forms, count in answered.items() if FROM_1 in forms and FROM_0 not in forms)
        if bool(zero) != bool(last):
            return FROM_1 if last else FROM_0
        what = (
            f"{zero} answers are 0 and {last} are the number of options"
            if zero
            else "the answers are numbers, none of which is 0 or the number of options"
        )
        raise DataError(
            f"{what}: they may count from 0 or from 1. Say which by --leakage-columns answer-base=0 or answer-base=1",
            file=file,
        )


@dataclass(frozen=True)
class AnswerForm:
    """How a set's answers are read: the main form, and where numbers count from."""

    main: str | None
    numbers: str | None
    guessed: bool = False
    rivals: tuple[str, ...] = ()
    """Other forms that read every answer too, and otherwise."""

    def of(self, row: Readings) -> str | None:
        """The answer's letters; "" where there is none, ``None`` where this form cannot read it."""
        if not row or (SECRET in row and self.main not in row):
            return ""
        order = (self.main, LABELS, TEXTS, LETTER, self.numbers)
        return next((row[form] for form in order if form is not None and form in row), None)

    def note(self) -> str | None:
        """What was guessed, as one sentence; ``None`` where nothing was."""
        if self.rivals:
            changes = {FROM_0: "answer-base=0", FROM_1: "answer-base=1", LETTER: "answer-as=letters"}
            options = " or ".join(f"`--leakage-columns {changes[form]}`" for form in self.rivals)
            rivals = " or ".join(self.rivals)
            return f"answers read as the texts of options, though they could be {rivals}: {options} to change"
        if not self.guessed or self.main not in (FROM_0, FROM_1):
            return None
        here, other = ("0", "1") if self.main == FROM_0 else ("1", "0")
        return f"answers read as {here}-based numbers: `--leakage-columns answer-base={other}` to change"
