"""Two columns that both say which option is right: where they differ, the file is refused, or the difference is told.

Each column is read in its own form (letters here, numbers or texts there), which is known only at the end of a set.
Of every row its two ways of being read are therefore kept, counted where they are the same. Where one column has no
answer and another has, the other's counts, and that is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from lm_audit.audits.leakage.items.answers.forms import AnswerForm, AnswerForms
from lm_audit.audits.leakage.items.answers.readings import FROM_0, FROM_1, LABELS, LETTER, SECRET, TEXTS, Readings
from lm_audit.audits.leakage.items.columns import Candidate
from lm_audit.audits.leakage.items.item import letters_of
from lm_audit.errors import DataError

_SURELY = re.compile(r"answer|gold|correct_|^the marks|^cop$|答案", re.IGNORECASE)
"""Names of columns that hold answers whatever stands in them; numbers under "label" may be classes of any kind."""

_BASES = (FROM_0, FROM_1)


@dataclass
class _Same:
    """Rows whose two answers read alike: how many, and the first of them."""

    file: str
    row: int
    count: int = 0


@dataclass
class _Pair:
    """The rows of one answer column and one rival."""

    forms: AnswerForms = field(default_factory=AnswerForms)
    seen: dict[tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]], _Same] = field(default_factory=dict)
    alone: dict[frozenset[tuple[str, str]], _Same] = field(default_factory=dict)
    """The rival's readings in rows that have no other answer."""
    answered: int = 0
    filled: int = 0
    readable: int = 0


@dataclass(frozen=True)
class _Difference:
    """What two columns say of the rows in which both can be read."""

    compared: int
    differing: int
    first: _Same | None = None
    says: str = ""
    other: str = ""


class Rivals:
    """Counts, row by row, what an answer column and its rivals say."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], _Pair] = {}

    def add(self, row: Candidate, *, file: str, number: int) -> None:
        """One usable row."""
        answer = row.answers
        for name, rival in row.rivals.items():
            pair = self._pairs.setdefault((row.column, name), _Pair())
            pair.answered += bool(answer)
            pair.filled += rival is None or bool(rival)
            if not rival:
                continue
            pair.readable += 1
            pair.forms.add(rival)
            if answer:
                key = (frozenset(answer.items()), frozenset(rival.items()))
                pair.seen.setdefault(key, _Same(file, number)).count += 1
            if not answer or SECRET in answer:
                pair.alone.setdefault(frozenset(rival.items()), _Same(file, number)).count += 1

    def instead(self, row: Candidate, form: AnswerForm) -> str:
        """What another column says of a row whose own answer says nothing; "" where none does, or none that is sure."""
        if row.column:
            for name, rival in row.rivals.items():
                pair = self._pairs.get((row.column, name))
                own = self._sure_form(form, name, pair) if rival and pair else None
                if own is not None and rival and (found := own.of(rival)):
                    return found
        return ""

    def _sure_form(self, form: AnswerForm, name: str, pair: _Pair) -> AnswerForm | None:
        """How a rival is read where it may stand in for the answer: it contradicts none, and surely holds answers."""
        if 2 * pair.readable < pair.filled:
            return None
        own, found = _best(form, pair)
        if found.differing or not (found.compared or _SURELY.search(name)):
            return None
        if own.main not in _BASES:
            return own
        fitting = [base for base in _BASES if not _differences(pair, form.of, AnswerForm(base, base).of).differing]
        alone = _own_form(pair.forms)
        return own if found.compared and len(fitting) == 1 else alone if alone and alone.main in fitting else None

    def base_of(self) -> int | None:
        """Where the answers' numbers count from by what letters or texts beside them say; ``None`` for nobody knows."""
        fits = [
            base
            for base, form in enumerate(_BASES)
            if any(self._answer_columns())
            and all(
                found.compared and not found.differing
                for pair in self._answer_columns()
                for _, found in [_best(AnswerForm(form, form), pair)]
            )
        ]
        return fits[0] if len(fits) == 1 else None

    def _answer_columns(self) -> Iterator[_Pair]:
        for pair in self._pairs.values():
            own = _own_form(pair.forms)
            if own is not None and own.main not in _BASES and 2 * pair.readable >= pair.filled:
                yield pair

    def remarks(self, form: AnswerForm) -> Iterator[str]:
        """What is to be told of columns that differ, a sentence each, the answers read as ``form`` says.

        Raises ``DataError`` with file and row where two columns that surely hold answers contradict each other.
        """
        for (column, name), pair in self._pairs.items():
            if 2 * pair.readable < pair.filled:
                continue  # a text or a number of another kind
            _, found = _best(form, pair)
            if not found.differing or found.first is None:
                yield from self._told_instead(form, column, name, pair)
                continue
            first, share = found.first, f"they differ in {found.differing} of {found.compared} rows"
            told = f"{_quoted(column)} says {found.says} where {_quoted(name)} says {found.other}"
            numbers = not any({LABELS, TEXTS, LETTER} & dict(rival).keys() for _, rival in pair.seen)
            doubtful = numbers and not _SURELY.search(name) and 10 * found.differing > found.compared
            if doubtful or 2 * pair.filled < pair.answered:
                change = "" if name.startswith("the marks") else f": `--leakage-columns answer={name}` to change"
                yield (
                    f"answers are read from {_quoted(column)}: {told} (row {first.row} of {first.file}), and {share}"
                    f"{change}"
                )
                continue
            raise DataError(
                f"has two answers: {told}, and {share}. Say which is right by --leakage-columns answer=COLUMN",
                file=first.file,
                row=first.row,
            )

    def _told_instead(self, form: AnswerForm, column: str, name: str, pair: _Pair) -> Iterator[str]:
        own = self._sure_form(form, name, pair) if column and pair.alone else None
        taken = [same for rival, same in pair.alone.items() if own is not None and own.of(dict(rival))]
        if taken:
            first = min(taken, key=lambda same: (same.file, same.row))
            yield (
                f"{sum(same.count for same in taken)} rows have no answer in {_quoted(column)} and one in "
                f"{_quoted(name)}, which counts there; the first is row {first.row} of {first.file}"
            )


def _quoted(column: str) -> str:
    return column if column.startswith("the marks") else repr(column)


def _own_form(forms: AnswerForms) -> AnswerForm | None:
    """How a rival is read by itself; numbers that may count from either are told by the answers beside them."""
    try:
        return forms.decide(None, file="")
    except DataError:
        return None


def _best(form: AnswerForm, pair: _Pair) -> tuple[AnswerForm, _Difference]:
    """How a rival is read, and where it differs; its numbers are counted from where they differ less."""
    own = _own_form(pair.forms)
    forms = [own] if own is not None and own.main not in _BASES else [AnswerForm(base, base) for base in _BASES]
    found = [(one, _differences(pair, form.of, one.of)) for one in forms]
    return min(found, key=lambda one: one[1].differing)


def _differences(
    pair: _Pair, read: Callable[[Readings], str | None], read_rival: Callable[[Readings], str | None]
) -> _Difference:
    found = _Difference(0, 0)
    for (answer, rival), same in pair.seen.items():
        says, other = read(dict(answer)), read_rival(dict(rival))
        if not says or other == "":
            continue
        found = replace(found, compared=found.compared + same.count)
        one, two = set(letters_of(says)), set(letters_of(other or ""))
        if two and (one <= two or two <= one):
            continue
        first = found.first is None or (same.file, same.row) < (found.first.file, found.first.row)
        found = replace(found, differing=found.differing + same.count)
        if first:
            found = replace(found, first=same, says=says, other=other or "none of the options")
    return found
