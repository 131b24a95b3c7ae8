"""A comparison as one self-contained page."""

from __future__ import annotations

from markupsafe import Markup

from lm_audit.report.comparison.rows import row_of
from lm_audit.report.comparison.runs import RunComparison
from lm_audit.report.comparison.text import ORDER, counts_text, lost_text
from lm_audit.report.page.rendering import environment, policy, resource


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
                (title, [row_of(change) for change in changes if change.decided == decided])
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
    count, lost = len(comparison.regressions), len(comparison.lost)
    without = sum(one.lacks is not None for one in comparison.unmeasured)
    broke = len(comparison.unmeasured) - without
    if count or lost or broke or without:
        parts = [f"{count} significant regression{'' if count == 1 else 's'}"] if count else []
        parts += [f"{lost} audit{'' if lost == 1 else 's'} void that were measured before"] if lost else []
        parts += [f"{broke} case{'' if broke == 1 else 's'} measured before broke"] if broke else []
        if without:
            parts.append(f"{without} case{'' if without == 1 else 's'} without the metric that decided before")
        return f"Worse: {', '.join(parts)}."
    if comparison.incomparable or not comparison.changes:
        return "Nothing could be compared."
    return "No significant regression."
