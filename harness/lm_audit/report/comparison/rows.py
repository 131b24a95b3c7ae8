"""One compared metric as a row of a page's table."""

from __future__ import annotations

from dataclasses import replace

from lm_audit.report.comparison.runs import MetricChange
from lm_audit.report.comparison.text import change_text, p_text
from lm_audit.report.page.interval_bar import Scale, bar, common_scale
from lm_audit.report.page.states import State
from lm_audit.report.wording.numbers import interval_text, value_text
from lm_audit.report.wording.titles import metric_title

TONES = {
    "worse": "missed",
    "better": "met",
    "changed": "undecided",
    "reversed": "undecided",
    "same": "reported",
    "not shown": "reported",
    "not comparable": "skipped",
}


def row_of(change: MetricChange) -> dict[str, object]:
    """What the table says of ``change``: words, values and bars, ready to print."""
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
