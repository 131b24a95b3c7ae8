"""Pictures of a grid as data: heatmap, accuracy by length with the cliff, worst cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_audit.audits.needle.grid.cells import Scored, by_cell, by_length, share
from lm_audit.evidence import Figure

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_WORST, _SHOWN_ANYWAY = 12, 3
_SHARE = {"type": "quantitative", "scale": {"domain": [0, 1]}}


def grid_figures(scored: Sequence[Scored], scorer: str, threshold: float) -> list[Figure]:
    """Heatmap and accuracy by length where there are several lengths or depths, and always the worst cells."""
    cells = by_cell(scored)
    figures = [_heatmap(cells, scorer)] if len(cells) > 1 else []
    if len({length for length, _ in cells}) > 1:
        figures.append(_by_length(scored, scorer, threshold))
    return [*figures, _worst(cells, scorer)]


def _spec(rows: Sequence[Mapping[str, object]], **rest: object) -> dict[str, Any]:
    return {"$schema": SCHEMA, "data": {"values": list(rows)}, "width": "container", **rest}


def _heatmap(cells: Mapping[tuple[int, float], Sequence[Scored]], scorer: str) -> Figure:
    rows = [_cell_row(length, depth, group, scorer) for (length, depth), group in cells.items()]
    depths = len({depth for _, depth in cells})
    place = {
        "x": {"field": "length", "type": "ordinal", "title": "prompt length, tokens", "axis": {"labelAngle": 0}},
        "y": {"field": "depth", "type": "ordinal", "title": "needle depth, %"},
    }
    colour = {
        "field": "accuracy",
        **_SHARE,
        "title": "accuracy",
        "scale": {"domain": [0, 1], "scheme": "viridis"},
    }
    tooltip = [
        {"field": "length", "title": "length, tokens"},
        {"field": "depth", "title": "depth, %"},
        {"field": "accuracy", "type": "quantitative", "format": ".3f"},
        {"field": "low", "type": "quantitative", "format": ".3f", "title": "95% low"},
        {"field": "high", "type": "quantitative", "format": ".3f", "title": "95% high"},
        {"field": "n", "type": "quantitative"},
        {"field": "actual_depth", "type": "quantitative", "format": ".2f", "title": "actual depth, %"},
        {"field": "value_logprob", "type": "quantitative", "format": ".2f", "title": "log p(value), nats"},
    ]
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rect", "stroke": "white"}, "encoding": {**place, "color": colour, "tooltip": tooltip}}
    ]
    if len(cells) <= 240:
        # Dark text on the yellow end of viridis, light text on its violet end.
        ink = {"condition": {"test": "datum.accuracy > 0.55", "value": "black"}, "value": "white"}
        text = {"field": "accuracy", "type": "quantitative", "format": ".2f"}
        mark = {"type": "text", "fontSize": 11}
        layers.append({"mark": mark, "encoding": {**place, "text": text, "color": ink, "tooltip": tooltip}})
    smallest, largest = (pick(row["n"] for row in rows) for pick in (min, max))
    n = f"{smallest}" if smallest == largest else f"{smallest} to {largest}"
    return Figure(
        "heatmap",
        "Accuracy by prompt length and needle depth",
        "vega-lite",
        _spec(rows, layer=layers, height={"step": 34} if depths <= 20 else 500),
        f"Score '{scorer}', n = {n} samples a cell; the scale runs from 0 to 1. Hover for the exact 95% interval.",
    )


def _cell_row(length: int, depth: float, group: Sequence[Scored], scorer: str) -> dict[str, Any]:
    estimate = share(one.score(scorer) for one in group)
    logprobs = [one.answer.value_logprob for one in group if one.answer.value_logprob is not None]
    return {
        "length": length,
        "depth": round(depth, 2),
        "accuracy": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "actual_depth": sum(one.actual_depth for one in group) / len(group),
        "value_logprob": sum(logprobs) / len(logprobs) if logprobs else None,
    }


def _by_length(scored: Sequence[Scored], scorer: str, threshold: float) -> Figure:
    rows = []
    for length, group in by_length(scored).items():
        estimate = share(one.score(scorer) for one in group)
        rows.append(
            {
                "length": length,
                "accuracy": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
            }
        )
    x = {"field": "length", "type": "ordinal", "title": "prompt length, tokens", "axis": {"labelAngle": 0}}
    tooltip = [{"field": name, "type": "quantitative", "format": ".3f"} for name in ("accuracy", "low", "high")]
    tooltip += [{"field": name, "type": "quantitative"} for name in ("length", "n")]
    layers = [
        {
            "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#D55E00"},
            "encoding": {"y": {"datum": threshold, **_SHARE}},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2, "color": "#0072B2"},
            "encoding": {"x": x, "y": {"field": "low", **_SHARE, "title": "accuracy"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "point": {"filled": True, "size": 60}, "color": "#0072B2"},
            "encoding": {"x": x, "y": {"field": "accuracy", **_SHARE}, "tooltip": tooltip},
        },
    ]
    return Figure(
        "by_length",
        "Accuracy by prompt length",
        "vega-lite",
        _spec(rows, layer=layers, height=240),
        f"All depths together, with the exact 95% interval. The dashed line is the threshold {threshold:g}; the cliff "
        "is the last length whose interval, like those of all shorter lengths, lies wholly on or above it.",
    )


_COLUMNS = {
    "length": "Length",
    "depth": "Depth, %",
    "accuracy": "Accuracy",
    "low": "Low",
    "high": "High",
    "n": "n",
    "around_needle": "Prompt around the needle",
    "answer": "Model's answer",
    "truth": "Truth",
}


def _worst(cells: Mapping[tuple[int, float], Sequence[Scored]], scorer: str) -> Figure:
    rows = [_cell_row(length, depth, group, scorer) for (length, depth), group in cells.items()]
    rows.sort(key=lambda row: (row["accuracy"], row["value_logprob"] or 0.0, -row["length"], row["depth"]))
    shown = [row for row in rows if row["accuracy"] < 1][:_WORST] or rows[:_SHOWN_ANYWAY]
    places = {(length, round(depth, 2)): group for (length, depth), group in cells.items()}
    for row in shown:
        worst = min(places[row["length"], row["depth"]], key=lambda one: one.score(scorer))
        row |= {
            "around_needle": worst.excerpt,
            "answer": worst.answer.text[:300] or "(empty)",
            "truth": ", ".join(worst.outputs),
        }
        row |= {name: round(row[name], 3) for name in ("accuracy", "low", "high")}
    return Figure(
        "worst_cells",
        "Worst cells",
        "table",
        {
            "columns": [{"name": name, "title": title} for name, title in _COLUMNS.items()],
            "rows": [{name: row[name] for name in _COLUMNS} for row in shown],
        },
        "The cells with the lowest accuracy (then the lowest log p of the value), each with its worst sample.",
    )
