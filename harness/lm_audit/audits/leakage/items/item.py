"""Multiple-choice items: question, options, right letters; and the same item with its options in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lm_audit.errors import DataError, UsageError
from lm_audit.shared.visible import seen
from lm_audit.sources import content_digest

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Item:
    """One multiple-choice question.

    ``id`` names it within ``file``, which stands for its subject (ids may restart in the next file). ``answer`` holds
    the right letters, sorted and joined by commas (``"A,B,D"``); empty where the set gives none. ``held`` are slots
    (0-based) that keep their option in every shuffle, since the whole set has its right options there.
    """

    id: str
    file: str
    question: str
    options: tuple[str, ...]
    answer: str = ""
    held: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", str(self.id))
        object.__setattr__(self, "options", tuple(self.options))

    @property
    def key(self) -> str:
        """The item's name within the whole benchmark."""
        return f"{self.file}:{self.id}"

    @property
    def content(self) -> str:
        """A digest of what the item asks and of what is right, whatever it is called."""
        return content_digest(self.question, self.options, self.answer)


def letters_of(answer: str) -> tuple[str, ...]:
    """The letters of an answer written as ``"A,B"``."""
    return tuple(letter.strip() for letter in answer.split(",") if letter.strip())


def shuffle_options(item: Item, order: Sequence[int]) -> Item:
    """The item with old option ``order[i]`` in slot i, its answer letters rewritten to the new slots and sorted.

    Raises ``UsageError`` where ``order`` is no permutation of the options, ``DataError`` for an answer letter that
    names no option.
    """
    slots = [int(old) for old in order]
    if sorted(slots) != list(range(len(item.options))):
        raise UsageError(f"order {slots} is no permutation of the {len(item.options)} options of item {item.key}")
    new_slot = {LETTERS[old]: LETTERS[new] for new, old in enumerate(slots)}
    unknown = [letter for letter in letters_of(item.answer) if letter not in new_slot]
    if unknown:
        raise DataError(
            f"item {item.id}: answer {item.answer!r} names {unknown[0]!r}, the options are {LETTERS[0]} to "
            f"{LETTERS[len(slots) - 1]}",
            file=item.file,
        )
    answer = ",".join(sorted(new_slot[letter] for letter in letters_of(item.answer)))
    return replace(item, options=tuple(item.options[old] for old in slots), answer=answer)


def full_text(item: Item) -> str:
    """Question and lettered options as the published test writes them, one a line."""
    return item.question + "".join(f"\n{LETTERS[k]}. {option}" for k, option in enumerate(item.options))


def duplicate_options(item: Item) -> tuple[str, str] | None:
    """The letters of the first two options that look the same (gaps and forms of letters aside), or None."""
    shown: dict[str, int] = {}
    for k, option in enumerate(item.options):
        first = shown.setdefault(seen(option), k)
        if first != k:
            return LETTERS[first], LETTERS[k]
    return None
