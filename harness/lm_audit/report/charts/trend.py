"""A small picture of one metric over runs: a dot and interval for each, void ones hollow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

from lm_audit.report.page.interval_bar import Scale, common_scale
from lm_audit.report.wording.names import visible
from lm_audit.report.wording.numbers import interval_text, value_text
from lm_audit.stats.estimate import Estimate

WIDTH, HEIGHT, PAD = 260, 64, 7
LATEST = 40
"""Runs that the picture has room for."""


@dataclass(frozen=True)
class Point:
    """The metric in one run."""

    run_id: str
    estimate: Estimate
    void: bool = False


def trend(points: Sequence[Point]) -> Markup:
    """An inline SVG of the latest points, each with its reading; empty where no point has a value."""
    shown = [point for point in points if point.estimate.value is not None][-LATEST:]
    scale = common_scale((replace(point.estimate, chance=None) for point in shown), whole=False)
    if scale is None:
        return Markup("")
    xs = [PAD + (WIDTH - 2 * PAD) * (at / (len(shown) - 1) if len(shown) > 1 else 0.5) for at in range(len(shown))]
    line = " ".join(f"{x:.1f},{_y(p.estimate.value, scale):.1f}" for x, p in zip(xs, shown, strict=True) if not p.void)
    marks = "".join(_mark(x, point, scale) for x, point in zip(xs, shown, strict=True))
    return Markup(
        f'<svg class="trend" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
        f'<polyline class="path" points="{line}"/>{marks}</svg>'
    )


def _mark(x: float, point: Point, scale: Scale) -> str:
    estimate = point.estimate
    reading = (
        f"{visible(point.run_id)}: {value_text(estimate)} {interval_text(estimate)}{' (void)' if point.void else ''}"
    )
    whisker = ""
    if estimate.low is not None and estimate.high is not None:
        top, bottom = _y(estimate.high, scale), _y(estimate.low, scale)
        whisker = f'<line class="range" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>'
    css = "dot void" if point.void else "dot"
    dot = f'<circle class="{css}" cx="{x:.1f}" cy="{_y(estimate.value, scale):.1f}" r="3"/>'
    return f"<g><title>{escape(reading)}</title>{whisker}{dot}</g>"


def _y(value: float | None, scale: Scale) -> float:
    share = ((value or 0.0) - scale.low) / (scale.high - scale.low)
    return HEIGHT - PAD - (HEIGHT - 2 * PAD) * min(1.0, max(0.0, share))
