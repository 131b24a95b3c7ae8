"""Where the right options stand: a set that has them all in one place tells its order to whoever knows the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from lm_audit.audits.leakage.items.answers.forms import AnswerForm
from lm_audit.audits.leakage.items.answers.readings import Readings
from lm_audit.audits.leakage.items.item import LETTERS

ENOUGH = 20
"""So many answers with :data:`MOST` of them in one place are no accident, two options each or more."""
MOST = 0.9


@dataclass(frozen=True)
class HeldPlace:
    """The letter of the place in which right options stand: in ``count`` of ``answered`` questions, or ``by_role``."""

    letter: str
    count: int
    answered: int
    by_role: bool

    def slots(self, answer: str) -> tuple[int, ...]:
        """The slots of an item with this answer that no shuffle may move."""
        return (LETTERS.index(answer),) if answer == self.letter else ()

    def remark(self) -> str:
        """What is to be told of it."""
        where = (
            "options are read in the order of their columns, and the right one" if self.by_role else "the right option"
        )
        return (
            f"{where} stands in place {self.letter} in {self.count} of {self.answered} questions: it keeps this place "
            "in every shuffle, since a model that knows the answers would prefer it there"
        )


class RightPlaces:
    """Counts, row by row, in which ways answers can be read, and whether the set has a column of right options."""

    def __init__(self) -> None:
        self._seen: Counter[frozenset[tuple[str, str]]] = Counter()
        self._by_role = 0

    def add(self, answers: Readings, *, by_role: bool) -> None:
        """One usable row."""
        self._seen[frozenset(answers.items())] += 1
        self._by_role += by_role

    def held(self, form: AnswerForm) -> HeldPlace | None:
        """The place in which nearly all right options stand; ``None`` where they stand in several."""
        places: Counter[str] = Counter()
        for answers, count in self._seen.items():
            places[form.of(dict(answers)) or ""] += count
        answered = sum(count for letters, count in places.items() if letters)
        letter, count = max(((x, k) for x, k in places.items() if len(x) == 1), key=lambda p: p[1], default=("", 0))
        by_role = 2 * self._by_role > self._seen.total()
        if not letter or count < MOST * answered or not (by_role or answered >= ENOUGH):
            return None
        return HeldPlace(letter, count, answered, by_role)


class OptionRemarks:
    """Counts what was done to the options of questions."""

    def __init__(self) -> None:
        self.stripped = self.cut = self.padded = self.divided = 0

    def __iter__(self) -> Iterator[str]:
        if self.stripped:
            yield (
                f"labels such as (A) were taken off the options of {self.stripped} questions: they would give the "
                "order away"
            )
        if self.cut:
            yield f"{self.cut} questions listed their own options at their end; the list was cut off"
        if self.divided:
            yield f"the options of {self.divided} questions stand in one cell and were divided at | or ;"
        if self.padded:
            yield f"what only fills up the list of options (such as N/A) was left out of {self.padded} questions"
