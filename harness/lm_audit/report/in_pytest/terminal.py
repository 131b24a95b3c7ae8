"""What the terminal says after pytest's own lines: what the page says first, in at most 25 lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from lm_audit.report.conclusions.answer import gate_parts, overall
from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.in_pytest.terminal_layout import MOST, Entry, Layout, fitted, render, section, total
from lm_audit.report.page.columns import BUILT_IN_TOY
from lm_audit.report.page.states import SEVERITY, State, case_state, gate_counts
from lm_audit.report.page.view import FindingView, ModelFindings
from lm_audit.report.wording.names import anchor, case_label, tail, visible
from lm_audit.report.wording.numbers import few_text, interval_text, is_p_value, sample_size, value_text
from lm_audit.report.wording.titles import metric_title
from lm_audit.runstore.records import CaseRecord, Run, VerdictWord
from lm_audit.runstore.soundness.beside import told_damage

if TYPE_CHECKING:
    pass
BROKEN = ("crashed", "error", "unfinished", "failed")


def summary_lines(run: Run, *, width: int = 100, color: bool = False) -> list[str]:
    """The summary of ``run``: at most 25 lines of at most ``width`` columns, with ANSI colours where ``color``."""
    voids = Voids(run)
    states = [(case, case_state(case, void=case in voids)) for case in run.cases]
    answer, findings = overall(run)
    # What was found in the built-in toy is told apart, unless nothing else was asked.
    real = [entry for entry in findings if entry.model != BUILT_IN_TOY] or findings
    toy = [entry for entry in findings if entry not in real]
    sections = [
        section([Entry("", "", answer.headline, style="answer")], "", 1),
        section(_gates(states, "missed"), "more gates missed", 6),
        section(_found(real), "more found", 6),
        section(_gates(states, "undecided"), "more gates undecided", 4),
        section(_unknown(real), "", 1),
        section(_found_in_toy(toy), "", 1),
        section(_void(voids), "more audits void", 6),
        section(_broken(states), "more that broke", 4),
        section(_skipped(states), "more reasons to skip", 2),
        section([Entry("", "", line) for line in (*_gaps(run), *_totals(states, real, toy))], "", 9),
    ]
    wide = max(40, width)
    # Where there is room nothing is cut; where there is none, a text gets fewer lines before another goes unsaid.
    layouts = [Layout(wide, *lines) for lines in ((4, 4), (3, 3), (2, 2), (2, 1), (1, 1))]
    layout = next((one for one in layouts if total(sections, one) <= MOST), layouts[-1])
    room = MOST - total(sections, layout)
    told = {one.anchor for entry in real for one in entry.found}
    numbers = section(
        _numbers(states, told), "more cases with numbers: they are in the report", max(0, min(12, room - 1))
    )
    if room > 1:
        sections.insert(len(sections) - 1, numbers)
    return render(fitted(sections, layout), layout, color)


def _gates(states: Sequence[tuple[CaseRecord, State]], word: VerdictWord) -> Iterable[Entry]:
    for case, state in states:
        for verdict in case.verdicts:
            if verdict.word == word and state.name != "void":
                about, how = gate_parts(case, verdict)
                yield Entry(State(word).symbol, word, about, how, word)


def _found(findings: Sequence[ModelFindings]) -> Iterable[Entry]:
    many = len(findings) > 1
    for entry in findings:
        for one in entry.found:
            yield Entry(
                "!", "found", f"{entry.model}: {one.statement}" if many else one.statement, _facts(one), "found"
            )


def _found_in_toy(toy: Sequence[ModelFindings]) -> Iterable[Entry]:
    for entry in toy:
        if entry.found:
            text = f"{len(entry.found)} found in the {entry.model}, no part of the answer: {entry.found[0].statement}"
            yield Entry("\u00b7", "toy", text, style="skipped")


def _facts(one: FindingView) -> str:
    value = " ".join(part for part in (one.value, one.unit, one.interval) if part)
    word = "exploratory" if one.exploratory else ""
    return "; ".join(part for part in (value, one.sure, one.size, word, f"{one.audit}: {one.case}") if part)


def _unknown(findings: Sequence[ModelFindings]) -> Iterable[Entry]:
    unknown = [one for entry in findings for one in entry.unknown]
    if unknown:
        first = unknown[0]
        hint = f", such as: {first.statement}" + (f" ({first.needed})" if first.needed else "")
        yield Entry("?", "open", f"{len(unknown)} cannot be told{hint}", style="cannot tell")


def _void(voids: Voids) -> Iterable[Entry]:
    for audit, (models, reason) in voids.summaries().items():
        where = f"{audit} on {models}" if models else audit
        yield Entry(State("void").symbol, "void", visible(f"{where}: {reason}"), style="void")


def _broken(states: Sequence[tuple[CaseRecord, State]]) -> Iterable[Entry]:
    groups: dict[tuple[State, str | None, str], list[CaseRecord]] = {}
    for case, state in states:
        if state.name in BROKEN and case.last.cause not in ("gate", "control"):
            groups.setdefault((state, case.audit, _reason(case)), []).append(case)
    for (state, audit, reason), cases in sorted(groups.items(), key=lambda group: SEVERITY.index(group[0][0].name)):
        where = tail(cases[0].case_id) if len(cases) == 1 else f"{audit or 'other'}, {len(cases)} cases"
        yield Entry(state.symbol, state.name, visible(f"{where}: {reason}" if reason else where), style=state.name)


def _skipped(states: Sequence[tuple[CaseRecord, State]]) -> Iterable[Entry]:
    groups: dict[str, int] = Counter(_reason(case) for case, state in states if state.name == "skipped")
    for reason, many in groups.items():
        yield Entry(
            State("skipped").symbol, "skipped", f"{many} case{'' if many == 1 else 's'}: {reason}", style="skipped"
        )


def _numbers(states: Sequence[tuple[CaseRecord, State]], told: Collection[str]) -> Iterable[Entry]:
    """Headline numbers of cases of which nothing was found (``told``: the anchors of the others); those whose intervals
    cover come first, and of these whole ones before their parts, whose findings are exploratory.
    """
    rows = []
    for case, state in states:
        metrics = case.last.metrics
        name = case.last.headline if case.last.headline in metrics else next(iter(metrics), None)
        silent = anchor("case", case.case_id) not in told
        if name is None or case.is_control or state.name not in ("reported", "met") or not (silent or case.verdicts):
            continue
        estimate = metrics[name]
        if estimate.value is None or is_p_value(estimate):
            continue
        model = f"{case.model}, " if case.model else ""
        parts = (value_text(estimate), estimate.unit or "", interval_text(estimate))
        number = " ".join(part for part in parts if part)
        # The line may be cut: what tells rows apart comes first.
        text = f"{model}{case_label(case)}: {number}, n {sample_size(estimate)}: {metric_title(name, case.audit)}"
        thin = bool(few_text(estimate)) or not interval_text(estimate)
        claims = [one for one in case.last.findings if one.kind == "claim"]
        part = bool(claims) and not any(one.headline for one in claims)
        rows.append(((case.toy, thin, part), Entry(state.symbol, "", visible(text))))
    return [entry for _, entry in sorted(rows, key=lambda row: row[0])]


def _reason(case: CaseRecord) -> str:
    lines = visible(case.last.message).splitlines()
    return lines[0][:200] if lines else ""


def _gaps(run: Run) -> Iterable[str]:
    if run.missing:
        many = f"{len(run.missing)} planned case{'' if len(run.missing) == 1 else 's'}"
        yield f"{many} never ended; --resume {run.run_id} finishes them"
    if run.absent_parts:
        yield f"not the whole run: {run.absent_parts}"
    if run.damaged:
        yield visible(told_damage(run.damaged))


def _totals(
    states: Sequence[tuple[CaseRecord, State]], findings: Sequence[ModelFindings], toy: Sequence[ModelFindings]
) -> Iterable[str]:
    for name, entries in (("findings", findings), (f"findings of the {BUILT_IN_TOY}", toy)):
        if told := _counts(entries):
            yield f"{name}: {told}"
    if gates := gate_counts(states):
        yield f"gates: {gates}"
    counts = Counter(state.name for _, state in states)
    yield "cases: " + (", ".join(f"{counts[name]} {State(name).label}" for name in SEVERITY if counts[name]) or "none")


def _counts(findings: Sequence[ModelFindings]) -> str:
    """``2 found, 20 cannot be told (3 of them exploratory)``; empty without any."""
    numbers = {
        "found": sum(len(entry.found) for entry in findings),
        "cannot be told": sum(len(entry.unknown) for entry in findings),
        "excluded": sum(len(entry.absent) for entry in findings),
        "void": sum(entry.void for entry in findings),
    }
    beside = sum(entry.exploratory for entry in findings)
    told = ", ".join(f"{number} {word}" for word, number in numbers.items() if number)
    return f"{told} ({beside} of them exploratory)" if told and beside else told
