"""The conditions of the memorisation test: each question as published, reordered, and beside what is not its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lm_audit.audits.leakage.items.item import Item, duplicate_options, shuffle_options
from lm_audit.audits.leakage.orders.permutations import shuffled_orders
from lm_audit.errors import TOO_LONG

ORIGINAL, SHUFFLED = "original", "shuffled"
OTHER_QUESTION, OTHER_ITEM = "other_question", "other_item"
BASELINES = (OTHER_QUESTION, OTHER_ITEM)


@dataclass(frozen=True)
class Variant:
    """A text to probe for the sake of item ``base`` under ``condition`` (``shuffled-1``, ... for its orders).

    ``slots`` are the slots of ``item`` whose options count, ``options`` the base item's options (places) they show.
    """

    condition: str
    base: int
    item: Item
    slots: tuple[int, ...]
    options: tuple[int, ...]


def exclude(items: Sequence[Item], fits: Sequence[bool]) -> tuple[list[Item], dict[str, str]]:
    """The items that the paired conditions can use, and the others' keys with the reason."""
    kept, out = [], {}
    for item, fit in zip(items, fits, strict=True):
        twins = duplicate_options(item)
        if not fit:
            out[item.key] = TOO_LONG
        elif twins:
            out[item.key] = f"options {twins[0]} and {twins[1]} are equal"
        else:
            kept.append(item)
    return kept, out


def variants_of(
    items: Sequence[Item],
    number: int,
    *,
    orders: int,
    strangers: Sequence[int],
    seed: int,
    baselines: Sequence[str] = BASELINES,
    unmoved: bool = False,
) -> list[Variant]:
    """All variants of item ``number``; ``strangers[number]`` is the item that lends it question and options.

    ``unmoved``: an item that has no other order stands in the first shuffled condition as it is.
    """
    item = items[number]
    everything = tuple(range(len(item.options)))
    found = [Variant(ORIGINAL, number, item, everything, everything)]
    tried = shuffled_orders(item, orders, seed=seed) or ([everything] if unmoved and orders else [])
    for k, order in enumerate(tried, start=1):
        found.append(Variant(f"{SHUFFLED}-{k}", number, shuffle_options(item, order), everything, order))
    other = items[strangers[number]]
    if other is not item and OTHER_QUESTION in baselines:
        found.append(Variant(OTHER_QUESTION, number, replace(item, question=other.question), everything, everything))
    if other is not item and OTHER_ITEM in baselines:
        found += [_alone(item, number, slot, other) for slot in everything]
    return found


def _alone(item: Item, number: int, slot: int, other: Item) -> Variant:
    """One option after another item's question and options: neither its question nor its neighbours are its own."""
    before = other.options[: min(slot, len(other.options))]
    borrowed = replace(item, question=other.question, options=(*before, item.options[slot]), answer="")
    return Variant(OTHER_ITEM, number, borrowed, (len(before),), (slot,))


def strangers(items: Sequence[Item], *, seed: int) -> list[int]:
    """For every item another one of its file (of the benchmark, where a file has one): a seeded cycle, never itself.

    The result holds the items' places; an item that is alone stays with itself.
    """
    rng = np.random.default_rng([seed, 7])
    groups: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        groups.setdefault(item.file, []).append(place)
    if any(len(group) == 1 for group in groups.values()):
        groups = {"": list(range(len(items)))}
    out = list(range(len(items)))
    for group in groups.values():
        cycle = [group[i] for i in rng.permutation(len(group))]
        for here, there in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            out[here] = there
    return out
