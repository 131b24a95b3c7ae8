"""Figures of the privacy audit: as data, drawn by whoever shows the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.privacy.attribution.directions import RISK
from lm_audit.audits.privacy.measure.membership import exposures, sides
from lm_audit.audits.privacy.measure.source_columns import source_metrics
from lm_audit.audits.privacy.measure.stage_scores import PRIMARY_SCORE
from lm_audit.audits.privacy.stages.stage_names import CSV_NAMES
from lm_audit.evidence import Evidence, Figure

if TYPE_CHECKING:
    from lm_audit.audits.privacy.measure.stage_scores import StageScores

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # Okabe-Ito
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_STAGE_SCALE = {"domain": list(CSV_NAMES.values()), "range": list(COLOURS)}
TABLE_METRICS = ("roc_auc", "pr_auc", "tpr_at_0.01", "extraction.member.third", "extraction.control.third", "epsilon")


def privacy_figures(scored: Mapping[str, StageScores], evidence: Evidence) -> list[Figure]:
    """All figures of a four-stage audit."""
    stages = list(scored.values())
    figures = [
        stage_table(stages, evidence),
        roc_figure(stages, log=False),
        roc_figure(stages, log=True),
        distributions(stages),
        exposure_figure(stages),
    ]
    if all(len(scores.stress) for scores in stages):
        figures.append(stress_heatmap(stages))
    return figures


def stage_table(stages: Sequence[StageScores], evidence: Evidence) -> Figure:
    """Stage by metric, with intervals, and an arrow where the value moved towards more (▲) or less (▼) leakage."""
    rows = [_estimate_row(name, stages, evidence) for name in TABLE_METRICS]
    values = [source_metrics(scores) for scores in stages]
    rows += [_source_row(name, [value[name] for value in values], stages) for name in values[0]]
    columns = [{"name": "metric", "title": "Metric"}]
    columns += [{"name": scores.stage, "title": CSV_NAMES[scores.stage]} for scores in stages]
    caption = (
        "▲ leaks more than the stage before it (2a and 2b both follow SFT), ▼ less. In brackets 95% intervals. "
        "Rows that begin with 'source' follow the source design's formulas and compare canaries with ordinary text."
    )
    return Figure("stage-table", "Stages and metrics", "table", {"columns": columns, "rows": rows}, caption)


CHANGE_COLUMNS = {
    "metric": "Metric",
    "kind": "Kind",
    "before": "Before",
    "after": "After",
    "change": "Change of members",
    "against": "Change against twins",
    "effect": "d",
    "p_holm": "p (Holm)",
    "decision": "Decision",
}


def changes_table(transition: str, changes: Sequence[Mapping[str, object]]) -> Figure:
    """Every metric's change in one transition, with the interval that it is judged by and the decision."""
    rows = [_change_row(change) for change in changes if change["transition"] == transition]
    caption = (
        "The first row is the primary figure: members' change minus twins' change, with those two before and after. "
        "The others are judged by their change against the twins; where twins have no value nothing is said of leakage."
    )
    columns = [{"name": name, "title": title} for name, title in CHANGE_COLUMNS.items()]
    return Figure("changes", f"What changed: {transition}", "table", {"columns": columns, "rows": rows}, caption)


def _change_row(change: Mapping[str, Any]) -> dict[str, str]:
    row = {name: str(change[name]) for name in ("metric", "kind", "decision")}
    row |= {name: _short(change[name]) for name in ("before", "after", "effect", "p_holm")}
    row["change"] = _short(change["delta"], change["low"], change["high"])
    row["against"] = _short(change.get("against_twins"), change.get("against_low"), change.get("against_high"))
    return row


def _short(value: float | None, low: float | None = None, high: float | None = None) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" + (f" [{low:.4g}, {high:.4g}]" if low is not None and high is not None else "")


