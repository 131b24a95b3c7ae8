"""The matrix of audits and models: what each cell says, and what follows for the run as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lm_audit.report.numbers import value_text
from lm_audit.report.oriented import turn
from lm_audit.report.states import SEVERITY, State, worst
from lm_audit.report.view import Answer, CaseView, CellView, LeadView, MetricView, ModelView
from lm_audit.runstore.records import Run
from lm_audit.stats.estimate import Estimate

LEADS = 3
"""Headline metrics that a cell shows; the rest is one click away."""


def cell(
    audit: str, model: str, cases: Sequence[CaseView], anchor: str, *, void: bool, elsewhere: Sequence[CaseView] = ()
) -> CellView:
    """One audit on one model, from its cases on that model and the audit's controls ``elsewhere`` that hold for it."""
    measured = [case for case in cases if case.record.last.control is None]
    controls = [case.record.last.control for case in (*cases, *elsewhere) if case.record.last.control is not None]
    held = sum(control.passed for control in controls)
    leads = _leads(measured)
    state = State("void") if void and cases else worst(case.state for case in cases)
    return CellView(
        audit=audit,
        model=model,
        state=state,
        leads=tuple(leads[:LEADS]),
        more=max(0, len(leads) - LEADS),
        controls=f"{held} of {len(controls)} controls held" if controls else "no control ran",
        controls_held=held == len(controls) if controls else None,
        cases=case_counts(cases),
        gates=_gates(cases),
        anchor=anchor,
    )


def _leads(cases: Iterable[CaseView]) -> list[LeadView]:
    groups: dict[str, list[tuple[CaseView, MetricView]]] = {}
    for case in cases:
        for metric in case.metrics:
            if metric.headline and metric.estimate.value is not None:
                groups.setdefault(metric.name, []).append((case, metric))
    return [_lead(group) for group in groups.values()]


def _lead(group: list[tuple[CaseView, MetricView]]) -> LeadView:
    directed = turn(group[0][1].estimate).sign != 0
    case, metric = max(group, key=lambda pair: badness(pair[1].estimate)) if directed else group[0]
    reading = "" if len(group) == 1 else f"worst of {len(group)} cases: {case.label}" if directed else _span(group)
    return LeadView(metric.label, reading, metric, case.anchor)


def _span(group: list[tuple[CaseView, MetricView]]) -> str:
    ranked = sorted((metric.estimate for _, metric in group), key=lambda e: e.value or 0.0)
    return f"first of {len(group)} cases, which span {value_text(ranked[0])} to {value_text(ranked[-1])}"


def badness(estimate: Estimate) -> float:
    """A number that grows as the value moves away from what is better; 0 without a direction."""
    return turn(estimate).apply(estimate.value or 0.0)


def case_counts(cases: Iterable[CaseView]) -> str:
    """``12 cases: 10 passed, 1 failed, 1 skipped``."""
    counts = Counter(case.record.outcome for case in cases)
    total = sum(counts.values())
    parts = ", ".join(f"{counts[word]} {word}" for word in sorted(counts, key=lambda w: (w != "passed", w)))
    if len(counts) == 1:
        return f"{total} {next(iter(counts))}"
    return f"{total} cases: {parts}" if total else "no cases"


def _gates(cases: Iterable[CaseView]) -> str:
    words = Counter(verdict.word for case in cases for verdict in case.record.verdicts)
    return ", ".join(f"{words[word]} {word}" for word in ("missed", "undecided", "met") if words[word])


def model_state(cells: Sequence[CellView]) -> State:
    """The state of a model over all its audits."""
    return worst(cell.state for cell in cells)


def answer(run: Run, models: Sequence[ModelView], cells: Sequence[CellView], cases: Sequence[CaseView]) -> Answer:
    """The run's answer, from its worst state, with a reason for each thing that stands in the way."""
    words: Counter[str] = Counter(verdict.word for case in run.cases for verdict in case.verdicts)
    broken = [case for case in cases if case.state.name in ("crashed", "error", "unfinished", "failed")]
    voids = sorted({cell.audit for cell in cells if cell.state.name == "void"})
    reasons = list(_obstacles(run, words, broken, voids))
    state = _state(run, words, broken, voids)
    if not words and state.name == "reported":
        reasons.append("No gate was set, so the numbers below are reported and nothing is concluded.")
    elif state.name == "met":
        reasons.append(f"{_plural(words['met'], 'gate')} met on {_names(model.name for model in models)}.")
    return Answer(state, HEADLINES[state.name], tuple(reasons))


HEADLINES: dict[str, str] = {
    "missed": "No: a gate was missed.",
    "void": "Not on this evidence: an audit is void.",
    "unfinished": "Not on this evidence: the run is incomplete.",
    "failed": "Not on this evidence: some cases failed.",
    "undecided": "Undecided: the evidence is too thin.",
    "met": "Yes, as far as these gates go.",
    "reported": "Measured, not judged.",
    "absent": "Nothing was measured.",
}


def _state(run: Run, words: Counter[str], broken: Sequence[CaseView], voids: Sequence[str]) -> State:
    if words["missed"]:
        return State("missed")
    if voids:
        return State("void")
    if run.missing or any(case.state.name in ("crashed", "unfinished") for case in broken):
        return State("unfinished")
    if broken:
        return State("failed")
    if words["undecided"]:
        return State("undecided")
    if words["met"]:
        return State("met")
    return State("reported" if any(case.last.metrics for case in run.cases) else "absent")


def _obstacles(run: Run, words: Counter[str], broken: Sequence[CaseView], voids: Sequence[str]) -> Iterable[str]:
    if words["missed"]:
        yield f"{_plural(words['missed'], 'gate')} missed of {sum(words.values())}."
    for audit in voids:
        yield f"The {audit} audit is void: a control failed or did not run, so its numbers do not count."
    by_state = Counter(case.state.name for case in broken)
    for name in SEVERITY:
        if by_state[name]:
            yield f"{_plural(by_state[name], 'case')} {'did not finish' if name == 'unfinished' else STORY[name]}."
    if run.missing:
        yield f"{_plural(len(run.missing), 'planned case')} never ended."
    if words["undecided"]:
        yield f"{_plural(words['undecided'], 'gate')} undecided."
    if run.damaged:
        yield f"{_plural(len(run.damaged), 'damaged record')} skipped."


STORY: dict[str, str] = {"crashed": "crashed", "error": "broke before measuring", "failed": "failed"}


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _names(names: Iterable[str]) -> str:
    known = list(names)
    return known[0] if len(known) == 1 else f"{', '.join(known[:-1])} and {known[-1]}" if known else "no model"
