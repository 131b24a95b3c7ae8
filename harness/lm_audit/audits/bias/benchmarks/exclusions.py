"""Rows that a benchmark leaves out: never silently, always with the reason, and counted by category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lm_audit.audits.bias.benchmarks.sides import spelt_alike
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence, Figure

Item = TypeVar("Item")

WARNED_SHARE = 0.05
"""More excluded rows than this, of a set or of one of its categories, are a warning."""

REFUSED_SHARE = 0.5
"""A set of which more is excluded is refused: what is left of it is another set."""

LISTED = 20
"""So many excluded rows are listed one by one; all are counted."""


@dataclass(frozen=True)
class Exclusion:
    """A row that was left out, and why. ``repeat``: it is an earlier row again, which counts once, and is no loss."""

    file: str
    row: int
    reason: str
    repeat: bool = False

    def __str__(self) -> str:
        return f"{self.file} row {self.row}: {self.reason}"


def parse_each(
    rows: Iterable[Mapping[str, object]],
    parse: Callable[[Mapping[str, Any], int], Item],
    content: Callable[[Item], Hashable],
    says: Callable[[Item], object] = lambda item: "",
) -> tuple[list[Item], list[Exclusion]]:
    """What ``parse(row, number)`` makes of each row, and the rows for which it raises ``DataError``.

    An item whose ``content`` (all that is asked of the model, ids left out) an earlier one has counts once: a copy of a
    row is no evidence more, and would make every interval too narrow. One that ``says`` something else of the same
    content is no copy: it is left out as a contradiction.
    """
    items: list[Item] = []
    excluded: list[Exclusion] = []
    first: dict[Hashable, tuple[tuple[str, int], str]] = {}
    key: Hashable
    for number, row in enumerate(rows, start=1):
        try:
            item = parse(row, number)
            key, claim, reason = content(item), str(says(item)), None
        except DataError as error:
            key, claim = repr({name: row[name] for name in row if name not in ("_file", "_row")}), ""
            reason = str(error)
        place = place_of(row, number)
        earlier, said = first.setdefault(key, (place, claim))
        if said != claim:
            other = f"row {earlier[1]} of {earlier[0] or 'the rows'}"
            reason = f"an earlier row asks the same and says otherwise: {claim!r} here, {said!r} in {other!r}"
            excluded.append(exclusion(row, number, reason))
        elif earlier != place:
            excluded.append(repeat(row, number, earlier))
        elif reason is not None:
            excluded.append(exclusion(row, number, reason))
        else:
            items.append(item)
    return items, excluded


def exclusion(row: Mapping[str, object], number: int, reason: str) -> Exclusion:
    """The exclusion of a row that carries ``_file`` and ``_row``, or has the place ``number`` in its list."""
    return Exclusion(*place_of(row, number), reason)


def repeat(row: Mapping[str, object], number: int, earlier: tuple[str, int]) -> Exclusion:
    """The exclusion of a row that is the one at ``earlier`` (file, row) again."""
    return Exclusion(*place_of(row, number), f"repeats row {earlier[1]} of {earlier[0] or 'the rows'}", repeat=True)


def place_of(row: Mapping[str, Any], number: int) -> tuple[str, int]:
    """File and row number of a row."""
    return str(row.get("_file", "")), int(row.get("_row", number))


@dataclass(frozen=True)
class Usage:
    """How much of a set could be used: rows read and rows excluded by category, and the exclusions themselves.

    ``repeats`` counts rows that are an earlier one again: they count once, and are neither read nor excluded here.
    ``lacks`` says what no usable row is, though scores weigh it against what others are.
    """

    name: str
    read: Mapping[str, int]
    excluded: Mapping[str, int]
    exclusions: tuple[Exclusion, ...] = field(default=(), repr=False)
    repeats: int = 0
    lacks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        rows: Sequence[Mapping[str, object]],
        excluded: Sequence[Exclusion],
        category: Callable[[Mapping[str, Any]], Hashable],
    ) -> Usage:
        """The usage of ``rows`` of which ``excluded`` were left out."""
        gone = {(gap.file, gap.row) for gap in excluded if not gap.repeat}
        again = {(gap.file, gap.row) for gap in excluded if gap.repeat}
        read: Counter[str] = Counter()
        lost: Counter[str] = Counter()
        for number, row in enumerate(rows, start=1):
            place = place_of(row, number)
            if place not in again:
                label = str(category(row)) or "unknown"
                read[label] += 1
                lost[label] += place in gone
        losses = {label: count for label, count in lost.items() if count}
        return cls(name, dict(read), losses, tuple(gap for gap in excluded if not gap.repeat), len(again))

    @property
    def n_read(self) -> int:
        """All rows read."""
        return sum(self.read.values())

    @property
    def n_excluded(self) -> int:
        """All rows excluded."""
        return sum(self.excluded.values())

    def warnings(self) -> list[str]:
        """One line where more than 5% of the set, or of one of its categories, is excluded, with the reasons; one where
        more than 5% of its rows are there already; one for each side that is missing, and for categories spelt alike.
        """
        spelt = [
            f"{self.name}: the categories {', '.join(map(repr, labels))} differ only in spelling, and are counted apart"
            for labels in spelt_alike(self.read)
        ]
        return [*self._losses(), *self._repeated(), *(f"{self.name}: {line}" for line in self.lacks), *spelt]

    def _repeated(self) -> list[str]:
        total = self.n_read + self.repeats
        if self.repeats <= WARNED_SHARE * total:
            return []
        return [
            f"{self.name}: {self.repeats} of {total} rows repeat another row, and count once: is the set there twice?"
        ]

    def _losses(self) -> list[str]:
        over = [
            f"{self.excluded[label]} of {count} in {label}"
            for label, count in self.read.items()
            if self.excluded.get(label, 0) > WARNED_SHARE * count
        ]
        if not over and self.n_excluded <= WARNED_SHARE * self.n_read:
            return []
        share = 100 * self.n_excluded / self.n_read
        by_category = f" ({'; '.join(over)})" if len(self.read) > 1 and over else ""
        return [
            f"{self.name}: {self.n_excluded} of {self.n_read} rows ({share:.0f}%) are excluded{by_category}, "
            f"mostly since: {self.reasons()}"
        ]

    def reasons(self, most: int = 2) -> str:
        """The commonest reasons, values left out, with their counts."""
        kinds = Counter(_kind(gap.reason) for gap in self.exclusions)
        return "; ".join(f"{kind} ({count}x)" for kind, count in kinds.most_common(most))

    def require_most(self) -> None:
        """Raise ``DataError`` where more than half of the rows, or all, are excluded."""
        if self.n_read and (self.n_excluded > REFUSED_SHARE * self.n_read or self.n_excluded == self.n_read):
            first = self.exclusions[0]
            raise DataError(
                f"{self.n_excluded} of {self.n_read} rows of {self.name} cannot be used, which is more than half: "
                f"{self.reasons()}. The first: {first.reason}",
                file=first.file or None,
                row=first.row,
            )

    def record(self, evidence: Evidence) -> None:
        """Put what was read, used and excluded into evidence: parameters, a table, notes and warnings."""
        evidence.parameters.update(
            {"rows_read": self.n_read, "rows_used": self.n_read - self.n_excluded, "rows_excluded": self.n_excluded}
        )
        if self.repeats:
            evidence.parameters["rows_repeated"] = self.repeats
        evidence.notes.extend(f"Warning: {line}" for line in self.warnings())
        evidence.notes.extend(f"Excluded: {gap}" for gap in self.exclusions[:LISTED])
        if len(self.exclusions) > LISTED:
            evidence.notes.append(f"Excluded: {len(self.exclusions) - LISTED} rows more; {self.reasons(5)}")
        evidence.figures.append(self._table())

    def _table(self) -> Figure:
        rows = [
            {
                "category": label,
                "read": count,
                "used": count - self.excluded.get(label, 0),
                "excluded": self.excluded.get(label, 0),
                "share": f"{100 * self.excluded.get(label, 0) / count:.1f}%",
            }
            for label, count in sorted(self.read.items())
        ]
        total = {"category": "all", "read": self.n_read, "used": self.n_read - self.n_excluded}
        share = f"{100 * self.n_excluded / self.n_read:.1f}%" if self.n_read else "-"
        rows.append({**total, "excluded": self.n_excluded, "share": share})
        columns = [
            {"name": name, "title": title}
            for name, title in (
                ("category", "category"),
                ("read", "read"),
                ("used", "usable"),
                ("excluded", "excluded"),
                ("share", "share excluded"),
            )
        ]
        return Figure(
            "rows_used",
            "Rows of the set that could be used",
            "table",
            {"columns": columns, "rows": rows},
            "Of the whole set as it was read; a run of size smoke or standard then draws a sample of the usable rows.",
        )


def _kind(reason: str) -> str:
    """The reason without the values that differ from row to row, so that counts stay few."""
    import re

    return re.sub(r"\s+", " ", re.sub(r"'[^']*'|\[[^\]]*\]|\d\d+", "…", reason))[:120]
