"""The style of the published order: options that run from short to long would be likely without any memory."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lm_audit.audits.leakage.items.item import Item
from lm_audit.stats import Estimate, clopper_pearson

_NUMBER = re.compile(r"[-−]?\d[\d,，]*(?:\.\d+)?")

STYLES = ("short_to_long", "long_to_short", "numbers_up", "numbers_down", "alphabetical")
ALIKE = "always_alike"
"""The same options in the same order in several items: "yes", "no", "maybe" is an order that everybody writes."""

TOO_MANY = 0.01
"""A p-value of a style: below it the order was not drawn by chance, and memory shows in the other items alone."""


@dataclass(frozen=True)
class StyleShare:
    """How many items follow a style, against what random orders of the same options would give.

    ``share`` with its Clopper-Pearson interval; ``expected`` share by chance; ``p_value`` one-sided, exact.
    """

    style: str
    followed: int
    items: int
    share: Estimate
    expected: float | None
    p_value: float | None


def style_shares(items: Sequence[Item]) -> list[StyleShare]:
    """The share of items whose published order follows each style, with the exact chance of as many.

    An item counts for a style only where its options can be told apart by it.
    """
    found = [_shared(style, [_keys(item.options, style) for item in items]) for style in STYLES]
    return [*found, _shared(ALIKE, _alike_keys(items))]


def too_many_sorted(styles: Sequence[StyleShare]) -> list[str]:
    """The styles that more items follow than chance explains: who wrote them sorted them, and so does any model."""
    return [one.style for one in styles if one.p_value is not None and one.p_value < TOO_MANY]


def sorted_items(items: Sequence[Item]) -> list[bool]:
    """Of each item whether its published order follows a style, or is the usual one of options that several have."""
    usual = _usual_orders(items)
    return [is_sorted(item) or usual.get(_options(item)) == _order(item) for item in items]


def follows(options: Sequence[str], style: str) -> bool:
    """Whether the options run in the style's direction (equal neighbours allowed) and are not all alike in it."""
    keys = _keys(options, style)
    return keys is not None and len(set(keys)) > 1 and list(keys) == sorted(keys)


def is_sorted(item: Item) -> bool:
    """Whether the published order follows any style, so that its likelihood says nothing about memory."""
    return any(follows(item.options, style) for style in STYLES)


def _options(item: Item) -> tuple[str, ...]:
    return tuple(sorted(_order(item)))


def _order(item: Item) -> tuple[str, ...]:
    return tuple(option.casefold() for option in item.options)


def _usual_orders(items: Sequence[Item]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Of options that several items have the order that most of them have, two at the least."""
    orders: dict[tuple[str, ...], Counter[tuple[str, ...]]] = {}
    for item in items:
        orders.setdefault(_options(item), Counter())[_order(item)] += 1
    most = {options: found.most_common(1)[0] for options, found in orders.items()}
    return {options: order for options, (order, count) in most.items() if count > 1}


def _alike_keys(items: Sequence[Item]) -> list[list[float] | list[str] | None]:
    """Of each item the places that its options have in the usual order of such options.

    The first item of that order has none: it is what the others are held against.
    """
    usual, seen = _usual_orders(items), set[tuple[str, ...]]()
    found: list[list[float] | list[str] | None] = []
    for item in items:
        order = usual.get(_options(item))
        own = _order(item)
        first = own == order and own not in seen
        if first:
            seen.add(own)
        found.append(None if order is None or first else [float(order.index(option)) for option in own])
    return found


def _shared(style: str, keyed: Sequence[list[float] | list[str] | None]) -> StyleShare:
    usable = [keys for keys in keyed if keys is not None and len(set(keys)) > 1]
    chances = [_chance_sorted(keys) for keys in usable]
    followed = sum(list(keys) == sorted(keys) for keys in usable)
    expected = float(np.mean(chances)) if chances else None
    p = float(poisson_binomial(chances)[followed:].sum()) if chances else None
    share = clopper_pearson(followed, len(usable))
    return StyleShare(style, followed, len(usable), share, expected, None if p is None else min(1.0, p))


def _keys(options: Sequence[str], style: str) -> list[float] | list[str] | None:
    if style in ("short_to_long", "long_to_short"):
        sign = 1 if style == "short_to_long" else -1
        return [sign * float(len(option)) for option in options]
    if style == "alphabetical":
        return [option.casefold() for option in options]
    numbers = [_NUMBER.search(option) for option in options]
    if any(number is None for number in numbers):
        return None
    sign = 1 if style == "numbers_up" else -1
    return [sign * _value(number.group()) for number in numbers if number is not None]


def _value(text: str) -> float:
    return float(text.replace(",", "").replace("，", "").replace("−", "-"))


def _chance_sorted(keys: Sequence[object]) -> float:
    """The chance that a random order of these keys ascends: equal keys may stand in any order."""
    ways = math.prod(math.factorial(count) for count in Counter(keys).values())
    return ways / math.factorial(len(keys))


def poisson_binomial(chances: Sequence[float]) -> np.ndarray:
    """Probabilities of 0 to n successes in independent trials with these chances."""
    out = np.ones(1)
    for chance in chances:
        out = np.convolve(out, [1 - chance, chance])
    return out
