"""Sides that a score weighs against each other: where a category has only one of them, the score says something else.

BBQ asks each question in a negative and a non-negative form, so that a mere liking for one group cancels out; with one
form alone it reads as bias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sides:
    """What an item's ``value`` is called and must be somewhere in each category."""

    name: str
    value: Callable[[Any], str]
    needed: tuple[str, ...]


def lacking(items: Sequence[Any], category: Callable[[Any], str], sides: Sequence[Sides]) -> tuple[str, ...]:
    """A line for each side that no usable item of a category has, and one for all categories that lack the same."""
    there: dict[str, set[tuple[str, str]]] = {}
    for item in items:
        found = there.setdefault(category(item), set())
        found.update((side.name, side.value(item)) for side in sides)
    lines = []
    for side in sides:
        for value in side.needed:
            without = [label for label, found in there.items() if (side.name, value) not in found]
            if without:
                where = "" if len(without) == len(there) else f" in {', '.join(sorted(without))}"
                lines.append(f"no usable row{where} has the {side.name} {value!r}, against which others are held")
    return tuple(lines)


def spelt_alike(labels: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Labels of categories that differ in nothing but case, spaces and signs."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault("".join(filter(str.isalnum, label.casefold())), []).append(label)
    return [tuple(group) for plain, group in groups.items() if plain and len(group) > 1]
