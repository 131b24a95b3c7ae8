"""The run's answer: from the gates where there are any, else from what was found; and what stands in its way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lm_audit.report.conclusions.by_strength import counts_of, model_findings
from lm_audit.report.conclusions.voids import Voids
from lm_audit.report.page.columns import BUILT_IN_TOY, NO_MODEL, column_of, model_columns
from lm_audit.report.page.states import SEVERITY, State, Tone, case_state
from lm_audit.report.page.view import Answer, ModelFindings
from lm_audit.report.wording.names import case_label, visible
from lm_audit.report.wording.titles import metric_title
from lm_audit.runstore.records import CaseRecord, Run, Verdict

NAMED = 4
"""Missed gates that the answer names, and undecided ones; the rest is counted."""
MAY_IT_SHIP = "May this model ship?"
WHAT_WAS_FOUND = "What was found?"
TOY_ALONE = "No model was judged: only the built-in toy was measured."

HEADLINES: dict[str, str] = {
    "void": "Not on this evidence: an audit is void.",
    "unfinished": "Not on this evidence: the run is incomplete.",
    "failed": "Not on this evidence: some cases failed.",
    "undecided": "Undecided: the evidence is too thin.",
    "met": "Yes, as far as these gates go.",
    "reported": "Measured, not judged.",
    "absent": "Nothing was measured.",
}
STORY: dict[str, str] = {"crashed": "crashed", "error": "broke", "failed": "failed"}


def overall(run: Run) -> tuple[Answer, tuple[ModelFindings, ...]]:
    """The answer of a run and its findings, for whoever shows no page."""
    voids = Voids(run)
    findings = model_findings(run, voids, model_columns(run), column_of)
    states = [case_state(case, void=case in voids) for case in run.cases]
    return answer(run, findings, voids.summaries(), states), findings


def answer(
    run: Run,
    findings: Sequence[ModelFindings],
    voids: Mapping[str, tuple[str, str]],
    states: Sequence[State],
) -> Answer:
    """The answer, with a reason for each thing that stands in the way; a built-in toy has no part in it."""
    gated = [(case, state) for case, state in zip(run.cases, states, strict=True) if case.verdicts and not case.toy]
    # What a gate says of a void number is no verdict, in either direction.
    judged = [(case, verdict) for case, state in gated if state.name != "void" for verdict in case.verdicts]
    toys = any(case.toy and case.verdicts for case in run.cases)
    words: Counter[str] = Counter(verdict.word for _, verdict in judged)
    broken = [state for state in states if state.name in ("crashed", "error", "unfinished", "failed")]
    state = _state(run, words, broken, voids)
    real = [entry for entry in findings if entry.model != BUILT_IN_TOY]
    if gated or toys:
        headline, tone = _by_gates(state, words, toys=not gated)
        reasons = [*_gates(judged), *_toy_gates(run), *_findings(real), *_obstacles(run, broken, voids)]
        if state.name == "met":
            reasons.insert(0, f"{_plural(words['met'], 'gate')} met on {_names(_judged_models(judged))}.")
        return Answer(state, headline, tuple(reasons), MAY_IT_SHIP, tone)
    told = counts_of(real)
    if sum(told.values()):
        beside_toy = any(entry.found for entry in findings if entry.model == BUILT_IN_TOY)
        whole = state.name not in ("void", "unfinished", "failed")
        headline, tone = _by_findings(real, told, whole=whole, named=beside_toy)
        reasons = [
            _count_line(told),
            *_beside(real),
            *_advice(told),
            *_obstacles(run, broken, voids),
            "No gate was set, so nothing is judged.",
        ]
        return Answer(state, headline, tuple(reasons), WHAT_WAS_FOUND, tone)
    reasons = list(_obstacles(run, broken, voids))
    if state.name == "reported":
        explored = any(entry.found or entry.unknown or entry.absent for entry in real)
        reasons.append(
            "No gate was set, and the findings are exploratory alone."
            if explored
            else "No gate was set, and the findings are of the built-in toy, which says nothing about a model of yours."
            if findings
            else "No gate was set and no audit stated a finding: the numbers below are all there is."
        )
    return Answer(state, HEADLINES[state.name], tuple(reasons), WHAT_WAS_FOUND, _tone(state))


def _by_gates(state: State, words: Counter[str], *, toys: bool) -> tuple[str, Tone]:
    if toys:
        return TOY_ALONE, "undecided"
    if state.name == "missed":
        many = sum(words.values())
        return f"No: {words['missed']} of {_plural(many, 'gate')} missed.", "missed"
    return HEADLINES[state.name], _tone(state)


def _by_findings(
    findings: Sequence[ModelFindings], told: Mapping[str, int], *, whole: bool, named: bool
) -> tuple[str, Tone]:
    """``named``: the models are named although nothing was found in them, since something was in the toy."""
    many = [(entry.model, sum(not one.exploratory for one in entry.found)) for entry in findings]
    some = [(model, number) for model, number in many if number]
    if some:
        parts = [f"{_plural(number, 'effect')} found in {model}" for model, number in some]
        if len(some) > 1:
            parts = [f"{number} in {model}" for model, number in some]
            parts[0] = f"Found: {parts[0]}"
        return ", ".join(parts) + ".", "missed"
    beside = sum(len(entry.found) for entry in findings)
    where = f" in {_names([model for model, _ in many])}" if named else ""
    nothing = f"Nothing found{where} but {_plural(beside, 'exploratory effect')}" if beside else f"Nothing found{where}"
    if not whole:  # What was not measured, or is void, is not excluded either.
        return f"{nothing}; not everything was measured.", "undecided"
    if told["cannot tell"]:
        if not beside and not told["not found"]:
            return (
                f"Nothing could be told{f' of {_names([model for model, _ in many])}' if named else ''}.",
                "undecided",
            )
        return f"{nothing}; not everything could be told.", "undecided"
    if beside:
        return f"{nothing}; all main questions are answered with no.", "undecided"
    if _open_beside(findings):
        return f"{nothing}; all main questions are answered with no.", "met"
    return f"{nothing}, and all that was looked for is excluded.", "met"


def _open_beside(findings: Sequence[ModelFindings]) -> int:
    """How many exploratory questions cannot be told."""
    return sum(one.exploratory for entry in findings for one in entry.unknown)


def _tone(state: State) -> Tone:
    known: dict[str, Tone] = {
        "missed": "missed", "undecided": "undecided", "met": "met", "failed": "failed", "unfinished": "unfinished",
    }  # fmt: skip
    return known.get(state.name, "reported")


def _state(run: Run, words: Counter[str], broken: Sequence[State], voids: Mapping[str, tuple[str, str]]) -> State:
    if words["missed"]:
        return State("missed")
    if voids:
        return State("void")
    if run.missing or run.absent_parts or any(state.name in ("crashed", "unfinished") for state in broken):
        return State("unfinished")
    if broken:
        return State("failed")
    if words["undecided"]:
        return State("undecided")
    if words["met"]:
        return State("met")
    return State("reported" if any(case.last.metrics for case in run.cases) else "absent")


def _gates(judged: Sequence[tuple[CaseRecord, Verdict]]) -> Iterable[str]:
    for word in ("missed", "undecided"):
        own = [(case, verdict) for case, verdict in judged if verdict.word == word]
        yield from (f"{word.capitalize()}: {gate_line(case, verdict)}." for case, verdict in own[:NAMED])
        if len(own) > NAMED:
            yield f"{_plural(len(own) - NAMED, 'more gate')} {word}."


def _toy_gates(run: Run) -> Iterable[str]:
    """What gates on the built-in toy came to, which is no part of the answer."""
    words = Counter(verdict.word for case in run.cases if case.toy for verdict in case.verdicts)
    told = [f"{words[word]} {word}" for word in ("missed", "undecided", "met") if words[word]]
    if told:
        yield f"Gates on the built-in toy, which decide nothing about a model of yours: {', '.join(told)}."


def gate_line(case: CaseRecord, verdict: Verdict) -> str:
    """``order effect (memorisation › general_en, mine): 0.088 [0.062, 0.157] is beyond the limit (<= 0.02)``."""
    return ": ".join(gate_parts(case, verdict))


def gate_parts(case: CaseRecord, verdict: Verdict) -> tuple[str, str]:
    """What a gate is about, and how it came out."""
    where = ", ".join(part for part in (case_label(case), case.model) if part)
    about = f"{metric_title(verdict.metric, case.audit)} ({where})"
    if case.toy:
        about = f"BUILT-IN TOY, decides nothing: {about}"
    return visible(" ".join(about.split())), visible(" ".join(f"{verdict.reason} ({verdict.limit})".split()))


def _findings(findings: Sequence[ModelFindings]) -> Iterable[str]:
    told = counts_of(findings)
    if sum(told.values()):
        yield _count_line(told)
        yield from _beside(findings)
        yield from _advice(told)


def _advice(told: Mapping[str, int]) -> Iterable[str]:
    """What can be done about open questions."""
    if told["cannot tell"]:
        yield "How many items would tell stands beside each; --size and --limit set how many are measured."


def _beside(findings: Sequence[ModelFindings]) -> Iterable[str]:
    """What the main questions do not count."""
    if many := _open_beside(findings):
        yield f"{_plural(many, 'exploratory question')} beside them cannot be told."


def _count_line(told: Mapping[str, int]) -> str:
    total = sum(told.values())
    parts = [f"{told['found']} found"] if told["found"] else []
    parts += [f"{told['cannot tell']} cannot be told at this size"] if told["cannot tell"] else []
    parts += [f"{told['not found']} excluded"] if told["not found"] else []
    return f"Of {_plural(total, 'main question')}: {', '.join(parts)}."


def _obstacles(run: Run, broken: Sequence[State], voids: Mapping[str, tuple[str, str]]) -> Iterable[str]:
    if voids:
        where = {audit: f" on {models}" if models else "" for audit, (models, _) in voids.items()}
        named = _names([visible(f"{audit}{on}") for audit, on in where.items()])
        yield f"Void, so that its numbers do not count: {named}."
    by_state = Counter(state.name for state in broken)
    for name in SEVERITY:
        if by_state[name]:
            yield f"{_plural(by_state[name], 'case')} {'did not finish' if name == 'unfinished' else STORY[name]}."
    if run.missing:
        yield f"{_plural(len(run.missing), 'planned case')} never ended."
    if run.absent_parts:
        yield f"Not the whole run: {run.absent_parts}."
    if run.damaged:
        yield f"{_plural(len(run.damaged), 'damaged record')} or file{'' if len(run.damaged) == 1 else 's'}."


def _judged_models(judged: Sequence[tuple[CaseRecord, Verdict]]) -> list[str]:
    return [visible(model) for model in dict.fromkeys(case.model or NO_MODEL for case, _ in judged)]


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _names(known: Sequence[str]) -> str:
    return known[0] if len(known) == 1 else f"{', '.join(known[:-1])} and {known[-1]}" if known else NO_MODEL
