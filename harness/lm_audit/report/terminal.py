"""The table after pytest's own lines: per case the headline metric, its interval and the verdict."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from lm_audit.report.names import case_label, metric_label, visible
from lm_audit.report.numbers import interval_text, value_text
from lm_audit.report.states import SEVERITY, State, case_state
from lm_audit.report.voids import Voids
from lm_audit.runstore.records import CaseRecord, Run

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

FULL = 40
"""Cases up to which every case has a line; beyond it only those that need attention have one."""
FLEXIBLE = ("case", "metric")
QUIET = {"met", "reported", "skipped"}
STYLES = {
    "met": "blue", "missed": "bold red", "failed": "bold red", "undecided": "yellow", "void": "bold strike",
    "crashed": "bold magenta", "error": "bold magenta", "unfinished": "magenta", "reported": "dim", "skipped": "dim",
}  # fmt: skip


def summary_lines(run: Run, *, width: int = 100, color: bool = False) -> list[str]:
    """The summary of ``run`` as lines of at most ``width`` columns, with ANSI colours where ``color``."""
    voids = Voids(run)
    states = [(case, case_state(case, void=case in voids)) for case in run.cases]
    shown = states if len(states) <= FULL else [pair for pair in states if pair[1].name not in QUIET]
    lines = _render(_table(shown, width), width, color) if shown else []
    below = [*_remarks(run, voids, len(states) - len(shown)), *_totals(states)]
    return [*lines, *(part for line in below for part in wrap(line, max(40, width), subsequent_indent="    "))]


def _table(states: Sequence[tuple[CaseRecord, State]], width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    lines = [(case.audit, _cells(case, state)) for case, state in _by_audit(states)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = _columns(lines, width, models=len({case.model for case, _ in states}) > 1)
    for column, wide in zip(columns, _widths(columns, lines, width), strict=True):
        title = "" if column == "sign" else column
        justify: Literal["right", "left"] = "right" if column in ("value", "n") else "left"
        table.add_column(title, justify=justify, width=wide, no_wrap=True, overflow="ellipsis")
    audit: str | None = ""
    for name, cells in lines:
        if name != audit:
            audit = name
            table.add_row("", Text(visible(name or "other"), "bold"))
        table.add_row(*(cells[column] for column in columns))
    return table


def _widths(columns: Sequence[str], lines: Sequence[tuple[str | None, dict[str, Text]]], width: int) -> list[int]:
    """The width of each column: what its cells need, but cases and metrics share what the others leave."""
    needed = {column: max(len(column), *(cells[column].cell_len for _, cells in lines)) for column in columns}
    needed["sign"] = 1
    left = width - 2 * len(columns) - sum(needed[column] for column in columns if column not in FLEXIBLE)
    if "metric" in columns:
        needed["case"] = max(8, min(needed["case"], max(left * 3 // 5, left - needed["metric"])))
        needed["metric"] = max(8, min(needed["metric"], left - needed["case"]))
    needed["case"] = max(8, min(needed["case"], left))
    return [needed[column] for column in columns]


def _by_audit(states: Sequence[tuple[CaseRecord, State]]) -> list[tuple[CaseRecord, State]]:
    order = {audit: place for place, audit in enumerate(dict.fromkeys(case.audit for case, _ in states))}
    return sorted(states, key=lambda pair: order[pair[0].audit])


def _columns(lines: Sequence[tuple[str | None, dict[str, Text]]], width: int, *, models: bool) -> list[str]:
    columns = ["sign", "case", "model", "metric", "value", "interval", "n", "verdict"]
    left_out = set() if models else {"model"}
    # What a narrow terminal can spare, in this order.
    for column, needed in (("n", 100), ("metric", 90), ("interval", 70)):
        if width < needed:
            left_out.add(column)
    return [column for column in columns if column not in left_out]


def _cells(case: CaseRecord, state: State) -> dict[str, Text]:
    from rich.text import Text

    names = case.last.metrics
    headline = case.last.headline if case.last.headline in names else next(iter(names), None)
    estimate = names[headline] if headline else None
    return {
        "sign": Text(state.symbol, STYLES[state.name]),
        "case": Text(visible(case_label(case))),
        "model": Text(visible(case.model or ""), "dim"),
        "metric": Text(visible(metric_label(headline, case.audit))) if headline else Text(_reason(case), "dim"),
        "value": Text(value_text(estimate) if estimate else ""),
        "interval": Text(interval_text(estimate) if estimate else "", "dim"),
        "n": Text(str(estimate.n) if estimate and estimate.n is not None else "", "dim"),
        "verdict": Text(state.label, STYLES[state.name]),
    }


def _reason(case: CaseRecord) -> str:
    lines = visible(case.last.message).splitlines()
    return lines[0][:70] if lines else ""


def _render(table: Table, width: int, color: bool) -> list[str]:
    console = _console(width, color)
    console.print(table)
    out = console.file
    assert isinstance(out, io.StringIO)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def _console(width: int, color: bool) -> Console:
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=max(40, width),
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        _environ={},
    )


def _remarks(run: Run, voids: Voids, left_out: int) -> Iterable[str]:
    if left_out:
        yield f"and {left_out} cases that need no attention: they are in the report"
    for audit, reasons in voids.audits().items():
        yield f"VOID {audit}: a control failed or did not run, its numbers do not count"
        yield from (f"  {visible(reason)}" for reason in reasons)
    if run.missing:
        yield f"{len(run.missing)} planned cases never ended; --resume {run.run_id} finishes them"
    if run.damaged:
        first = run.damaged[0]
        where = f"{first.file}, line {first.line}: {first.reason}"
        yield f"{len(run.damaged)} damaged records skipped, the first in {where}"


def _totals(states: Sequence[tuple[CaseRecord, State]]) -> Iterable[str]:
    verdicts = Counter(verdict.word for case, _ in states for verdict in case.verdicts)
    if verdicts:
        words = ", ".join(f"{verdicts[word]} {word}" for word in ("missed", "undecided", "met") if verdicts[word])
        yield f"gates: {words}"
    counts = Counter(state.name for _, state in states)
    yield "cases: " + (", ".join(f"{counts[name]} {State(name).label}" for name in SEVERITY if counts[name]) or "none")
