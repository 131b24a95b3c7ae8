"""The small bar beside a number: interval, value, chance and gate limit on a scale shared by all rows of one metric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

from lm_audit.report.wording.numbers import few_text, interval_text, is_p_value, number, value_text
from lm_audit.stats.estimate import Estimate

WIDTH, HEIGHT, PAD = 132, 18, 5
SHARES = {"share", "probability", "proportion", "rate", "fraction", "auc"}


@dataclass(frozen=True)
class Scale:
    """The closed range that a bar spans."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """The pixel of ``value``, clipped to the bar."""
        share = (value - self.low) / (self.high - self.low)
        return round(PAD + (WIDTH - 2 * PAD) * min(1.0, max(0.0, share)), 1)


def common_scale(estimates: Iterable[Estimate], *, whole: bool = True) -> Scale | None:
    """One scale for all estimates of one metric, ``None`` without any value.

    Shares span 0 to 1 where ``whole``; everything else spans from the lowest end to the highest.
    """
    known = list(estimates)
    numbers = [v for e in known if not is_p_value(e) for v in (e.value, e.low, e.high, e.chance) if v is not None]
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    if whole and all((e.unit or "").lower() in SHARES for e in known) and low >= 0 and high <= 1:
        return Scale(0.0, 1.0)
    margin = (high - low) * 0.06 or abs(high) * 0.5 or 1.0
    return Scale(low - margin, high + margin)


def bar(estimate: Estimate | None, scale: Scale | None) -> Markup:
    """An inline SVG with its reading as text for screen readers; empty where there is nothing to draw.

    A p-value is no effect and has no place on a scale; an interval of too few items is dashed.
    """
    if scale is None or estimate is None or estimate.value is None or is_p_value(estimate):
        return Markup("")
    middle = HEIGHT / 2
    parts = [f'<line class="track" x1="{PAD}" x2="{WIDTH - PAD}" y1="{middle}" y2="{middle}"/>']
    if estimate.chance is not None:
        x = scale.x(estimate.chance)
        parts.append(f'<line class="chance" x1="{x}" x2="{x}" y1="2" y2="{HEIGHT - 2}"/>')
    if estimate.low is not None or estimate.high is not None:
        x1 = scale.x(scale.low if estimate.low is None else estimate.low)
        x2 = scale.x(scale.high if estimate.high is None else estimate.high)
        parts.append(f'<line class="range" x1="{x1}" x2="{x2}" y1="{middle}" y2="{middle}"/>')
    parts.append(f'<circle class="dot" cx="{scale.x(estimate.value)}" cy="{middle}" r="3.5"/>')
    reading = _reading(estimate, scale)
    kind = "bar few" if few_text(estimate) else "bar"
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
        f"<title>{escape(reading)}</title>{''.join(parts)}</svg>"
    )


def _reading(estimate: Estimate, scale: Scale) -> str:
    words = [value_text(estimate)]
    if interval := interval_text(estimate):
        level = f"{round(100 * estimate.confidence)}% " if estimate.confidence else ""
        few = few_text(estimate)
        words.append(f"{level}interval {interval}" + (f", {few}" if few else ""))
    if estimate.chance is not None:
        words.append(f"chance {number(estimate.chance)}")
    words.append(f"scale {number(scale.low, 2)} to {number(scale.high, 2)}")
    return ", ".join(words)
