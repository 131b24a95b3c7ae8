"""Whether a server gives a greedy request the same answer again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Repeats:
    """``asked`` of ``wanted`` greedy requests were asked twice, ``differing`` of them had another answer.

    ``broken`` says why fewer were asked than wanted.
    """

    differing: int
    asked: int
    wanted: int
    broken: str = ""

    @property
    def told(self) -> str:
        """The result in words; no word of it says "deterministic" where nothing was asked twice."""
        rest = f"; the other {self.wanted - self.asked} could not be asked again: {self.broken}" if self.broken else ""
        if not self.asked:
            return f"not known: none of {self.wanted} greedy requests could be asked again: {self.broken}"
        told = f"{self.differing} of {self.asked} greedy requests that were asked twice had another answer"
        return (f"not deterministic: {told}" if self.differing else f"{told} (deterministic)") + rest
