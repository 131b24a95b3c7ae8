"""Marks that say of each option whether it is right: ``[0, 1, 0, 0]``, ``{"red": 1, "blue": 0}``, ``[true, false]``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from lm_audit.audits.hub_rows import structured

MARKED_COLUMNS = (
    "labels", "is_correct", "iscorrect", "correctness", "target_scores", "multiple_choice_scores", "mc1_labels",
    "answer_mask", "correct_mask", "one_hot", "onehot",
)  # fmt: skip
"""Columns that hold answers only where they hold a mark for each option: ``labels`` may as well name the options."""

MARK_FIELDS = ("is_correct", "iscorrect", "correct", "right", "is_answer", "isanswer", "is_right")
"""What an option that is a record of its own calls its mark."""

ONE_RIGHT = ("mc1_targets",)
"""Lists of options of which exactly one is right by what the set says of itself."""

_WORDS = {
    **dict.fromkeys(("true", "1", "1.0", "yes", "right", "correct"), 1),
    **dict.fromkeys(("false", "0", "0.0", "no", "wrong", "incorrect"), 0),
}
"""Marks as tables and classes of the hub name them."""


def mark_of(value: object) -> int | None:
    """1 for right, 0 for wrong, in numbers or words; ``None`` for what is no mark."""
    if isinstance(value, int | float):
        return int(value) if value in (0, 1) else None
    return _WORDS.get(value.strip().casefold()) if isinstance(value, str) else None


def marks_of(value: object, options: Sequence[str], labels: Sequence[str]) -> tuple[int, ...] | None:
    """The marks of the options, in their order; ``None`` where the value is no list or mapping of as many marks.

    A mapping gives marks to the options by their texts, labels or letters. A list of options' own texts is none.
    """
    value = structured(value)
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        value = _by_option({str(name).strip(): mark for name, mark in value.items()}, options, labels)
    if not isinstance(value, list | tuple) or len(value) != len(options) or len(value) < 2:
        return None
    if set(map(str, value)) <= set(options):
        return None
    marks = [mark_of(part) for part in value]
    return tuple(mark for mark in marks if mark is not None) if None not in marks else None


def _by_option(marks: Mapping[str, object], options: Sequence[str], labels: Sequence[str]) -> list[object] | None:
    letters = [chr(ord("A") + k) for k in range(len(options))]
    for names in ([option.strip() for option in options], labels, letters, [letter.lower() for letter in letters]):
        if len(names) == len(options) == len(marks) and set(names) == set(marks):
            return [marks[name] for name in names]
    return None


class MarkedRows:
    """Counts the rows whose answer is a row of marks by how many of these say right: none, one, several."""

    def __init__(self) -> None:
        self._rows: Counter[int] = Counter()
        self._first: dict[int, str] = {}

    def add(self, right: int, file: str, row: int) -> None:
        """A row with so many options marked as right."""
        kind = min(right, 2)
        self._rows[kind] += 1
        self._first.setdefault(kind, f"row {row} of {file}")

    def remarks(self) -> Iterator[str]:
        """What is to be told where rows differ in it: where none has a right option, answers are secret."""
        for kind, many in ((0, "no option"), (2, "several options")):
            if 0 < self._rows[kind] < self._rows.total():
                first = f"the first is {self._first[kind]}"
                yield f"{self._rows[kind]} of {self._rows.total()} questions have {many} marked as right; {first}"
