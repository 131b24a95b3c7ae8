"""Gates: limits on metrics, and the one definition of *met*, *missed* and *undecided*."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from lm_audit.runstore.records import Verdict, VerdictWord
from lm_audit.stats.covering import independent_units, shortcoming, too_few, unit_count
from lm_audit.stats.digits import apart, written_apart
from lm_audit.stats.estimate import Estimate


@dataclass(frozen=True)
class Gate:
    """A limit on one metric: the interval must lie within ``[low, high]`` (infinite where there is no bound)."""

    metric: str
    low: float = -math.inf
    high: float = math.inf
    limit: str = ""
    n_min: int | None = None
    models: tuple[str, ...] | None = None
    cases: str | None = None

    @property
    def named(self) -> tuple[float, ...]:
        """The values that the limit names: a bound, or the target in the middle of two."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return ((self.low + self.high) / 2,)
        return tuple(bound for bound in (self.low, self.high) if math.isfinite(bound))

    def applies(self, case_id: str, model: str | None) -> bool:
        """Whether the gate holds for a case, by its model and its id.

        A bracket of ``cases`` may stand for itself, so that an id can be copied from where it is shown.
        """
        if self.models is not None and model not in self.models:
            return False
        if self.cases is None:
            return True
        inner = case_id.partition("[")[2].removesuffix("]")
        globs = (self.cases, self.cases.replace("[", "[[]"))
        return any(fnmatchcase(text, glob) for text in (case_id, inner) for glob in globs)


def judge(gate: Gate, estimate: Estimate) -> Verdict:
    """How ``estimate`` stands to ``gate``.

    *met* if the whole interval lies within the limit, *missed* if it lies wholly beyond, else *undecided*. Undecided
    too where the interval does not cover (:func:`lm_audit.stats.covering.shortcoming`: no value, no interval, no width,
    too few independent units) or fewer independent units than ``n_min`` stand behind it; the reason then says on which
    side the interval lies.
    """
    word, reason = _decide(gate, estimate)
    return Verdict(gate.metric, word, gate.limit, reason)


def _decide(gate: Gate, estimate: Estimate) -> tuple[VerdictWord, str]:
    obstacle = shortcoming(estimate)
    if estimate.value is None:
        return "undecided", str(obstacle)
    units = independent_units(estimate)
    if gate.n_min is not None and not too_few(estimate) and (units is None or units < gate.n_min):
        obstacle = obstacle or f"{unit_count(estimate)} of {gate.n_min}"
    word, side = _side(gate, *interval(estimate))
    where = f"{_written(gate, estimate)} {side}"
    if obstacle:
        return "undecided", f"{where}, but {obstacle}"
    return word, where


def _side(gate: Gate, low: float, high: float) -> tuple[VerdictWord, str]:
    # An end that rounding alone parts from a limit is written as the limit, and lies on it: 0.1 + 0.2 is within 0.3.
    if not (_below(low, gate.low) or _below(gate.high, high)):
        return "met", "is within the limit"
    if _below(high, gate.low) or _below(gate.high, low):
        return "missed", "is beyond the limit"
    return "undecided", "straddles the limit"


def _below(one: float, other: float) -> bool:
    return one < other and apart(one, other)


def worst(verdicts: Iterable[Verdict]) -> VerdictWord | None:
    """*missed* before *undecided* before *met*, None without verdicts."""
    found = {verdict.word for verdict in verdicts}
    order: tuple[VerdictWord, ...] = ("missed", "undecided", "met")
    return next((word for word in order if word in found), None)


def interval(estimate: Estimate) -> tuple[float, float]:
    """The interval that a gate is held against: a bound that was not estimated is infinite, a lone value a point.

    A point decides nothing, it only tells on which side it lies.
    """
    assert estimate.value is not None
    if estimate.low is None and estimate.high is None:
        return estimate.value, estimate.value
    return (-math.inf if estimate.low is None else estimate.low, math.inf if estimate.high is None else estimate.high)


def _written(gate: Gate, estimate: Estimate) -> str:
    """Value and interval with the digits that the interval allows; no end is rounded onto a limit that it is not."""
    texts = written_apart(estimate, [limit for limit in (gate.low, gate.high) if math.isfinite(limit)])
    return " ".join(text for text in texts if text)


def judge_case(
    gates: Iterable[Gate],
    metrics: Mapping[str, Estimate],
    case_id: str,
    model: str | None,
    *,
    control: bool = False,
    toy: bool = False,
) -> list[Verdict]:
    """The verdicts of one case: every gate that applies to it and whose metric it recorded.

    A control is never judged: what it measures was planted. ``toy`` says that the case ran on a built-in toy model.
    """
    if control:
        return []
    verdicts = [
        judge(gate, metrics[gate.metric]) for gate in gates if gate.metric in metrics and gate.applies(case_id, model)
    ]
    return [replace(verdict, reason=f"{verdict.reason}; {ON_TOY}") for verdict in verdicts] if toy else verdicts


ON_TOY = "MEASURED ON THE BUILT-IN TOY, which says nothing about a model of yours"