def _estimate_row(name: str, stages: Sequence[StageScores], evidence: Evidence) -> dict[str, str]:
    row, values = {"metric": name}, {}
    for scores in stages:
        found = evidence.metrics[f"privacy.{scores.stage}.{name}"]
        values[scores.stage] = found.value
        interval = f" [{found.low:.3f}, {found.high:.3f}]" if found.low is not None and found.high is not None else ""
        text = "not identified" if found.value is None else f"{found.value:.3f}{interval}"
        row[scores.stage] = text + _arrow(values, scores.stage, +1)
    return row


def _source_row(name: str, values: Sequence[float | None], stages: Sequence[StageScores]) -> dict[str, str]:
    row, seen = {"metric": f"source {name}"}, {}
    for scores, value in zip(stages, values, strict=True):
        seen[scores.stage] = value
        shown = "-" if value is None else f"{value:.4g}"
        row[scores.stage] = shown + _arrow(seen, scores.stage, RISK[name])
    return row


def _arrow(values: Mapping[str, float | None], stage: str, risk: int) -> str:
    before = values.get("base" if stage == "sft" else "sft") if stage != "base" else None
    now = values[stage]
    if before is None or now is None or now == before:
        return ""
    return " ▲" if (now - before) * risk > 0 else " ▼"


def roc_figure(stages: Sequence[StageScores], *, log: bool) -> Figure:
    """ROC of the primary score by stage; on logarithmic axes the low false positive rates, which matter, show."""
    values = [point for scores in stages for point in roc_points(scores, log)]
    scale: dict[str, Any] = {"type": "log"} if log else {}
    spec = {
        "$schema": SCHEMA,
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {
            "x": {"field": "fpr", "type": "quantitative", "title": "False positive rate", "scale": scale},
            "y": {"field": "tpr", "type": "quantitative", "title": "True positive rate", "scale": scale},
            "color": {"field": "stage", "type": "nominal", "scale": _STAGE_SCALE, "title": "Stage"},
            "order": {"field": "order", "type": "quantitative"},
        },
        "width": 360,
        "height": 360,
    }
    name, kind = ("roc-log", "logarithmic") if log else ("roc", "linear")
    return Figure(name, f"ROC, {kind} axes", "vega-lite", spec, "Members against held-out twins, primary score.")


def roc_points(scores: StageScores, log: bool) -> list[dict[str, Any]]:
    """Corners of the ROC curve; on logarithmic axes without those at 0."""
    from sklearn.metrics import roc_curve

    members, twins = sides(scores, PRIMARY_SCORE)
    labels = np.r_[np.ones(len(members)), np.zeros(len(twins))]
    fpr, tpr, _ = roc_curve(labels, np.r_[members, twins])
    stage = CSV_NAMES[scores.stage]
    points = [(float(x), float(y)) for x, y in zip(fpr, tpr, strict=True)]
    kept = [(x, y) for x, y in points if x > 0 and y > 0] if log else points
    return [{"stage": stage, "fpr": x, "tpr": y, "order": i} for i, (x, y) in enumerate(kept)]


def distributions(stages: Sequence[StageScores]) -> Figure:
    """Distribution of the secret's log-probability for members and twins, stage by stage."""
    values = [
        {"stage": CSV_NAMES[scores.stage], "role": role, "score": float(value)}
        for scores in stages
        for role in ("member", "control")
        for value in scores.of(role)["span_mean_logprob"]
    ]
    spec = {
        "$schema": SCHEMA,
        "data": {"values": values},
        "facet": {"row": {"field": "stage", "type": "nominal", "title": None, "sort": list(CSV_NAMES.values())}},
        "spec": {
            "width": 420,
            "height": 70,
            "transform": [{"density": "score", "groupby": ["role"], "as": ["score", "density"]}],
            "mark": {"type": "area", "opacity": 0.5},
            "encoding": {
                "x": {"field": "score", "type": "quantitative", "title": "Secret: mean log-probability (nats a token)"},
                "y": {"field": "density", "type": "quantitative", "stack": None, "title": None, "axis": None},
                "color": {
                    "field": "role",
                    "type": "nominal",
                    "scale": {"domain": ["member", "control"], "range": [COLOURS[1], COLOURS[0]]},
                },
            },
        },
    }
    return Figure("distributions", "Scores of members and twins", "vega-lite", spec)


