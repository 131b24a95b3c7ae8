"""Seeded draws: a generator for each sample and purpose, and keys and values of three types."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from lm_audit.errors import UsageError

ItemType = Literal["words", "numbers", "uuids"]
ITEM_TYPES: tuple[str, ...] = get_args(ItemType)
_TRIES = 1000


def derived_rng(seed: int, *parts: object) -> random.Random:
    """The generator that belongs to ``seed`` and ``parts``; it depends on nothing else, the order of work included."""
    name = "|".join(str(part) for part in (seed, *parts))
    return random.Random(hashlib.sha256(name.encode()).digest())


@cache
def words(kind: Literal["adjectives", "nouns"]) -> tuple[str, ...]:
    """The word list of this kind, sorted."""
    path = Path(__file__).with_name("words") / f"{kind}.txt"
    return tuple(path.read_text(encoding="utf-8").split())


def draw_item(rng: random.Random, kind: str) -> str:
    """One key or value: adjective-noun, a number of seven digits, or a version-4 UUID."""
    if kind not in _DRAWS:
        raise UsageError(f"type {kind!r} is unknown; expected one of {', '.join(ITEM_TYPES)}")
    return _DRAWS[kind](rng)


def draw_distinct(
    rng: random.Random, kind: str, count: int, *, taken: Iterable[str] = (), absent_from: Callable[[str], bool]
) -> list[str]:
    """``count`` items, none of which is part of another, of one in ``taken``, or of a text.

    ``absent_from(item)`` says whether the text is free of it. ``UsageError`` where no such item is found.
    """
    chosen: list[str] = []
    others = list(taken)
    for _ in range(count):
        chosen.append(_draw_new(rng, kind, others, absent_from))
        others.append(chosen[-1])
    return chosen


def _draw_new(rng: random.Random, kind: str, others: list[str], absent_from: Callable[[str], bool]) -> str:
    for _ in range(_TRIES):
        item = draw_item(rng, kind)
        if not any(item in other or other in item for other in others) and absent_from(item):
            return item
    raise UsageError(
        f"no further item of type {kind} was found in {_TRIES} draws ({len(others)} are taken); ask for fewer"
    )


def _draw_words(rng: random.Random) -> str:
    # Two draws by index: the cross product of the lists is never made.
    return f"{rng.choice(words('adjectives'))}-{rng.choice(words('nouns'))}"


_DRAWS: dict[str, Callable[[random.Random], str]] = {
    "words": _draw_words,
    "numbers": lambda rng: str(rng.randint(1_000_000, 9_999_999)),
    "uuids": lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
}
