"""What an answer column means, decided for a whole set: letters, labels, numbers from 0 or 1, or texts of options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from lm_audit.audits.leakage.items.answers.readings import (
    FORMS,
    FROM_0,
    FROM_1,
    LABELS,
    LETTER,
    SECRET,
    TEXTS,
    Readings,
)
from lm_audit.errors import DataError


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

    def decide(self, base: int | None, *, file: str, main: str | None = None, beside: int | None = None) -> AnswerForm:
        """The form that reads most answers, earlier ones of :data:`FORMS` first, unless the user says which.

        ``base`` (0 or 1) says where numbers count from, ``main`` ("texts", "letters", "labels") what the answers are;
        ``beside`` is the base by which numbers agree with another column, asked where they do not say it themselves.
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
        chosen = self._base(answered, base, file, beside)
        return AnswerForm(chosen, chosen, guessed=base is None)

    def _of_secrets(self) -> str | None:
        """What -1 is where no answer is anything else: a text or a label if it is one in every row, else no answer."""
        rows = [forms for forms in self._seen if forms]
        return next((form for form in (TEXTS, LABELS) if rows and all(form in forms for forms in rows)), None)

    @staticmethod
    def _base(answered: Mapping[frozenset[str], int], base: int | None, file: str, beside: int | None) -> str:
        if base is not None:
            return (FROM_0, FROM_1)[base]
        zero = sum(count for forms, count in answered.items() if FROM_0 in forms and FROM_1 not in forms)
        last = sum(count for forms, count in answered.items() if FROM_1 in forms and FROM_0 not in forms)
        if bool(zero) != bool(last):
            return FROM_1 if last else FROM_0
        if beside is not None:
            return (FROM_0, FROM_1)[beside]
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
