"""Figures of the faithfulness audit: token heatmaps by hop or method, deletion curves, methods side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.evidence import Figure

if TYPE_CHECKING:
    from lm_audit.audits.faithfulness.attribution import Attribution
    from lm_audit.audits.faithfulness.compare import Ranked
    from lm_audit.audits.faithfulness.deletion.curves import DeletionCurve
    from lm_audit.audits.faithfulness.study import Study

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#777777"
"""Okabe and Ito's colours, distinguishable in every kind of colour vision."""

MAX_TOKENS = 4000
"""Tokens a heatmap shows at most over all its frames; a longer passage keeps fewer frames."""


def token_heatmap(study: Study, attribution: Attribution, name: str = "tokens") -> Figure:
    """Prompt and generation coloured by weight: the row and recursive view, and each hop where the method has hops."""
    frames = [("explained span", attribution.row()), ("rolled back to the prompt", attribution.rec())]
    frames += [(f"hop {number}", vector) for number, vector in enumerate(attribution.per_hop)]
    return _tokens_figure(
        study,
        frames,
        name,
        f"Attribution of {study.sample.name} by {attribution.method}",
        "Each frame is scaled to its own maximum; undefined cells have no colour. Groups: prompt, evidence, thinking, "
        "answer, generation.",
    )


def methods_heatmap(study: Study, attributions: Mapping[str, Attribution], name: str = "methods") -> Figure:
    """The explained span's row view of several methods, one frame each."""
    frames = [(method, attribution.row()) for method, attribution in attributions.items()]
    return _tokens_figure(study, frames, name, f"Methods on {study.sample.name}", "One frame a method.")


