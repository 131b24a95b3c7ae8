"""The order rank test and the row order test as evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.averages import clusters_of, of_these_files, record_these_files
from lm_audit.audits.leakage.evidence.conclusions import place_findings, row_findings
from lm_audit.audits.leakage.evidence.describing import describe, note_unreachable
from lm_audit.audits.leakage.evidence.figures import distribution, spec, style_figure
from lm_audit.audits.leakage.half_option.passes import OnRows, usable_items
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import Item, full_text
from lm_audit.audits.leakage.items.style import sorted_items, style_shares, too_many_sorted
from lm_audit.audits.leakage.orders.neighbours import Neighbours, neighbour_places, swap_test
from lm_audit.audits.leakage.orders.ranking import (
    OrderSummary,
    order_test,
    place_fields,
    places,
    summarise,
    unsorted_row,
    without_sorted,
)
from lm_audit.audits.leakage.orders.rows import check_unsorted, row_order_test
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence, Figure
from lm_audit.sources import MetricSource, content_digest
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
    seed: int = 0,
    on_rows: OnRows | None = None,
) -> Evidence:
    """The rank of the published order among all orders, over items; all items, and those of no sorted style."""
    import pandas as pd

    items, excluded = usable_items(model, benchmark.items)
    if not items:
        raise DataError(f"no item can be used: {sorted(set(excluded.values()))}", file=benchmark.name)
    in_order, parts = sorted_items(items), list[pd.DataFrame]()
    rows: list[dict[str, Any]] = []
    for begin in range(0, len(items), ITEMS_A_PASS):
        part = items[begin : begin + ITEMS_A_PASS]
        parts.append(order_test(model, part, orders, seed=seed))
        records = parts[-1].to_dict("records")
        new = [ranked_row(*one) for one in zip(part, records, in_order[begin:], strict=False)]
        if on_rows is not None:
            on_rows(new)
        rows += new
    table = pd.concat(parts, ignore_index=True)
    evidence = ranked_evidence(table, items, benchmark, seed=seed)
    styles = style_shares(items)
    evidence.figures += [_ranks(table), style_figure(styles)]
    evidence.finding(*place_findings(evidence, benchmark.name, by_style=bool(too_many_sorted(styles))))
    describe(evidence, benchmark, excluded, {"orders": orders})
    note_unreachable(evidence)
    evidence.rows = [] if on_rows is not None else rows
    return evidence


def ranked_evidence(table: pd.DataFrame, items: Sequence[Item], benchmark: Benchmark, *, seed: int = 0) -> Evidence:
    """The metrics of an :func:`~lm_audit.audits.leakage.orders.ranking.order_test` table of these ``items``."""
    evidence = Evidence("leakage", headline="leakage.option_order.place")
    clusters = clusters_of([item.file for item in items])
    plain = without_sorted(table, items)
    for name, some, prefix in (("option_order", table, ""), ("option_order_unsorted", plain, "unsorted_")):
        _record(evidence, f"leakage.{name}", prefix, some, clusters, seed)
    for name, some, column in (("option_order", table, "place"), ("option_order_unsorted", plain, "unsorted_place")):
        ranked = np.array(places(some), dtype=np.float64)
        own = of_these_files(ranked, some["file"].tolist(), benchmark, **place_fields(seed)) if len(ranked) else None
        record_these_files(evidence, f"leakage.{name}.place", own, MetricSource.mean(column))
    return evidence


def ranked_row(item: Item, row: dict[Any, Any], in_order: bool) -> dict[str, Any]:
    """What is recorded of one item of such a table; ``in_order``: its published order follows a style."""
    kept = {key: row[key] for key in ("n_orders", "published_rank", "p_rank")}
    best = row["orders"][int(np.argmax(row["logprobs"]))]
    lead = row["logprobs"][0] - max(row["logprobs"][1:], default=row["logprobs"][0])
    unsorted = None if in_order else unsorted_row(item, row)
    places = {**_place("", row), **_place("unsorted_", unsorted or {"n_orders": 1, "published_rank": 1})}
    return {
        "item": item.key,
        "content": item.content,
        "file": item.file,
        **kept,
        **places,
        "likeliest": str(best),
        "lead_nats": lead,
    }


def _place(prefix: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Where the published order stands among the others (1: likeliest), and whether it is the first; None without."""
    n, rank = row["n_orders"], row["published_rank"]
    known = n > 1
    return {
        f"{prefix}place": (n - rank) / (n - 1) if known else None,
        f"{prefix}first": rank == 1 if known else None,
    }


