"""The state in which a case or an audit is shown: one word, one order of severity. The gates give the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from lm_audit.runstore.records import CaseRecord, Verdict, VerdictWord
from lm_audit.runstore.soundness.beside import CUT_SHORT

StateName = Literal[
    "void", "crashed", "error", "unfinished", "missed", "failed", "undecided", "met", "reported", "skipped", "absent"
]

Tone = Literal["missed", "undecided", "met", "failed", "unfinished", "void", "reported"]
"""The colour of an answer or a finding, by the name of a state that bears it."""

SEVERITY: tuple[StateName, ...] = (
    "void",
    "crashed",
    "error",
    "unfinished",
    "missed",
    "failed",
    "undecided",
    "met",
    "reported",
    "skipped",
    "absent",
)
"""From what needs attention first to what needs none."""

LABELS: dict[StateName, str] = {
    "void": "void",
    "crashed": "crashed",
    "error": "error",
    "unfinished": "unfinished",
    "missed": "missed",
    "failed": "failed",
    "undecided": "undecided",
    "met": "met",
    "reported": "no gate",
    "skipped": "skipped",
    "absent": "not run",
}

MEANING: dict[StateName, str] = {
    "void": "A control of this audit failed or did not run: its numbers do not count.",
    "crashed": "The process that ran it died.",
    "error": "It broke: an error in its code, its data or its model, or a full disk, a server or its time ended it.",
    "unfinished": "It started and never ended.",
    "missed": "The whole interval is beyond the gate's limit.",
    "failed": "The test failed.",
    "undecided": "The interval straddles the gate's limit, or there is none, or too few items for it.",
    "met": "The whole interval is within the gate's limit.",
    "reported": "Measured; no gate was set for it.",
    "skipped": "Not run; the reason is given.",
    "absent": "Not part of this run.",
}

SYMBOLS: dict[StateName, str] = {
    "void": "\u2298",
    "crashed": "\u2021",
    "error": "!",
    "unfinished": "\u2026",
    "missed": "\u2717",
    "failed": "\u2717",
    "undecided": "?",
    "met": "\u2713",
    "reported": "\u00b7",
    "skipped": "\u2013",
    "absent": "",
}
"""A sign for each state, so that nothing hangs on colour alone."""


@dataclass(frozen=True)
class State:
    """A state with all that is needed to show it."""

    name: StateName

    @property
    def label(self) -> str:
        """The word that is shown."""
        return LABELS[self.name]

    @property
    def symbol(self) -> str:
        """One character that tells the state without colour."""
        return SYMBOLS[self.name]

    @property
    def meaning(self) -> str:
        """One sentence that explains the word."""
        return MEANING[self.name]


def case_state(case: CaseRecord, *, void: bool = False) -> State:
    """The state of one case: what broke it, else its worst verdict; ``void`` says that its audit's control failed."""
    if case.outcome in ("crashed", "error", "unfinished", "skipped"):
        return State(case.outcome)
    if case.last.control is not None and not case.last.control.passed:
        return State("failed")
    if case.outcome == "failed" and case.last.cause in ("exception", *CUT_SHORT):
        return State("error")
    if void:
        return State("void")
    words = {verdict.word for verdict in case.verdicts}
    if "missed" in words:
        return State("missed")
    if case.outcome == "failed" and "undecided" not in words:
        return State("failed")
    if "undecided" in words:
        return State("undecided")
    return State("met") if words else State("reported")


def gate_counts(states: Iterable[tuple[CaseRecord, State]]) -> str:
    """``1 missed, 2 met, 1 void``: how the gates of these cases came out; what one says of a void number is void."""
    words = Counter(
        "void" if state.name == "void" else verdict.word for case, state in states for verdict in case.verdicts
    )
    return ", ".join(f"{words[word]} {word}" for word in ("missed", "undecided", "met", "void") if words[word])


def worst_word(verdicts: Iterable[Verdict]) -> VerdictWord | None:
    """The word that needs attention first; ``None`` without a verdict."""
    words = {verdict.word for verdict in verdicts}
    order: tuple[VerdictWord, ...] = ("missed", "undecided", "met")
    return next((word for word in order if word in words), None)


def worst(states: Iterable[State]) -> State:
    """The state that needs attention first; skipped cases hide nothing; ``absent`` when there is none."""
    names = {state.name for state in states}
    return State(next((name for name in SEVERITY if name in names), "absent"))
