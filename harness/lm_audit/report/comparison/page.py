"""A comparison as one self-contained page."""

from __future__ import annotations

from markupsafe import Markup

from lm_audit.report.comparison.rows import row_of
from lm_audit.report.comparison.runs import RunComparison
from lm_audit.report.comparison.text import ORDER, counts_text, failings, lost_text, undecidable
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
            undecidable=undecidable(comparison),
            findings=[change for change in comparison.findings if change.told],
            lost=[f"{'Skipped' if one.skipped else 'Void'} now: {lost_text(one)}" for one in comparison.lost],
            css=Markup(resource("static/page.css")),
            js=Markup(script),
            csp=policy(script),
        )
    )
    return html


def _headline(comparison: RunComparison) -> str:
    count, others = len(comparison.regressions), failings(comparison)
    refused = [one for one in comparison.unmeasured if one.kind == "refused"]
    worse = count or comparison.lost or any(one.kind == "broke" for one in comparison.unmeasured)
    if not worse and (comparison.incomparable or not comparison.changes):
        return "Nothing could be compared."
    if not worse and len(refused) == len(comparison.unmeasured) > 0:
        return f"Not comparable: {others[0]}."
    if count or others:
        parts = [f"{count} significant regression{'' if count == 1 else 's'}"] if count else []
        return f"Worse: {', '.join([*parts, *others])}."
    return "No significant regression."
