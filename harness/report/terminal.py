"""The table after pytest's own lines: per case the headline metric, its interval and the verdict."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from harness.report.names import case_label, metric_label, visible
from harness.report.numbers import interval_text, value_text
from harness.report.states import SEVERITY, State, case_state
from harness.report.voids import void_reasons
from harness.runstore.records import CaseRecord, Run

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FULL = 40
"""Cases up to which every case has a line; beyond it only those that need attention have one."""
QUIET = {"met", "reported", "skipped"}
STYLES = {
    "met": "blue", "missed": "bold red", "failed": "bold red", "undecided": "yellow", "void": "bold strike",
    "crashed": "bold magenta", "error": "bold magenta", "unfinished": "magenta", "reported": "dim", "skipped": "dim",
}  # fmt: skip


def summary_lines(run: Run, *, width: int = 100, color: bool = False) -> list[str]:
    """The summary of ``run`` as lines of at most ``width`` columns, with ANSI colours where ``color``."""
    voids = void_reasons(run)
    states = [(case, case_state(case, void=bool(voids.get(case.audit or "")))) for case in run.cases]
    shown = states if len(states) <= FULL else [pair for pair in states if pair[1].name not in QUIET]
    lines = _render(_table(shown, width), width, color) if shown else []
    lines += _remarks(run, voids, len(states) - len(shown))
    return [*lines, *_totals(states)]


def _table(states: Sequence[tuple[CaseRecord, State]], width: int) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    narrow = width < 90
    table.add_column("", width=1)
    table.add_column("case", overflow="ellipsis", no_wrap=True, ratio=3)
    models = len({case.model for case, _ in states}) > 1
    if models:
        table.add_column("model", overflow="ellipsis", no_wrap=True)
    table.add_column("metric", overflow="ellipsis", no_wrap=True, ratio=2)
    table.add_column("value", justify="right", no_wrap=True)
    if not narrow:
        table.add_column("interval", no_wrap=True)
        table.add_column("n", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    audit: str | None = None
    for case, state in states:
        if case.audit != audit:
            audit = case.audit
            table.add_row("", _bold(audit or "other"))
        table.add_row(*_cells(case, state, models=models, narrow=narrow))
    return table


def _cells(case: CaseRecord, state: State, *, models: bool, narrow: bool) -> list[object]:
    from rich.text import Text

    names = case.last.metrics
    headline = case.last.headline if case.last.headline in names else next(iter(names), None)
    estimate = names[headline] if headline else None
    cells: list[object] = [Text(state.symbol, STYLES[state.name]), Text(visible(case_label(case)))]
    if models:
        cells.append(Text(visible(case.model or "")))
    cells.append(
        Text(visible(metric_label(headline, case.audit)) if headline else _reason(case), "" if headline else "dim")
    )
    cells.append(Text(value_text(estimate) if estimate else ""))
    if not narrow:
        cells.append(Text(interval_text(estimate) if estimate else "", "dim"))
        cells.append(Text(str(estimate.n) if estimate and estimate.n is not None else "", "dim"))
    return [*cells, Text(state.label, STYLES[state.name])]


def _reason(case: CaseRecord) -> str:
    lines = visible(case.last.message).splitlines()
    return lines[0] if lines else ""


def _bold(text: str) -> object:
    from rich.text import Text

    return Text(visible(text), "bold")


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


def _remarks(run: Run, voids: dict[str, tuple[str, ...]], left_out: int) -> Iterable[str]:
    if left_out:
        yield f"and {left_out} cases that need no attention: they are in the report"
    for audit, reasons in voids.items():
        yield f"VOID {audit or 'other'}: a control failed, its numbers do not count"
        yield from (f"  {visible(reason)}" for reason in reasons)
    if run.missing:
        yield f"{len(run.missing)} planned cases never ended; --resume {run.run_id} finishes them"
    if run.damaged:
        first = run.damaged[0]
        yield f"{len(run.damaged)} damaged records skipped, the first in {first.file}, line {first.line}: {first.reason}"


def _totals(states: Sequence[tuple[CaseRecord, State]]) -> Iterable[str]:
    verdicts = Counter(verdict.word for case, _ in states for verdict in case.verdicts)
    if verdicts:
        words = ", ".join(f"{verdicts[word]} {word}" for word in ("missed", "undecided", "met") if verdicts[word])
        yield f"gates: {words}"
    counts = Counter(state.name for _, state in states)
    yield "cases: " + (", ".join(f"{counts[name]} {State(name).label}" for name in SEVERITY if counts[name]) or "none")
