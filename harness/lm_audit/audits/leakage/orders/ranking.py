"""The order rank test: among all orders of an item's options, how likely is the published one?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.averages import mean_of
from lm_audit.audits.leakage.items.item import Item, full_text, shuffle_options
from lm_audit.audits.leakage.items.style import STYLES, follows, poisson_binomial, sorted_items
from lm_audit.audits.leakage.orders.permutations import Order, orders_to_rank
from lm_audit.audits.leakage.signs import unreachable
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel

_EQUAL = 1e-6


def order_test(
    model: LanguageModel, items: Sequence[Item], orders: int | Sequence[Sequence[int]] = 24, *, seed: int = 0
) -> pd.DataFrame:
    """A table with one row an item: the log-probability of question and options in each order, and the published rank.

    ``item_id``, ``file``, ``n_orders``, ``published_rank`` (1 = most likely; equals count before it), ``p_rank`` (rank
    over orders, the p-value of this item), ``orders`` (the published first), ``logprobs`` (nats, of the whole text).
    ``orders``: a count (all orders of items with up to four options, a seeded sample of that size above) or explicit
    ones. Anchored options keep their place; an item that has no other order is in the table with ``n_orders`` 1.
    Source: Ni et al. 2024, arXiv 2409.01790.
    """
    import pandas as pd

    tried = [orders_to_rank(item, orders, seed=seed) for item in items]
    texts = [full_text(shuffle_options(item, order)) for item, some in zip(items, tried, strict=True) for order in some]
    totals = iter([score.total for score in model.loglikelihood([("", text) for text in texts])])
    rows = [_row(item, some, [next(totals) for _ in some]) for item, some in zip(items, tried, strict=True)]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


_COLUMNS = ("item_id", "file", "n_orders", "published_rank", "p_rank", "orders", "logprobs")


def _row(item: Item, orders: Sequence[Order], logprobs: Sequence[float]) -> dict[str, Any]:
    rank = published_rank(logprobs)
    return {
        "item_id": item.id,
        "file": item.file,
        "n_orders": len(orders),
        "published_rank": rank,
        "p_rank": rank / len(orders),
        "orders": [list(order) for order in orders],
        "logprobs": list(logprobs),
    }


def published_rank(logprobs: Sequence[float]) -> int:
    """The 1-based rank of the first log-probability among all; others that equal it count before it."""
    values = np.asarray(logprobs)
    return int((values >= values[0] - _EQUAL).sum())


@dataclass(frozen=True)
class OrderSummary:
    """How often the published order is the most likely one, over the items that have other orders.

    ``p_top``: exact one-sided p-value of as many first ranks; ``place``: mean of the share of the other orders that are
    less likely, 1/2 by chance; ``excluded`` items had no other order (or were sorted).
    """

    items: int
    firsts: int
    expected_firsts: float
    p_top: Estimate
    place: Estimate
    excluded: int


def places(table: pd.DataFrame) -> list[float | None]:
    """The share of an item's other orders that are less likely than the published one; ``None`` without others."""
    return [
        None if n < 2 else (n - rank) / (n - 1)
        for n, rank in zip(table["n_orders"], table["published_rank"], strict=True)
    ]


def place_fields(seed: int) -> dict[str, Any]:
    """How a mean of places is reported."""
    return {"unit": "share of other orders", "seed": seed, "chance": 0.5, "better": "lower", "limits": (0.0, 1.0)}


def summarise(table: pd.DataFrame, *, seed: int = 0) -> OrderSummary:
    """The items of an :func:`order_test` table together; intervals as :func:`~.averages.mean_of` has them."""
    used = table[table["n_orders"] > 1]
    chances = (1 / used["n_orders"]).tolist()
    firsts = int((used["published_rank"] == 1).sum())
    p = min(1.0, float(poisson_binomial(chances)[firsts:].sum()))
    place = mean_of(
        np.array(places(used), dtype=np.float64),
        used["file"].tolist(),
        **place_fields(seed),
    )
    p_top = (
        Estimate(
            p,
            n=len(used),
            confidence=None,
            method="exact, first ranks against chance",
            unit="p",
            note=unreachable(float(np.prod(chances)), f"{len(used)} items") if len(used) < 20 else None,
        )
        if len(used)
        else Estimate.not_estimable("no item has a second order", n=0, confidence=None, unit="p")
    )
    return OrderSummary(len(used), firsts, float(sum(chances)), p_top, place, len(table) - len(used))


def without_sorted(table: pd.DataFrame, items: Sequence[Item]) -> pd.DataFrame:
    """The table with items whose published order follows a style taken out, and such orders of the others too.

    What is left compares orders of equal style: none of them runs from short to long or by number or alphabet.
    """
    rows = [
        kept
        for item, in_order, (_, row) in zip(items, sorted_items(items), table.iterrows(), strict=True)
        if not in_order and (kept := unsorted_row(item, row)) is not None
    ]
    return table.iloc[:0].copy() if not rows else type(table)(rows, columns=list(_COLUMNS))


def unsorted_row(item: Item, row: Any) -> dict[str, Any] | None:
    """A row of the table without its sorted orders; ``None`` where the published one is sorted."""
    plain = [i for i, order in enumerate(row["orders"]) if not _sorted_order(item, order)]
    if not plain or plain[0] != 0:
        return None
    return _row(item, [tuple(row["orders"][i]) for i in plain], [row["logprobs"][i] for i in plain])


def _sorted_order(item: Item, order: Sequence[int]) -> bool:
    options = [item.options[old] for old in order]
    return any(follows(options, style) for style in STYLES)
