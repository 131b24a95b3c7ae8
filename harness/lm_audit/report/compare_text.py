"""A comparison as lines for the terminal."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence

from lm_audit.report.compare import MetricChange, RunComparison
from lm_audit.report.names import visible
from lm_audit.report.numbers import interval_text, value_text

MARKS = {
    "worse": "\u2193 worse",
    "better": "\u2191 better",
    "changed": "\u2260 changed",
    "same": "\u00b7",
    "unknown": "?",
}
STYLES = {"worse": "bold red", "better": "blue", "changed": "yellow", "same": "dim", "unknown": "dim"}
SHOWN = 40


def comparison_lines(comparison: RunComparison, *, width: int = 100, color: bool = False) -> list[str]:
    """What differs, most important first, as lines of at most ``width`` columns; ANSI colours where ``color``."""
    lines = [f"{visible(comparison.a)} \u2192 {visible(comparison.b)}"]
    told = sorted((c for c in comparison.changes if c.direction != "same"), key=_importance)
    lines += _table(told[:SHOWN], width, color) if told else []
    if len(told) > SHOWN:
        lines.append(f"and {len(told) - SHOWN} more changes: --html FILE shows all")
    lines += [f"state: {visible(s.case_id)}: {s.before.label} \u2192 {s.after.label}" for s in comparison.states]
    lines += [f"appeared: {visible(case_id)}" for case_id in comparison.appeared]
    lines += [f"vanished: {visible(case_id)}" for case_id in comparison.vanished]
    lines += [f"note: {remark}" for remark in comparison.remarks]
    return [*lines, *_totals(comparison)]


def change_text(change: MetricChange) -> str:
    """The basis of a comparison in words: how many pairs, and what only one run has."""
    if change.basis == "paired":
        rest = [f"{n} only in {run}" for n, run in ((change.only_a, "A"), (change.only_b, "B")) if n]
        return ", ".join([f"{change.pairs} pairs", *rest])
    if change.basis == "two samples":
        return "other items: two samples"
    return "from intervals" if change.basis == "intervals" else change.difference.note or "no interval"


def p_text(p: float | None) -> str:
    """A p-value as it is usually written."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _importance(change: MetricChange) -> tuple[int, float]:
    order = ("worse", "changed", "better", "unknown", "same")
    return order.index(change.direction), change.adjusted if change.adjusted is not None else 2.0


def _table(changes: Sequence[MetricChange], width: int, color: bool) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("", "case", "metric", "A", "B", "B \u2212 A", "interval", "p (Holm)", "basis"):
        numeric = title in ("A", "B", "B \u2212 A", "p (Holm)")
        table.add_column(title, justify="right" if numeric else "left", overflow="fold")
    for change in changes:
        word = "void" if change.void else change.direction
        style = STYLES.get(word, "strike")
        case = change.case_id.rpartition("::")[2]
        texts = (MARKS.get(word, "\u2298 void"), visible(case), visible(change.metric), value_text(change.a),
                 value_text(change.b), value_text(change.difference), interval_text(change.difference),
                 p_text(change.adjusted), change_text(change))  # fmt: skip
        table.add_row(Text(texts[0], style), *(Text(text) for text in texts[1:]))
    out = io.StringIO()
    Console(file=out, width=max(60, width), force_terminal=color, color_system="standard" if color else None, _environ={}).print(table)  # fmt: skip  # noqa: E501
    return [line.rstrip() for line in out.getvalue().splitlines()]


def _totals(comparison: RunComparison) -> Iterable[str]:
    words = Counter("void" if change.void else change.direction for change in comparison.changes)
    counts = ", ".join(f"{words[word]} {word}" for word in ("worse", "better", "changed", "same", "unknown", "void") if words[word])  # fmt: skip  # noqa: E501
    yield f"{len(comparison.changes)} metrics compared: {counts or 'none'}"
    count = len(comparison.regressions)
    yield f"{count} significant regression{'' if count == 1 else 's'} at 5 %, adjusted for all tests"