def _record(
    evidence: Evidence, name: str, prefix: str, table: pd.DataFrame, clusters: tuple[str, ...], seed: int
) -> None:
    summary = summarise(table, seed=seed)
    evidence.metric(f"{name}.place", summary.place, MetricSource.mean(f"{prefix}place", clusters=clusters))
    share = (
        Estimate.not_estimable("no item has a second order", n=0, unit="share of items", better="lower")
        if not summary.items
        else _first_ranks(table[table["n_orders"] > 1], summary, clusters)
    )
    evidence.metric(f"{name}.first", share, MetricSource.mean(f"{prefix}first", clusters=clusters))
    evidence.metric(f"{name}.first.p", summary.p_top)


def _first_ranks(used: pd.DataFrame, summary: OrderSummary, clusters: tuple[str, ...]) -> Estimate:
    """The share of items whose published order is the likeliest: of files in general, as the mean place is."""
    from dataclasses import replace

    from lm_audit.stats import share

    found = share((used["published_rank"] == 1).to_numpy(dtype=np.float64), used["file"].tolist() if clusters else None)
    return replace(found, unit="share of items", chance=summary.expected_firsts / summary.items, better="lower")


def _ranks(table: pd.DataFrame) -> Figure:
    used = table[table["n_orders"] > 1]
    places = ((used["n_orders"] - used["published_rank"]) / (used["n_orders"] - 1)).to_numpy(dtype=np.float64)
    caption = "1: the published order is the most likely one, 0: the least likely. Dashed: mean by chance."
    title = "Place of the published order among all"
    return distribution("order_places", title, {"items": places}, "share of other orders less likely", 0.5, caption)


def row_order(
    model: LanguageModel, benchmark: Benchmark, *, shards: int = 4, permutations: int = 19, seed: int = 0
) -> Evidence:
    """Whether a row is likelier after the one before it in the file than the other way round, and than shuffled.

    ``leakage.row_order.swap_gain`` compares pairs of neighbours in both orders, which rows on one theme do not touch;
    ``leakage.row_order.gain`` compares whole shards with shuffles, which they do. ``DataError`` where the file is
    sorted, or has no two neighbours.
    """
    rows = [full_text(item) for item in benchmark.items]
    count = max(1, min(shards, len(rows) // 3))
    check_unsorted(rows)
    pairs = [
        Neighbours(first, second)
        for first, second in neighbour_places(benchmark.places, [item.file for item in benchmark.items])
    ]
    swapped = swap_test(model, rows, pairs, [benchmark.items[p.first].file for p in pairs], seed=seed)
    result = row_order_test(model, rows, shards=count, permutations=permutations, seed=seed)
    evidence = Evidence("leakage", headline="leakage.row_order.swap_gain")
    source = MetricSource.mean("swap_gain", {"kind": "pair"}, clusters=clusters_of([r["file"] for r in swapped.rows]))
    evidence.metric("leakage.row_order.swap_gain", swapped.gain, source if swapped.rows else None)
    evidence.metric("leakage.row_order.swap_gain.p", swapped.p)
    evidence.metric("leakage.row_order.gain", result.gain, MetricSource.mean("gain", {"kind": "shard"}))
    evidence.metric("leakage.row_order.p_t", result.t_test)
    evidence.metric("leakage.row_order.p_fisher", result.fisher)
    shown = zip(result.canonical, result.shuffled, result.rank_p, strict=True)
    named = [(benchmark.items[r["first"]], benchmark.items[r["second"]], r) for r in swapped.rows]
    whole = content_digest(rows, count)
    evidence.rows = [
        *(
            {
                **r,
                "item": f"pair {a.key} | {b.key}",
                "content": content_digest(a.content, b.content),
                "kind": "pair",
                "first": a.key,
                "second": b.key,
            }
            for a, b, r in named
        ),
        *(
            {
                "item": f"shard-{k}",
                "content": whole,
                "kind": "shard",
                "canonical": c,
                "shuffled_mean": mean,
                "gain": c - mean,
                "rank_p": p,
            }
            for k, (c, s, p) in enumerate(shown)
            for mean in [float(np.mean(s))]
        ),
    ]
    evidence.figures.append(_shards(result.canonical, result.shuffled))
    evidence.finding(*row_findings(evidence, benchmark.name))
    describe(evidence, benchmark, {}, {"shards": count, "permutations": permutations})
    evidence.notes.append(
        "leakage.row_order.gain and its p-values also rise where neighbours share a theme; only swap_gain, which asks "
        "of two neighbours which comes first, speaks of the order."
    )
    if swapped.too_long:
        evidence.notes.append(f"{swapped.too_long} pairs of neighbours are longer than the model reads and left out.")
    if len(benchmark.items) < benchmark.usable:
        evidence.notes.append("The rows are a sample of pairs of neighbours: shards hold gaps between pairs.")
    note_unreachable(evidence)
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
