"""A comparison as one self-contained page."""

from __future__ import annotations

from dataclasses import replace

from markupsafe import Markup

from lm_audit.report.comparison.runs import MetricChange, RunComparison
from lm_audit.report.comparison.text import ORDER, change_text, counts_text, lost_text, p_text
from lm_audit.report.numbers import interval_text, value_text
from lm_audit.report.page.interval_bar import Scale, bar, common_scale
from lm_audit.report.page.rendering import environment, policy, resource
from lm_audit.report.page.states import State
from lm_audit.report.titles import metric_title

TONES = {
    "worse": "missed",
    "better": "met",
    "changed": "undecided",
    "same": "reported",
    "not shown": "reported",
    "not comparable": "skipped",
}


def render_comparison(comparison: RunComparison) -> str:
    """The comparison as HTML, worst first; it holds no script but the theme button's and makes no request."""
    script = resource("static/theme.js")
    changes = sorted(
        comparison.changes, key=lambda change: (change.void, not change.decided, ORDER.index(change.direction))
    )
    html: str = (
        environment()
        .get_template("compare.html.j2")
        .render(
            c=comparison,
            headline=_headline(comparison),
            tone="missed" if comparison.failed else "met",
            parts=[
                (title, [_row(change) for change in changes if change.decided == decided])
                for title, decided in (("Headlines: decided", True), ("All other metrics: exploratory", False))
            ],
            counts=counts_text(comparison),
            findings=[change for change in comparison.findings if change.moved],
            lost=[lost_text(lost) for lost in comparison.lost],
            css=Markup(resource("static/page.css")),
            js=Markup(script),
            csp=policy(script),
        )
    )
    return html


def _headline(comparison: RunComparison) -> str:
    count, lost, broke = len(comparison.regressions), len(comparison.lost), len(comparison.unmeasured)
    if count or lost or broke:
        parts = [f"{count} significant regression{'' if count == 1 else 's'}"] if count else []
        parts += [f"{lost} audit{'' if lost == 1 else 's'} void that were measured before"] if lost else []
        parts += [f"{broke} case{'' if broke == 1 else 's'} measured before broke"] if broke else []
        return f"Worse: {', '.join(parts)}."
    if comparison.incomparable or not comparison.changes:
        return "Nothing could be compared."
    return "No significant regression."


def _row(change: MetricChange) -> dict[str, object]:
    scale = common_scale([change.a, change.b])
    return {
        "change": change,
        "state": State("void") if change.void else State("reported"),
        "tone": "void" if change.void else TONES[change.direction],
        "word": "void" if change.void else change.direction,
        "label": metric_title(change.metric, change.audit),
        "a": (value_text(change.a), bar(change.a, scale), interval_text(change.a)),
        "b": (value_text(change.b), bar(change.b, scale), interval_text(change.b)),
        "difference": value_text(change.difference),
        "bar": bar(replace(change.difference, chance=0.0), _around_zero(change)),
        "interval": interval_text(change.difference),
        "p": p_text(change.adjusted),
        "basis": change_text(change),
    }


def _around_zero(change: MetricChange) -> Scale | None:
    ends = [abs(x) for x in (change.difference.value, change.difference.low, change.difference.high) if x is not None]
    reach = max(ends, default=0.0) * 1.1 or 1.0
    return Scale(-reach, reach) if ends else None
