"""Rows that ask what an earlier row asks: they count once, and where they say another answer, that is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from lm_audit.audits.leakage.items.answers.forms import AnswerForm
from lm_audit.audits.leakage.items.answers.readings import Readings

_LISTED = 3
"""So many places are named; all are counted."""

_ROWS, _FILES = 2**31, 2**13


@dataclass
class _Differing:
    """Rows that repeat a question with readings of its answer that are not the earlier row's."""

    places: list[tuple[str, str]]
    count: int = 0


class Repeats:
    """Knows rows by what they ask; of each are kept eight bytes of a digest, its place and the number of its answer."""

    def __init__(self) -> None:
        self.count = 0
        self._first: dict[int, int] = {}
        self._answers: list[Readings] = []
        self._numbers: dict[frozenset[tuple[str, str]], int] = {}
        self._files: dict[str, int] = {}
        self._differing: dict[tuple[int, int], _Differing] = {}

    def is_repeat(self, content: str, answers: Readings, *, file: str, row: int) -> bool:
        """Whether a row asks what an earlier one did, and if so, counted: with which answer."""
        digest = int.from_bytes(blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        number = self._number(answers)
        place = (number * _FILES + min(self._files.setdefault(file, len(self._files)), _FILES - 1)) * _ROWS + row
        first = self._first.setdefault(digest, place)
        if first == place:
            return False
        self.count += 1
        rest, first_row = divmod(first, _ROWS)
        first_number, first_file = divmod(rest, _FILES)
        if first_number != number:
            found = self._differing.setdefault((first_number, number), _Differing([]))
            found.count += 1
            if len(found.places) < _LISTED:
                earlier = next(name for name, k in self._files.items() if k == first_file)
                found.places.append((f"row {row} of {file}", f"row {first_row} of {earlier}"))
        return True

    def _number(self, answers: Readings) -> int:
        found = self._numbers.setdefault(frozenset(answers.items()), len(self._answers))
        if found == len(self._answers):
            self._answers.append(dict(answers))
        return found

    def remarks(self, form: AnswerForm) -> Iterator[str]:
        """What is to be told of repeated questions with another answer, the answers read as ``form`` says."""
        told: list[str] = []
        count = 0
        for (one, two), found in self._differing.items():
            first, second = form.of(self._answers[one]), form.of(self._answers[two])
            if not first or not second or first == second:
                continue
            count += found.count
            told += [f"{place} says {second} where {earlier} says {first}" for place, earlier in found.places]
        if count:
            more = f", and {count - _LISTED} more" if count > _LISTED else ""
            yield (
                f"{count} rows repeat a question and its options with another answer, and the first counts: "
                f"{'; '.join(told[:_LISTED])}{more}"
            )