def exposure_figure(stages: Sequence[StageScores]) -> Figure:
    """Sampled exposure of every member against its repetitions, with the mean of each tier."""
    values = []
    for scores in stages:
        for row, bits in zip(scores.of("member").to_dict("records"), exposures(scores), strict=True):
            values.append({"stage": CSV_NAMES[scores.stage], "repetitions": int(row["repetitions"]), "exposure": bits})
    cap = float(np.log2(len(stages[0].of("control")) + 1))
    x = {"field": "repetitions", "type": "quantitative", "scale": {"type": "log", "base": 2}, "title": "Repetitions"}
    colour = {"field": "stage", "type": "nominal", "scale": _STAGE_SCALE, "title": "Stage"}
    y = {"field": "exposure", "type": "quantitative", "title": "Exposure (bits)"}
    spec = {
        "$schema": SCHEMA,
        "data": {"values": values},
        "width": 420,
        "height": 260,
        "layer": [
            {"mark": {"type": "point", "opacity": 0.4}, "encoding": {"x": x, "y": y, "color": colour}},
            {"mark": "line", "encoding": {"x": x, "y": y | {"aggregate": "mean"}, "color": colour}},
            {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"y": {"datum": cap}}},
        ],
    }
    return Figure("exposure", "Exposure against repetitions", "vega-lite", spec, f"Dashed: the cap, {cap:.2f} bits.")


def stress_heatmap(stages: Sequence[StageScores]) -> Figure:
    """Mean log-probability of the members' secrets in each prompt variant and stage."""
    values = [
        {"stage": CSV_NAMES[scores.stage], "variant": variant, "score": float(group["span_mean_logprob"].mean())}
        for scores in stages
        for variant, group in scores.stress.groupby("variant", sort=False)
    ]
    order = list(dict.fromkeys(value["variant"] for value in values))
    spec = {
        "$schema": SCHEMA,
        "data": {"values": values},
        "mark": "rect",
        "width": 320,
        "height": 180,
        "encoding": {
            "x": {"field": "stage", "type": "nominal", "sort": list(CSV_NAMES.values()), "title": None},
            "y": {"field": "variant", "type": "nominal", "sort": order, "title": "Prompt"},
            "color": {
                "field": "score",
                "type": "quantitative",
                "scale": {"scheme": "viridis"},
                "title": "Nats a token",
            },
            "tooltip": [{"field": "variant"}, {"field": "stage"}, {"field": "score", "format": ".3f"}],
        },
    }
    caption = (
        "The secret's own tokens are scored in every prompt. In 'repeated' the second copy can be read off the first."
    )
    return Figure("stress", "Prompt stress test", "vega-lite", spec, caption)


def seed_figure(rows: Sequence[Mapping[str, object]]) -> Figure:
    """The primary figure of every seed with its interval: do the seeds agree in direction?"""
    spec = {
        "$schema": SCHEMA,
        "data": {"values": [dict(row) for row in rows]},
        "width": 360,
        "height": {"step": 24},
        "encoding": {"y": {"field": "seed", "type": "ordinal", "title": "Seed"}},
        "layer": [
            {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
            {
                "mark": "rule",
                "encoding": {
                    "x": {"field": "low", "type": "quantitative", "title": "Difference in differences (nats)"},
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "color": COLOURS[1], "size": 80},
                "encoding": {"x": {"field": "value", "type": "quantitative"}},
            },
        ],
    }
    return Figure("seeds", "Agreement of seeds", "vega-lite", spec)
