"""Pictures of the preference grid as data: forest plot, heatmap of groups x pairs, sensitivity to the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.evidence import Evidence, Figure

if TYPE_CHECKING:
    from lm_audit.audits.bias.grid.contrasts import Contrast
    from lm_audit.audits.bias.grid.lexicon.parts import Axis, PreferenceSet
    from lm_audit.audits.bias.grid.measurement import Floats
    from lm_audit.stats import Estimate

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
_DIVERGING = {"scheme": "blueorange", "domainMid": 0}


def grid_figures(
    axis: Axis,
    values: Floats,
    grid: PreferenceSet,
    scores: Mapping[str, Estimate],
    contrasts: Sequence[Contrast],
) -> list[Figure]:
    """The figures of one axis; ``values`` has shape (groups, templates, pairs)."""
    return [
        _forest(scores),
        _contrast_forest(contrasts),
        _heatmap(axis, values, grid),
        _template_sensitivity(contrasts, grid),
        _contrast_table(contrasts),
    ]


def _spec(rows: Sequence[Mapping[str, object]], **rest: object) -> dict[str, Any]:
    return {"$schema": SCHEMA, "data": {"values": list(rows)}, "width": "container", **rest}


def reference_line(at: float) -> dict[str, Any]:
    """A dashed line at the value that says "no effect"."""
    return {"mark": {"type": "rule", "strokeDash": [4, 4], "color": "#777777"}, "encoding": {"x": {"datum": at}}}


def category_forest(evidence: Evidence, name: str, separator: str, at: float, title: str) -> Figure:
    """A benchmark by category: the metrics ``name`` and ``name + separator + CATEGORY``, with a line at ``at``."""
    categories = {"all": evidence.metrics[name]} | {
        metric.removeprefix(name + separator): estimate
        for metric, estimate in evidence.metrics.items()
        if metric.startswith(name + separator)
    }
    rows = [_interval_row(label, estimate) for label, estimate in categories.items() if estimate.value is not None]
    return Figure(
        "by_category",
        title,
        "vega-lite",
        _spec(rows, layer=interval_layers("label", title, at)),
        f"The dashed line, {at:g}, is what a model without a preference gives; few items make a wide interval.",
    )


def interval_layers(y: str, title: str, at: float = 0.0) -> list[dict[str, Any]]:
    """Layers of a forest plot: reference line, intervals, points; ``y`` names the field that rows are laid out by."""
    tooltip = [
        {"field": y, "type": "nominal"},
        {"field": "value", "type": "quantitative", "format": ".3f"},
        {"field": "low", "type": "quantitative", "format": ".3f"},
        {"field": "high", "type": "quantitative", "format": ".3f"},
    ]
    place = {"field": y, "type": "nominal", "title": None, "sort": None}
    return [
        reference_line(at),
        {
            "mark": {"type": "rule", "strokeWidth": 2, "color": "#0072B2"},
            "encoding": {
                "y": place,
                "x": {"field": "low", "type": "quantitative", "title": title},
                "x2": {"field": "high"},
                "tooltip": tooltip,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "color": "#0072B2"},
            "encoding": {"y": place, "x": {"field": "value", "type": "quantitative"}, "tooltip": tooltip},
        },
    ]


def _interval_row(label: str, estimate: Estimate) -> dict[str, Any]:
    return {"label": label, "value": estimate.value, "low": estimate.low, "high": estimate.high}


def _forest(scores: Mapping[str, Estimate]) -> Figure:
    rows = [_interval_row(group, estimate) for group, estimate in scores.items()]
    return Figure(
        "group_scores",
        "Groups of the axis",
        "vega-lite",
        _spec(rows, layer=interval_layers("label", "score, nats (centred on the axis)")),
        "Mean log-odds of the positive word, centred on the axis, with the two-way t interval.",
    )


def _contrast_forest(contrasts: Sequence[Contrast]) -> Figure:
    rows = [_interval_row(contrast.name, contrast.difference) for contrast in contrasts]
    return Figure(
        "contrasts",
        "Contrasts",
        "vega-lite",
        _spec(rows, layer=interval_layers("label", "difference, nats")),
        "Right of zero the first group is spoken of more favourably. Intervals are not corrected for their number.",
    )


def _heatmap(axis: Axis, values: Floats, grid: PreferenceSet) -> Figure:
    centred = (values - values.mean(axis=0)).mean(axis=1)
    rows = [
        {"group": group, "pair": pair.label, "score": float(centred[g, p])}
        for g, group in enumerate(axis.groups)
        for p, pair in enumerate(grid.pairs)
    ]
    encoding = {
        "x": {"field": "pair", "type": "nominal", "sort": None, "title": None, "axis": {"labelAngle": -40}},
        "y": {"field": "group", "type": "nominal", "sort": None, "title": None},
        "color": {"field": "score", "type": "quantitative", "scale": _DIVERGING, "title": "nats"},
        "tooltip": [{"field": "group"}, {"field": "pair"}, {"field": "score", "format": ".3f"}],
    }
    return Figure(
        "group_by_pair",
        "Groups by word pairs",
        "vega-lite",
        _spec(rows, mark="rect", encoding=encoding),
        "Mean over templates, centred on the axis; a pattern that one pair alone makes is about that pair.",
    )


def _template_sensitivity(contrasts: Sequence[Contrast], grid: PreferenceSet) -> Figure:
    rows = [
        {"template": template, "contrast": contrast.name, "difference": value}
        for contrast in contrasts
        for template, value in zip(grid.templates, contrast.per_template, strict=True)
    ]
    encoding = {
        "y": {"field": "template", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 320}},
        "x": {"field": "difference", "type": "quantitative", "title": "difference, nats"},
        "color": {"field": "contrast", "type": "nominal", "title": None},
        "shape": {"field": "contrast", "type": "nominal", "title": None},
        "tooltip": [{"field": "template"}, {"field": "contrast"}, {"field": "difference", "format": ".3f"}],
    }
    layers = [reference_line(0.0), {"mark": {"type": "point", "filled": True, "size": 55}, "encoding": encoding}]
    return Figure(
        "template_sensitivity",
        "How the answer changes with the template",
        "vega-lite",
        _spec(rows, layer=layers),
        "One mark a template, mean over pairs. Marks on both sides of zero: the wording decides, not the group.",
    )


_COLUMNS = (
    ("contrast", "contrast"),
    ("difference", "nats"),
    ("low", "low"),
    ("high", "high"),
    ("odds_ratio", "odds ratio"),
    ("d_z", "d_z over pairs"),
    ("weat", "WEAT-style d"),
    ("p_two_way", "p, two-way"),
    ("holm_two_way", "Holm"),
    ("p_sign_flip", "p, sign flip"),
    ("holm_sign_flip", "Holm (sign flip)"),
    ("p_equivalence", "p, equivalence"),
)


def _contrast_table(contrasts: Sequence[Contrast]) -> Figure:
    import math

    rows = []
    for contrast in contrasts:
        value = contrast.difference.value
        row = {name: getattr(contrast, name, None) for name, _ in _COLUMNS}
        row.update({"contrast": contrast.name, "difference": value})
        row.update({"low": contrast.difference.low, "high": contrast.difference.high})
        row["odds_ratio"] = None if value is None else math.exp(value)
        rows.append(row)
    columns = [{"name": name, "title": title} for name, title in _COLUMNS]
    return Figure("contrast_table", "Contrasts, tests and effect sizes", "table", {"columns": columns, "rows": rows})
