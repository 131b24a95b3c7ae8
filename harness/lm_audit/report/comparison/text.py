"""A comparison as lines for the terminal."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence

from lm_audit.report.comparison.runs import LostAudit, MetricChange, RunComparison
from lm_audit.report.wording.names import visible
from lm_audit.report.wording.numbers import interval_text, value_text
from lm_audit.report.wording.numbers import p_text as written_p
from lm_audit.report.wording.titles import metric_title
from lm_audit.stats.estimate import Estimate

MARKS = {
    "worse": "\u2193 worse",
    "better": "\u2191 better",
    "changed": "\u2260 changed",
    "reversed": "\u21c4 reversed",
    "same": "= same",
    "not shown": "\u00b7 not shown",
    "not comparable": "? not comparable",
}
STYLES = {
    "worse": "bold red",
    "better": "blue",
    "changed": "yellow",
    "reversed": "yellow",
    "same": "dim",
    "not shown": "dim",
    "not comparable": "dim",
}
ORDER = ("worse", "changed", "reversed", "better", "not comparable", "not shown", "same")
SHOWN = 40


def comparison_lines(comparison: RunComparison, *, width: int = 100, color: bool = False) -> list[str]:
    """What differs, most important first, as lines of at most ``width`` columns; ANSI colours where ``color``."""
    lines = [f"{visible(comparison.a)} \u2192 {visible(comparison.b)}"]
    told = sorted((c for c in comparison.changes if _told(c)), key=_importance)
    lines += _table(told[:SHOWN], width, color) if told else []
    if len(told) > SHOWN:
        lines.append(f"and {len(told) - SHOWN} more: --html FILE shows all")
    lines += finding_lines(comparison)
    lines += [f"{'skipped' if one.skipped else 'void'} now: {lost_text(one)}" for one in comparison.lost]
    lines += [
        f"not {'comparable' if one.kind == 'refused' else 'measured'} now: {visible(one.case_id)}: {visible(one.why)}"
        for one in comparison.unmeasured
    ]
    lines += [f"state: {visible(s.case_id)}: {s.before.label} \u2192 {s.after.label}" for s in comparison.states]
    lines += [f"appeared: {visible(case_id)}" for case_id in comparison.appeared]
    lines += [f"vanished: {visible(case_id)}" for case_id in comparison.vanished]
    lines += [f"note: {remark}" for remark in comparison.remarks]
    return [*lines, *_totals(comparison)]


def finding_lines(comparison: RunComparison) -> list[str]:
    """The findings that say something else now, with what the comparison shows of their metric."""
    moved = [change for change in comparison.findings if change.told and not change.void]
    lines = [
        f"finding: {visible(change.b.statement)} ({change.a.verdict} \u2192 {change.b.verdict}; "
        f"the change itself: {change.direction or 'not compared'})"
        for change in moved[:SHOWN]
    ]
    return lines + ([f"and {len(moved) - SHOWN} more findings: --html FILE shows all"] if len(moved) > SHOWN else [])


def change_text(change: MetricChange) -> str:
    """The basis of a comparison in words: how many pairs, and what only one run has."""
    if change.identical:
        return f"{change.pairs} pairs, all the same" if change.pairs else "the same value and interval"
    texts = []
    if (target := change.reversed_about) is not None:
        above = change.a.value is not None and change.a.value > target
        sides = ("above", "below") if above else ("below", "above")
        texts.append(f"the direction reversed: {sides[0]} {target:g} in A, {sides[1]} it in B")
    if change.basis == "paired":
        texts.append(f"{change.pairs} pairs")
        if change.clusters < change.pairs:
            texts.append(f"{change.clusters} clusters")
        texts += [f"{n} only in {run}" for n, run in ((change.only_a, "A"), (change.only_b, "B")) if n]
        texts += [f"{change.others} of other data"] if change.others else []
        if change.ends is not None and (change.only_a or change.only_b or change.others):
            ends = [value_text(Estimate(end, unit=change.a.unit)) for end in change.ends]
            texts.append(f"{ends[0]} \u2192 {ends[1]} on the pairs")
    elif change.basis == "two samples":
        texts.append("other items: two samples")
    elif change.basis == "intervals":
        texts.append("from intervals")
    else:
        texts.append(change.difference.note or "no interval")
    if change.equivalent and not change.significant and change.margin is not None:
        texts.append(f"differs by less than {change.margin:g}")
    if not change.able and change.p is not None:
        texts.append("too few items that moved to decide")
    return ", ".join(texts)


def lost_text(lost: LostAudit) -> str:
    """An audit that is void now, with why."""
    model = f" on {visible(lost.model)}" if lost.model else ""
    return f"{visible(lost.audit)}{model}: {'; '.join(map(visible, lost.reasons))}"


def counts_text(comparison: RunComparison) -> list[str]:
    """How many metrics came out how: headlines, then the rest."""
    texts = []
    for decided, name in ((True, "decided"), (False, "exploratory")):
        some = [change for change in comparison.changes if change.decided == decided]
        words = Counter("void" if change.void else change.direction for change in some)
        counts = ", ".join(f"{words[word]} {word}" for word in (*ORDER, "void") if words[word])
        if some:
            texts.append(f"{len(some)} {name}: {counts}")
    return texts


def failings(comparison: RunComparison) -> list[str]:
    """What fails the comparison beside regressions: how many audits and cases have lost what was measured."""
    skipped = sum(lost.skipped for lost in comparison.lost)
    kinds = Counter(one.kind for one in comparison.unmeasured)
    counted = (
        (len(comparison.lost) - skipped, "audit", "void that {was} measured before"),
        (skipped, "audit", "skipped that {was} measured before"),
        (kinds["without"], "case", "without the metric that decided before"),
        (kinds["refused"], "case", "of other data or another unit, which cannot be compared"),
        (kinds["broke"], "case", "that {was} measured before broke"),
    )
    return [
        f"{many} {noun}{'' if many == 1 else 's'} {what.format(was='was' if many == 1 else 'were')}"
        for many, noun, what in counted
        if many
    ]


def undecidable(comparison: RunComparison) -> int:
    """How many headlines moved on items that are too few for any test: no regression of them could be found."""
    some = (c for c in comparison.changes if c.decided and not c.void and c.direction == "not shown")
    return sum(change.p is None or not change.able for change in some)


def p_text(p: float | None) -> str:
    """A p-value as it is usually written."""
    return "" if p is None else written_p(p)


def _told(change: MetricChange) -> bool:
    """What a terminal shows: what changed, and every headline that cannot be compared."""
    if change.direction == "not comparable":
        return change.decided
    return change.direction not in ("same", "not shown")


def _importance(change: MetricChange) -> tuple[bool, int, float]:
    return (
        not change.decided,
        ORDER.index(change.direction),
        change.adjusted if change.adjusted is not None else 2.0,
    )


def _table(changes: Sequence[MetricChange], width: int, color: bool) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("", "case", "metric", "A", "B", "B \u2212 A", "interval", "p, adjusted", "basis"):
        numeric = title in ("A", "B", "B \u2212 A", "p, adjusted")
        table.add_column(title, justify="right" if numeric else "left", overflow="fold")
    for change in changes:
        word = "void" if change.void else change.direction
        style = STYLES.get(word, "strike")
        case = change.case_id.rpartition("::")[2]
        texts = (
            MARKS.get(word, "\u2298 void"),
            visible(case),
            metric_title(change.metric, change.audit),
            *(value_text(estimate) for estimate in (change.a, change.b, change.difference)),
            interval_text(change.difference),
            p_text(change.adjusted),
            change_text(change),
        )
        mark = texts[0] if change.decided else f"{texts[0]} (exploratory)"
        table.add_row(Text(mark, style), *(Text(text) for text in texts[1:]))
    out = io.StringIO()
    Console(file=out, width=max(60, width), force_terminal=color, color_system="standard" if color else None, _environ={}).print(table)  # fmt: skip  # noqa: E501
    return [line.rstrip() for line in out.getvalue().splitlines()]


def _totals(comparison: RunComparison) -> Iterable[str]:
    yield f"{len(comparison.changes)} metrics compared; {'; '.join(counts_text(comparison)) or 'none'}"
    yield from failings(comparison)
    if many := undecidable(comparison):
        headlines = f"{many} headline{'' if many == 1 else 's'}"
        yield f"{headlines} moved in too few items, or had too few, for any test to find a regression"
    if comparison.incomparable:
        yield "nothing could be compared: no metric of a case has a place in both runs"
        return
    count = len(comparison.regressions)
    yield f"{count} significant regression{'' if count == 1 else 's'} at 5 %, adjusted among the headlines"
