"""A benchmark as the audit uses it: its items or a seeded sample of them, and what was left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lm_audit.audits.leakage.items.item import Item

LISTED = 200
"""So many excluded rows are listed; all are counted."""

MANY = 0.05
"""A larger share of rows that could not be used is said aloud."""


@dataclass(frozen=True)
class Exclusion:
    """A row that was left out: where it stands and why."""

    file: str
    row: int
    reason: str


@dataclass(frozen=True)
class Benchmark:
    """``items`` in the order of the files (a sample where ``rows`` has more usable ones), ``files`` also those without.

    ``by_file`` counts the usable rows of every file. ``excluded`` counts rows that could not be used, by reason;
    ``exclusions`` lists the first of them. ``guesses`` says, a sentence each, what was not certain in the reading.
    ``places`` are the items' places among their file's usable rows: items at k and k + 1 are neighbours. ``repeated``
    counts rows whose question and options stand earlier already: an item counts once, and they are no rows here.
    """

    name: str
    items: tuple[Item, ...]
    files: tuple[str, ...]
    rows: int
    usable: int
    excluded: Mapping[str, int] = field(default_factory=dict)
    exclusions: tuple[Exclusion, ...] = ()
    by_file: Mapping[str, int] = field(default_factory=dict)
    guesses: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    repeated: int = 0

    def loss(self) -> str | None:
        """What could not be used and why, where that is more than a few rows."""
        lost = sum(self.excluded.values())
        if lost <= MANY * self.rows:
            return None
        reasons = ", ".join(f"{count} because {reason}" for reason, count in self.excluded.items())
        return f"{lost} of {self.rows} rows ({lost / self.rows:.0%}) could not be used: {reasons}"

    def repeats(self) -> str | None:
        """How many rows stand there already, where that is more than a few."""
        total = self.rows + self.repeated
        if self.repeated <= MANY * total:
            return None
        return f"{self.repeated} of {total} rows repeat another row, and count once: is the set there twice?"

    def __repr__(self) -> str:
        return f"Benchmark({self.name!r}, {len(self.items)} of {self.usable} usable items, {self.rows} rows)"
