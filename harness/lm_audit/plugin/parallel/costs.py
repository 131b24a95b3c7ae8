"""What a case and a model load cost in seconds: recorded in earlier runs, learnt in this one, else guessed.

Knows nothing of pytest or xdist: the affinity queue asks it, whatever the transport.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

DEFAULT_CASE_S = 1.0
"""Seconds taken for a case of cost 1 of which nothing is known."""

DEFAULT_LOAD_S = 0.5
"""Seconds taken for a model load of which nothing is known.

Below the default case: before anything was measured, workers rather share a model than stand idle.
"""


@dataclass
class CostModel:
    """Costs in seconds of cases and loads.

    ``case_s`` and ``load_s`` are what earlier runs measured, by case id and by group (``MODEL@DEVICE``); ``hints`` are
    the relative costs that cases declare (``Case.cost``). What is observed while the run goes on replaces the guesses,
    never the records.
    """

    case_s: Mapping[str, float] = field(default_factory=dict)
    load_s: Mapping[str, float] = field(default_factory=dict)
    hints: Mapping[str, float] = field(default_factory=dict)
    _seconds: float = field(default=0.0, init=False)
    _units: float = field(default=0.0, init=False)
    _plain_seconds: float = field(default=0.0, init=False)
    _plain_units: float = field(default=0.0, init=False)
    _loads: dict[str, float] = field(default_factory=dict, init=False)
    _firsts: dict[str, list[tuple[str, float]]] = field(default_factory=dict, init=False)

    def hint(self, case: str) -> float:
        """The declared relative cost of a case, 1 if none."""
        return max(0.0, self.hints.get(case, 1.0))

    def rate(self) -> float:
        """Seconds for one unit of declared cost: the mean of this run, else of the records, else the default.

        Of the cases that declare nothing, where one has run: a case declared at 60 that finds its work in a cache would
        make all that is left look short, and workers go home. The mean, since what is asked is how long many cases take
        together: most are short, and a median forgets the few long ones that make up the run.
        """
        if self._plain_units:
            return self._plain_seconds / self._plain_units
        return self._seconds / self._units if self._units else self._recorded_rate

    @cached_property
    def _recorded_rate(self) -> float:
        known = [case for case in self.case_s if case not in self.hints] or list(self.case_s)
        units = sum(self.hint(case) for case in known)
        return sum(self.case_s[case] for case in known) / units if units else DEFAULT_CASE_S

    def case(self, case: str) -> float:
        """Seconds that a case is expected to take, its model being loaded."""
        recorded = self.case_s.get(case)
        return recorded if recorded is not None else self.hint(case) * self.rate()

    def parts(self, case: str) -> tuple[float, float]:
        """What :meth:`case` is made of: recorded seconds, and units of declared cost at the current :meth:`rate`."""
        recorded = self.case_s.get(case)
        return (recorded, 0.0) if recorded is not None else (0.0, self.hint(case))

    def load(self, group: str) -> float:
        """Seconds that a load of the group's model is expected to take."""
        if group in self.load_s:
            return self.load_s[group]
        if group not in self._loads:
            self._settle(group)
        if group in self._loads:
            return self._loads[group]
        return fmean(self._loads.values()) if self._loads else DEFAULT_LOAD_S

    def observe(self, case: str, group: str | None, seconds: float, *, first: bool) -> None:
        """Learn from a finished case; ``first`` says that its worker had to load the model for it."""
        if first and group is not None:
            self._firsts.setdefault(group, []).append((case, seconds))
        elif self.hint(case) > 0:
            self._seconds += seconds
            self._units += self.hint(case)
            if case not in self.hints:
                self._plain_seconds += seconds
                self._plain_units += 1

    def _settle(self, group: str) -> None:
        """Take what a first case took above the usual for the load, once there is a usual."""
        if self._firsts.get(group) and (self._units or self.case_s):
            surplus = [max(0.0, seconds - self.case(case)) for case, seconds in self._firsts[group]]
            self._loads[group] = fmean(surplus)
