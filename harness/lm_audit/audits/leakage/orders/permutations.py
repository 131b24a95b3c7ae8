"""Which orders of an item's options are tried: seeded, item by item, anchored options in place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from zlib import crc32

import numpy as np

from lm_audit.audits.leakage.items.anchors import anchored_slots
from lm_audit.audits.leakage.items.item import Item
from lm_audit.errors import UsageError

Order = tuple[int, ...]

ALL_UP_TO = 4
"""Items with up to so many options are tried in all their orders."""


def item_rng(item: Item, seed: int) -> np.random.Generator:
    """A generator of the item's own, so that its orders do not depend on what else is in the benchmark."""
    return np.random.default_rng([seed, crc32(item.key.encode()), crc32(item.question.encode())])


def is_shufflable(item: Item) -> bool:
    """Whether two options at least may change places."""
    return len(item.options) - len(anchored_slots(item)) >= 2


def shuffled_orders(item: Item, count: int, *, seed: int = 0) -> list[Order]:
    """Up to ``count`` different orders other than the published one; empty where the item cannot be shuffled.

    First come the powers of a random cycle through all free slots: with the published order they make a Latin square,
    every option once in every slot, among which the published order is any by chance. Further orders are random.
    ``order[i]`` is the old place of slot i.
    """
    free = [slot for slot in range(len(item.options)) if slot not in anchored_slots(item)]
    if count < 1 or len(free) < 2:
        return []
    rng = item_rng(item, seed)
    powers = _powers(free, rng)
    found = dict.fromkeys(powers[i] for i in rng.permutation(len(powers)))
    if count > len(found):
        found |= dict.fromkeys(_others(free, count - len(found), set(found), rng))
    return [_whole(item, free, moved) for moved in list(found)[:count]]


def _powers(free: Sequence[int], rng: np.random.Generator) -> list[Order]:
    cycle = [int(slot) for slot in rng.permutation(free)]
    place = {slot: i for i, slot in enumerate(cycle)}
    size = len(free)
    return [tuple(cycle[(place[slot] + step) % size] for slot in free) for step in range(1, size)]


def _others(free: Sequence[int], count: int, taken: set[Order], rng: np.random.Generator) -> list[Order]:
    left = math.factorial(len(free)) - 1 - len(taken)
    if len(free) <= 6:
        rest = [moved for moved in permutations(free) if moved != tuple(free) and moved not in taken]
        return [rest[i] for i in rng.permutation(len(rest))[:count]]
    found: dict[Order, None] = {}
    while len(found) < min(count, left):
        moved = tuple(int(slot) for slot in rng.permutation(free))
        if moved != tuple(free) and moved not in taken:
            found.setdefault(moved)
    return list(found)


def _whole(item: Item, free: Sequence[int], moved: Sequence[int]) -> Order:
    order = list(range(len(item.options)))
    for slot, old in zip(free, moved, strict=True):
        order[slot] = old
    return tuple(order)


def orders_to_rank(item: Item, orders: int | Sequence[Sequence[int]], *, seed: int) -> list[Order]:
    """The published order first, then those it is ranked among.

    A count: all orders of an item with up to four options, else a seeded sample that makes ``orders`` in all. Explicit
    orders: those among them that fit the item's number of options. Anchored options stay in place.
    """
    published = tuple(range(len(item.options)))
    if isinstance(orders, int):
        if orders < 2:
            raise UsageError(f"{orders} orders: at least 2 are needed, of which one is the published order")
        most = math.factorial(len(item.options)) if len(item.options) <= ALL_UP_TO else orders
        return [published, *sorted(shuffled_orders(item, most - 1, seed=seed))]
    fixed = anchored_slots(item)
    given = [tuple(int(old) for old in order) for order in orders if len(order) == len(published)]
    wrong = [order for order in given if sorted(order) != list(published)]
    if wrong:
        raise UsageError(f"order {list(wrong[0])} is no permutation of {len(published)} options")
    kept = [order for order in given if order != published and all(order[slot] == slot for slot in fixed)]
    return [published, *dict.fromkeys(kept)]
