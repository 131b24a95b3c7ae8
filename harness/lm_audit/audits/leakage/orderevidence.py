"""The order rank test and the row order test as evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.benchmark import Benchmark
from lm_audit.audits.leakage.figures import distribution, spec, style_figure
from lm_audit.audits.leakage.items import Item, full_text
from lm_audit.audits.leakage.measuring import OnRows, usable_items
from lm_audit.audits.leakage.memory import describe
from lm_audit.audits.leakage.ranking import OrderSummary, order_test, summarise, without_sorted
from lm_audit.audits.leakage.rowsorder import row_order_test
from lm_audit.audits.leakage.style import style_shares
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence, Figure
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel

ITEMS_A_PASS = 8


def option_order(
    model: LanguageModel,
    benchmark: Benchmark,
    *,
    orders: int | Sequence[Sequence[int]] = 24,
    seed: int,
    on_rows: OnRows | None = None,
) -> Evidence:
    """The rank of the published order among all orders, over items; all items, and those of no sorted style."""
    import pandas as pd

    items, excluded = usable_items(model, benchmark.items)
    if not items:
        raise DataError(f"no item can be used: {sorted(set(excluded.values()))}", file=benchmark.name)
    parts: list[pd.DataFrame] = []
    rows: list[dict[str, Any]] = []
    for begin in range(0, len(items), ITEMS_A_PASS):
        part = items[begin : begin + ITEMS_A_PASS]
        parts.append(order_test(model, part, orders, seed=seed))
        new = [_row(item, row) for item, row in zip(part, parts[-1].to_dict("records"), strict=True)]
        if on_rows is not None:
            on_rows(new)
        rows += new
    table = pd.concat(parts, ignore_index=True)
    evidence = Evidence("leakage", headline="leakage.option_order.place")
    _record(evidence, "leakage.option_order", summarise(table, seed=seed))
    _record(evidence, "leakage.option_order_unsorted", summarise(without_sorted(table, items), seed=seed))
    evidence.figures += [_ranks(table), style_figure(style_shares(items))]
    describe(evidence, benchmark, excluded, {"orders": orders})
    evidence.rows = [] if on_rows is not None else rows
    return evidence


def _row(item: Item, row: dict[Any, Any]) -> dict[str, Any]:
    kept = {key: row[key] for key in ("n_orders", "published_rank", "p_rank")}
    best = row["orders"][int(np.argmax(row["logprobs"]))]
    lead = row["logprobs"][0] - max(row["logprobs"][1:], default=row["logprobs"][0])
    return {"item": item.key, "file": item.file, **kept, "likeliest": str(best), "lead_nats": lead}


def _record(evidence: Evidence, name: str, summary: OrderSummary) -> None:
    from dataclasses import replace

    n = summary.items
    evidence.metric(f"{name}.place", replace(summary.place, unit="share of other orders", chance=0.5))
    share = summary.firsts / n if n else None
    evidence.metric(
        f"{name}.first",
        Estimate.not_estimable("no item has a second order", n=0, unit="share of items")
        if share is None
        else _share(summary.firsts, n, summary.expected_firsts / n),
    )
    evidence.metric(f"{name}.first.p", summary.p_top)


def _share(k: int, n: int, chance: float) -> Estimate:
    from dataclasses import replace

    from lm_audit.stats import clopper_pearson

    return replace(clopper_pearson(k, n), unit="share of items", chance=chance)


def _ranks(table: pd.DataFrame) -> Figure:
    used = table[table["n_orders"] > 1]
    places = ((used["n_orders"] - used["published_rank"]) / (used["n_orders"] - 1)).to_numpy(dtype=np.float64)
    caption = "1: the published order is the most likely one, 0: the least likely. Dashed: mean by chance."
    title = "Place of the published order among all"
    return distribution("order_places", title, {"items": places}, "share of other orders less likely", 0.5, caption)


def row_order(
    model: LanguageModel, benchmark: Benchmark, *, shards: int = 4, permutations: int = 19, seed: int
) -> Evidence:
    """Whether the items in the file's order are likelier than shuffled; ``DataError`` where the file is sorted."""
    rows = [full_text(item) for item in benchmark.items]
    count = max(1, min(shards, len(rows) // 3))
    result = row_order_test(model, rows, shards=count, permutations=permutations, seed=seed)
    evidence = Evidence("leakage", headline="leakage.row_order.gain")
    evidence.metric("leakage.row_order.gain", result.gain)
    evidence.metric("leakage.row_order.p_t", result.t_test)
    evidence.metric("leakage.row_order.p_fisher", result.fisher)
    evidence.rows = [
        {"item": f"shard-{k}", "canonical": c, "shuffled_mean": float(np.mean(s)), "rank_p": p}
        for k, (c, s, p) in enumerate(zip(result.canonical, result.shuffled, result.rank_p, strict=True))
    ]
    evidence.figures.append(_shards(result.canonical, result.shuffled))
    describe(evidence, benchmark, {}, {"shards": count, "permutations": permutations})
    if len(benchmark.items) < benchmark.usable:
        evidence.notes.append("The items are a sample in the file's order: neighbours in the file may be missing.")
    return evidence


def _shards(canonical: Sequence[float], shuffled: Sequence[Sequence[float]]) -> Figure:
    rows = [
        {"shard": str(k), "gain": value - c, "order": order}
        for k, (c, some) in enumerate(zip(canonical, shuffled, strict=True))
        for order, values in (("shuffled", some), ("published", [c]))
        for value in values
    ]
    encoding = {
        "y": {"field": "shard", "type": "nominal", "title": "shard"},
        "x": {"field": "gain", "type": "quantitative", "title": "nats above the published order"},
        "color": {
            "field": "order",
            "type": "nominal",
            "title": None,
            "scale": {"domain": ["published", "shuffled"], "range": ["#D55E00", "#0072B2"]},
        },
        "tooltip": [{"field": "order"}, {"field": "gain", "format": ".2f"}],
    }
    zero = {"mark": {"type": "rule", "strokeDash": [4, 4], "color": "#777777"}, "encoding": {"x": {"datum": 0}}}
    layers = [zero, {"mark": {"type": "tick", "thickness": 2}, "encoding": encoding}]
    caption = "By chance the published order (at 0) lies anywhere among its shuffles; remembered, it lies right of all."
    return Figure("shards", "Rows in published and in shuffled order", "vega-lite", spec(rows, layer=layers), caption)