def _tokens_figure(study: Study, frames: Sequence[tuple[str, Any]], name: str, title: str, caption: str) -> Figure:
    tokens, groups = study.explainer.passage.tokens, token_groups(study)
    kept = frames[: max(1, MAX_TOKENS // max(1, len(tokens)))]
    data = {"scale": "sequential", "frames": [_frame(label, values, tokens, groups) for label, values in kept]}
    return Figure(name, title, "tokens", data, caption)


def _frame(label: str, values: object, tokens: Sequence[str], groups: Sequence[str]) -> dict[str, Any]:
    numbers = np.asarray(values, dtype=np.float64)
    top = np.nanmax(np.abs(numbers)) if np.isfinite(numbers).any() else 0.0
    scaled = numbers / top if top > 0 else numbers
    cells = zip(tokens, scaled, groups, strict=True)
    return {
        "label": label,
        "tokens": [
            {"text": text, "value": round(float(value), 5) if np.isfinite(value) else None, "group": group}
            for text, value, group in cells
        ],
    }


def token_groups(study: Study) -> list[str]:
    """What each column is: prompt, evidence, thinking, answer or (other) generation."""
    passage, gold = study.explainer.passage, set(study.gold)
    groups = ["evidence" if index in gold else "prompt" for index in range(len(passage.user))]
    for token in range(len(passage.generation_ids)):
        inside = study.thinking is not None and study.thinking[0] <= token <= study.thinking[1]
        answer = study.sink[0] <= token <= study.sink[1]
        groups.append("answer" if answer else "thinking" if inside else "generation")
    return groups


def deletion_figure(
    curve: DeletionCurve, references: Mapping[str, DeletionCurve], title: str, name: str = "deletion"
) -> Figure:
    """Response and density of a deletion path with the alignment penalty between them, beside the references."""
    rows = [
        {"step": step, "series": series, "value": round(float(value), 5), "low": None, "high": None}
        for series, values in (("response", curve.response), ("density", curve.density))
        for step, value in enumerate(values)
    ]
    rows += [
        {"step": step, "series": f"reference: {label}", "value": round(float(value), 5), "low": None, "high": None}
        for label, reference in references.items()
        if label in ("uniform", "gold", "random-0")
        for step, value in enumerate(reference.response)
    ]
    rows += [
        {
            "step": step,
            "series": "penalty",
            "value": None,
            "low": round(float(min(pair)), 5),
            "high": round(float(max(pair)), 5),
        }
        for step, pair in enumerate(zip(curve.response, curve.density, strict=True))
    ]
    caption = (
        f"RISE {curve.rise:.3f}, MAS {curve.mas:.3f}, RISE+AP {curve.rise_ap:.3f} (lower is better). The shaded band "
        "is the alignment penalty between response and density."
    )
    if curve.degenerate:
        caption += " Degenerate: deleting everything does not lower the score, so these numbers say nothing."
    return Figure(name, title, "vega-lite", _curve_spec(rows), caption)


def _curve_spec(rows: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    x = {"field": "step", "type": "quantitative", "title": "deletion step", "axis": {"tickMinStep": 1}}
    series = ["response", "density", "reference: random-0", "reference: uniform", "reference: gold"]
    colours = [BLUE, ORANGE, GREY, "#BBBBBB", GREEN]
    tooltip = [{"field": "series"}, {"field": "step"}, {"field": "value", "format": ".3f"}]
    return {
        "$schema": SCHEMA,
        "data": {"values": list(rows)},
        "width": "container",
        "layer": [
            {
                "transform": [{"filter": "datum.series === 'penalty'"}],
                "mark": {"type": "area", "opacity": 0.18, "color": ORANGE},
                "encoding": {
                    "x": x,
                    "y": {"field": "low", "type": "quantitative", "title": "share of the score drop"},
                    "y2": {"field": "high"},
                },
            },
            {
                "transform": [{"filter": "datum.series !== 'penalty'"}],
                "mark": {"type": "line", "point": {"size": 18}},
                "encoding": {
                    "x": x,
                    "y": {"field": "value", "type": "quantitative"},
                    "color": {
                        "field": "series",
                        "type": "nominal",
                        "title": None,
                        "scale": {"domain": series, "range": colours},
                    },
                    "tooltip": tooltip,
                },
            },
        ],
    }


def side_by_side(study: Study, attributions: Mapping[str, Attribution], name: str = "side_by_side") -> Figure:
    """Methods as rows over the prompt's tokens, each row scaled to its own maximum."""
    tokens, gold, rows = study.explainer.passage.user_tokens, set(study.gold), []
    for method, attribution in attributions.items():
        weights = attribution.prompt_weights("row")
        top = weights.max() if weights.max() > 0 else 1.0
        rows += [
            {"position": index, "token": tokens[index], "method": method, "weight": round(float(weight / top), 4),
             "evidence": index in gold}
            for index, weight in enumerate(weights[:600])
        ]  # fmt: skip
    spec = {
        "$schema": SCHEMA,
        "data": {"values": rows},
        "width": "container",
        "mark": "rect",
        "encoding": {
            "x": {"field": "position", "type": "ordinal", "title": "prompt token", "axis": {"labelOverlap": True}},
            "y": {"field": "method", "type": "nominal", "title": None, "sort": None},
            "color": {
                "field": "weight", "type": "quantitative", "scale": {"scheme": "viridis"}, "title": "share of maximum",
            },
            "tooltip": [{"field": name} for name in ("token", "position", "method", "weight", "evidence")],
        },
    }  # fmt: skip
    return Figure(
        name, f"Methods side by side on {study.sample.name}", "vega-lite", spec, "Row view of the explained span."
    )


def ranking_figure(ranked: Sequence[Ranked], name: str = "ranking") -> Figure:
    """Methods by metric with intervals over samples, and the difference to the best."""
    columns = (
        "metric",
        "place",
        "method",
        "mean",
        "low",
        "high",
        "n",
        "behind",
        "behind_low",
        "behind_high",
        "separated",
    )
    return table_figure(
        name,
        "Methods ranked",
        columns,
        [one.row() for one in ranked],
        "Paired bootstrap over samples. 'separated': the interval of the difference to the best lies beyond 0.",
    )


def table_figure(
    name: str, title: str, columns: Sequence[str], rows: Sequence[Mapping[str, object]], caption: str = ""
) -> Figure:
    """A table of records."""
    titled = [{"name": column, "title": column.replace("_", " ")} for column in columns]
    data = {"columns": titled, "rows": [{column: row.get(column) for column in columns} for row in rows]}
    return Figure(name, title, "table", data, caption)


METHOD_COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999"]
"""Okabe and Ito's, one a method."""


def cascade_figure(rows: Sequence[Mapping[str, object]]) -> Figure:
    """Rank correlation with the original model by how many blocks are random, one line a method."""
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": list(rows)},
        "width": "container",
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "randomised", "type": "ordinal", "title": "blocks randomised from the top", "sort": None},
            "y": {"field": "correlation", "type": "quantitative", "title": "rank correlation with the original model"},
            "color": {"field": "method", "type": "nominal", "scale": {"range": METHOD_COLOURS}},
            "tooltip": [{"field": "method"}, {"field": "randomised"}, {"field": "correlation", "format": ".2f"}],
        },
    }  # fmt: skip
    return Figure(
        "cascade", "Cascading randomisation", "vega-lite", spec, "An explanation of the weights must fall to about 0."
    )
