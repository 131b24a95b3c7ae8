"""Rows that ask what an earlier row asks: they count once, and where they say another answer, that is told.

A question whose options stand in another order is another item, since its order is what is tested. What is right of
them must be the same text all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lm_audit.audits.leakage.items.answers.forms import AnswerForm
from lm_audit.audits.leakage.items.answers.readings import Readings
from lm_audit.audits.leakage.items.item import LETTERS, Item, letters_of

_LISTED = 3
"""So many places are named; all are counted."""

_ROWS, _FILES, _ORDERS = 2**31, 2**13, 2**32


@dataclass(frozen=True, slots=True)
class Asked:
    """What a row asks, whatever its id and subject: in its order of the options, and in any (``set``).

    ``answers`` are its readings with the letters that the options have in the order of their texts (``order``).
    """

    content: int
    set: int
    answers: Readings
    order: tuple[int, ...] = ()
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, item: Item, answers: Readings) -> Asked:
        """An item and its readings."""
        order = sorted(range(len(item.options)), key=item.options.__getitem__)
        options = tuple([item.options[k] for k in order])
        new = {LETTERS[old]: LETTERS[k] for k, old in enumerate(order)}
        moved = {
            form: new[read] if read in new else ",".join(sorted(new[one] for one in letters_of(read)))
            for form, read in answers.items()
        }
        # Python's own hash: equal texts have equal ones within a process, and no more is asked.
        return cls(hash((item.question, item.options)), hash((item.question, options)), moved, tuple(order), options)

    @classmethod
    def of_text(cls, text: str) -> Asked:
        """A row that is no item."""
        return cls(hash(text), hash(text), {})

    def letters(self, answer: str) -> str:
        """An answer in the letters that the options have in their own order."""
        return ",".join(sorted(LETTERS[self.order[LETTERS.index(one)]] for one in letters_of(answer)))

    def texts(self, answer: str) -> str:
        """An answer in words."""
        return " and ".join(repr(self.options[LETTERS.index(one)])[:60] for one in letters_of(answer))


@dataclass
class _Differing:
    """Rows that repeat a question with readings of its answer that are not the earlier row's."""

    places: list[tuple[str, str, Asked]]
    count: int = 0


class Repeats:
    """Knows rows by what they ask; of each are kept eight bytes of a hash, its place and the number of its answer."""

    def __init__(self) -> None:
        self.count = self.reordered = 0
        self._first: dict[int, int] = {}
        """Of what is asked, in any order of the options: the first row's place, and behind it its own order."""
        self._orders: dict[int, int] = {}
        """The places of rows that ask the same in another order than the first."""
        self._answers: list[Readings] = []
        self._numbers: dict[frozenset[tuple[str, str]], int] = {}
        self._files: dict[str, int] = {}
        self._differing: dict[tuple[int, int, bool], _Differing] = {}

    def is_repeat(self, asked: Asked, *, file: str, row: int) -> bool:
        """Whether a row asks what an earlier one did, and if so, counted: with which answer."""
        number = self._number(asked.answers)
        place = (number * _FILES + min(self._files.setdefault(file, len(self._files)), _FILES - 1)) * _ROWS + row
        order = asked.content % _ORDERS
        first, first_order = divmod(self._first.setdefault(asked.set, place * _ORDERS + order), _ORDERS)
        if first == place:
            return False
        repeated = True
        if first_order != order:
            own = self._orders.setdefault(asked.content, place)
            repeated = own != place
            first = own if repeated else first
        self.count += repeated
        self.reordered += not repeated
        rest, first_row = divmod(first, _ROWS)
        first_number, first_file = divmod(rest, _FILES)
        if first_number != number:
            found = self._differing.setdefault((first_number, number, repeated), _Differing([]))
            found.count += 1
            if len(found.places) < _LISTED:
                earlier = next(name for name, k in self._files.items() if k == first_file)
                found.places.append((f"row {row} of {file}", f"row {first_row} of {earlier}", asked))
        return repeated

    def _number(self, answers: Readings) -> int:
        found = self._numbers.setdefault(frozenset(answers.items()), len(self._answers))
        if found == len(self._answers):
            self._answers.append(dict(answers))
        return found

    def remarks(self, form: AnswerForm) -> Iterator[str]:
        """What is to be told of repeated questions with another answer, the answers read as ``form`` says."""
        for repeated, what in _SAYINGS.items():
            told: list[str] = []
            count = 0
            for (one, two, alike), found in self._differing.items():
                first, second = form.of(self._answers[one]), form.of(self._answers[two])
                if alike is not repeated or not first or not second or first == second:
                    continue
                count += found.count
                for place, earlier, asked in found.places:
                    say = asked.letters if repeated else asked.texts
                    told.append(f"{place} says {say(second)} where {earlier} says {say(first)}")
            if count:
                more = f", and {count - _LISTED} more" if count > _LISTED else ""
                yield f"{count} rows repeat a question and its options {what}: {'; '.join(told[:_LISTED])}{more}"


_SAYINGS: Mapping[bool, str] = {
    True: "with another answer, and the first counts",
    False: "in another order with another right text, and all of them count",
}
