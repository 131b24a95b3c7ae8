"""What a notebook shows of estimates, findings, figures and evidence: short, and every text escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lm_audit.shared.visible import visible
from lm_audit.stats.digits import chance_text, interval_text, value_text
from lm_audit.stats.estimate import Estimate

if TYPE_CHECKING:
    from lm_audit.evidence import Evidence, Figure
    from lm_audit.findings.record import Finding

SIGNS = {"found": "!", "cannot tell": "?", "not found": "\u2713"}
METRICS = 30
"""Metrics that the table of evidence shows; ``to_frame`` has all."""


def estimate_html(estimate: Estimate) -> Markup:
    """Value, unit, interval, n and chance on one line, or why there is no value."""
    if estimate.value is None:
        return Markup("<span>no value: {}</span>").format(visible(estimate.note))
    parts = [visible(estimate.unit or ""), interval_text(estimate)]
    parts += [f"n {estimate.n}"] if estimate.n is not None else []
    parts += [f"chance {chance_text(estimate)}"] if estimate.chance is not None else []
    rest = " \u00b7 ".join(part for part in parts if part)
    return Markup("<span><b>{}</b> {}</span>").format(value_text(estimate), rest)


def finding_html(finding: Finding) -> Markup:
    """The statement with its sign, effect, size of what is found, and what to look at next."""
    effect = estimate_html(finding.effect) if finding.effect is not None else Markup("")
    more = " \u00b7 ".join(visible(text) for text in (finding.amount, finding.reason, finding.look) if text)
    sign = SIGNS[finding.verdict]
    return Markup("<div><b>{} {}</b>: {}<br><small>{} {}</small></div>").format(
        sign, finding.verdict, visible(finding.statement), effect, more
    )


def evidence_html(evidence: Evidence) -> Markup:
    """Findings, metrics as a table, and how much more there is."""
    from lm_audit.audits.metric_info import metric_info

    row = Markup('<tr><th style="text-align:left" title="{}">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>')
    rows = []
    for name, estimate in list(evidence.metrics.items())[:METRICS]:
        info = metric_info(name)
        title = visible(info.title if info else name)
        about = visible(f"{name}\n{info.about}" if info else name)
        cells = (value_text(estimate), interval_text(estimate), estimate.n, visible(estimate.unit or ""))
        rows.append(row.format(about, title, *("" if cell is None else cell for cell in cells)))
    head = Markup("<tr><th></th><th>value</th><th>interval</th><th>n</th><th>unit</th></tr>")
    left = len(evidence.metrics) - len(rows)
    rest = f"{left} more metrics, " if left > 0 else ""
    foot = f"{rest}{len(evidence.rows):,} items, {len(evidence.figures)} figures: to_frame('items'), figures"
    found = Markup("").join(finding_html(finding) for finding in evidence.findings)
    notes = Markup("").join(Markup("<li>{}</li>").format(visible(note)) for note in evidence.notes)
    return Markup("<div><h4>{}</h4>{}<ul>{}</ul><table>{}{}</table><small>{}</small></div>").format(
        visible(evidence.audit), found, notes, head, Markup("").join(rows), foot
    )


def figure_bundle(figure: Figure) -> dict[str, Any]:
    """The figure drawn here and now, in a frame without scripts or network; a figure that cannot be drawn says why."""
    from lm_audit.report.charts.shown_figures import FigureDrawer
    from lm_audit.report.page.rendering import environment, policy, resource

    view = FigureDrawer().view(figure)
    html = (
        environment()
        .get_template("attachment.html.j2")
        .render(figure=view, style=Markup(resource("static/page.css")), csp=policy())
    )
    frame = Markup('<iframe sandbox srcdoc="{}" style="width:100%;height:420px;border:0" title="{}"></iframe>')
    return {"text/plain": repr(figure), "text/html": str(frame.format(str(html), visible(figure.title)))}


def text_of(evidence: Evidence) -> str:
    """One short line."""
    counts = f"{len(evidence.metrics)} metrics, {len(evidence.rows)} rows, {len(evidence.figures)} figures"
    lead = evidence.metrics.get(evidence.headline or "")
    told = "" if lead is None else f", {evidence.headline} = {value_text(lead)} {interval_text(lead)}".rstrip()
    found = sum(one.verdict == "found" and one.kind == "claim" for one in evidence.findings)
    return visible(f"<Evidence {evidence.audit}: {found} found, {counts}{told}>")


__all__ = ["estimate_html", "evidence_html", "figure_bundle", "finding_html", "text_of"]
