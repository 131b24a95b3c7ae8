"""Pictures of the leakage audit as data: conditions, distributions, files, the most memorised items, style, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.evidence import Figure

if TYPE_CHECKING:
    from lm_audit.audits.leakage.averages import Floats
    from lm_audit.audits.leakage.items.style import StyleShare
    from lm_audit.stats import Estimate

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"


def spec(rows: Sequence[Mapping[str, object]], **rest: object) -> dict[str, Any]:
    """A Vega-Lite specification over inline rows."""
    return {"$schema": SCHEMA, "data": {"values": list(rows)}, "width": "container", **rest}


def chance_line(chance: float | None, axis: str = "x") -> list[dict[str, Any]]:
    """The layer of the line at chance; none where it is not known."""
    if chance is None:
        return []
    return [{"mark": {"type": "rule", "strokeDash": [4, 4], "color": GREY}, "encoding": {axis: {"datum": chance}}}]


def forest(
    name: str, title: str, scores: Mapping[str, Estimate], unit: str, chance: float | None, caption: str
) -> Figure:
    """Estimates with their intervals, one a line, and the line at chance."""
    rows = [{"label": k, "value": e.value, "low": e.low, "high": e.high, "n": e.n} for k, e in scores.items()]
    tooltip = [{"field": "label"}, *({"field": f, "format": ".3f"} for f in ("value", "low", "high")), {"field": "n"}]
    y = {"field": "label", "type": "nominal", "title": None, "sort": None, "axis": {"labelLimit": 260}}
    x = {"field": "low", "type": "quantitative", "title": unit, "scale": {"zero": False}}
    layers = [
        *chance_line(chance),
        {
            "mark": {"type": "rule", "strokeWidth": 2, "color": BLUE},
            "encoding": {"y": y, "x": x, "x2": {"field": "high"}, "tooltip": tooltip},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "color": BLUE},
            "encoding": {"y": y, "x": {"field": "value", "type": "quantitative"}, "tooltip": tooltip},
        },
    ]
    return Figure(name, title, "vega-lite", spec(rows, layer=layers), caption)


def distribution(
    name: str, title: str, values: Mapping[str, Floats], unit: str, chance: float | None, caption: str
) -> Figure:
    """How many questions have which score, as steps, one colour a condition."""
    kept = {k: v[np.isfinite(v)] for k, v in values.items()}
    pooled = np.concatenate([v for v in kept.values() if len(v)] or [np.zeros(1)])
    edges = np.histogram_bin_edges(pooled, bins=min(20, max(5, len(pooled) // 8)))
    rows = [
        {"condition": k, "from": float(a), "to": float(b), "questions": int(count)}
        for k, v in kept.items()
        for a, b, count in zip(edges[:-1], edges[1:], np.histogram(v, edges)[0], strict=True)
    ]
    encoding = {
        "x": {
            "field": "from",
            "type": "quantitative",
            "bin": {"binned": True},
            "title": unit,
            "scale": {"zero": False},
        },
        "x2": {"field": "to"},
        "y": {"field": "questions", "type": "quantitative", "title": "questions", "stack": None},
        "color": {
            "field": "condition",
            "type": "nominal",
            "title": None,
            "sort": None,
            "scale": {"range": [BLUE, ORANGE, "#009E73", "#CC79A7"]},
        },
        "tooltip": [{"field": "condition"}, {"field": "from", "format": ".3f"}, {"field": "questions"}],
    }
    bars = {"mark": {"type": "bar", "opacity": 0.45}, "encoding": encoding}
    return Figure(name, title, "vega-lite", spec(rows, layer=[bars, *chance_line(chance)]), caption)


def table(
    name: str, title: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, object]], caption: str = ""
) -> Figure:
    """A table; ``columns`` maps names to headings."""
    data = {"columns": [{"name": k, "title": v} for k, v in columns.items()], "rows": list(rows)}
    return Figure(name, title, "table", data, caption)


def shown(estimate: Estimate | None, digits: int = 3) -> str:
    """A number with its interval as text for a table; a dash where there is none."""
    if estimate is None or estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.{digits}f}"
    return f"{estimate.value:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def style_figure(styles: Sequence[StyleShare]) -> Figure:
    """The style check as a table."""
    rows = [
        {
            "style": s.style.replace("_", " "),
            "followed": f"{s.followed} of {s.items}",
            "share": shown(s.share),
            "expected": None if s.expected is None else round(s.expected, 4),
            "p": s.p_value,
        }
        for s in styles
    ]
    columns = {"style": "style", "followed": "items", "share": "share [95%]", "expected": "by chance", "p": "p"}
    caption = "Where options follow a style more often than by chance, a likely order is no sign of memory."
    return table("style", "Style of the published order", columns, rows, caption)


def memorised_table(rows: Sequence[Mapping[str, object]], caption: str) -> Figure:
    """The most memorised items: the end of what the model read, what it wrote, and the truth."""
    columns = {
        "item": "item",
        "prefix": "the model read (its end)",
        "wrote": "it wrote",
        "truth": "the truth",
        "gain": "gain over baseline",
    }
    return table("most_memorised", "Most memorised items", columns, rows, caption)


def ending(text: str, length: int = 160) -> str:
    """The last characters of a text, with a mark where something was cut off."""
    return text if len(text) <= length else "…" + text[-length:]


def visible(text: str) -> str:
    """The text with line ends, and spaces at its ends, made visible."""
    body = text.strip(" ")
    head = len(text) - len(text.lstrip(" ")) if body else len(text)
    tail = len(text) - len(body) - head
    return "␣" * head + body.replace("\n", "⏎") + "␣" * tail
