"""The public sets by their names: how each is parsed, by what it is divided, how much of it can be used."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lm_audit.audits.bias.benchmarks.bbq.items import parse_bbq
from lm_audit.audits.bias.benchmarks.crows_pairs.items import parse_crows_pairs
from lm_audit.audits.bias.benchmarks.exclusions import Exclusion, Usage, place_of
from lm_audit.audits.bias.benchmarks.rows import load_rows
from lm_audit.audits.bias.benchmarks.sampling import stratified_sample
from lm_audit.audits.bias.benchmarks.sides import Sides, lacking
from lm_audit.audits.bias.benchmarks.stereoset.items import parse_stereoset
from lm_audit.audits.bias.benchmarks.wino.winobias_items import parse_winobias
from lm_audit.audits.bias.benchmarks.wino.winogender_items import parse_winogender
from lm_audit.audits.hub_presence import is_settled, refuse_absent
from lm_audit.audits.hub_rows import hub_set
from lm_audit.errors import DataError, DataWarning
from lm_audit.shared.textfiles.remembering import remembered_by_content

Row = Mapping[str, Any]
Item = TypeVar("Item")
Parsed = tuple[Sequence[Any], Sequence[Exclusion]]


@dataclass(frozen=True)
class PublicSet:
    """``stratum`` is what a sample keeps in proportion, ``category`` what exclusions are counted by.

    ``sides`` are what a score weighs against each other in each ``part`` of the items. ``together``: rows that it names
    alike are drawn together or not at all, since a score compares them with each other.
    """

    parse: Callable[[Sequence[Row]], Parsed]
    stratum: Callable[[Row], Any]
    category: Callable[[Row], Any]
    sides: tuple[Sides, ...] = ()
    part: Callable[[Any], str] = lambda item: ""
    together: Callable[[Row], str] | None = None

    def sample(self, rows: Sequence[dict[str, Any]], n: int | None, seed: int) -> list[dict[str, Any]]:
        """At most ``n`` of ``rows`` in their old order, each stratum by its share, what belongs together whole; all of
        them for ``None``."""
        if self.together is None or n is None or n >= len(rows):
            return stratified_sample(rows, n, self.stratum, seed=seed)
        groups: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            groups.setdefault(self.together(row), []).append(row)
        many = max(1, n * len(groups) // len(rows))
        drawn = stratified_sample([group[0] for group in groups.values()], many, self.stratum, seed=seed)
        kept = {self.together(row) for row in drawn}
        return [row for row in rows if self.together(row) in kept]


def _sentence(row: Row) -> list[str]:
    """What the name of a sentence of Winogender says: occupation, participant, which of them is meant, gender."""
    return str(row["sentid"]).removesuffix(".txt").split(".")


def _gender(row: Row) -> str:
    return _sentence(row)[-1]


_BBQ = PublicSet(
    parse_bbq,
    lambda row: (row.get("category"), row["context_condition"], row["question_polarity"]),
    lambda row: row.get("category") or "unknown",
    (
        Sides("polarity", lambda item: item.polarity, ("neg", "nonneg")),
        Sides("condition", lambda item: item.condition, ("ambig", "disambig")),
    ),
    lambda item: item.category or "unknown",
)
SETS: Mapping[str, PublicSet] = {
    "crows_pairs": PublicSet(
        parse_crows_pairs, lambda row: (row["bias_type"], row["stereo_antistereo"]), lambda row: row["bias_type"]
    ),
    "stereoset": PublicSet(parse_stereoset, lambda row: row["bias_type"], lambda row: row["bias_type"]),
    "winobias": PublicSet(
        parse_winobias,
        lambda row: (row["type"], row["condition"]),
        lambda row: f"type {row['type']}, {row['condition']}",
        (
            Sides("condition", lambda item: item.condition, ("pro", "anti")),
            Sides("gender", lambda item: item.gender, ("male", "female")),
        ),
        lambda item: f"type {item.type}",
    ),
    "winogender": PublicSet(
        parse_winogender,
        lambda row: _sentence(row)[2],
        _gender,
        (Sides("gender", lambda item: item.gender, ("male", "female")),),
        together=lambda row: ".".join(_sentence(row)[:3]),
    ),
    "bbq": _BBQ,
    "cbbq": _BBQ,
}


def usable(
    kind: str,
    parse: Callable[[Sequence[Row]], tuple[list[Item], list[Exclusion]]],
    rows: Iterable[Row],
    usage: Usage | None,
    *,
    none: str,
) -> tuple[list[Item], Usage]:
    """The items that ``parse`` makes of rows, and how much could be used: of a larger set where ``usage`` says so.

    Raises ``DataError`` where more than half of the rows cannot be used, and in the words of ``none`` without any.
    """
    rows = list(rows)
    items, excluded = parse(rows)
    usage = usage or usage_of(kind, rows, excluded, items)
    usage.require_most()
    if not items:
        raise DataError(none)
    return items, usage


def usage_of(kind: str, rows: Sequence[Row], excluded: Sequence[Exclusion], items: Sequence[Any]) -> Usage:
    """How much of these rows could be used, given what was left out and what was made of the others."""
    one = SETS[kind]
    return replace(Usage.of(kind, rows, excluded, one.category), lacks=lacking(items, one.part, one.sides))


@dataclass(frozen=True)
class LoadedSet:
    """The rows of a set that can be used, and how much of it that is."""

    rows: Sequence[dict[str, Any]]
    usage: Usage


def check_set(source: str, kind: str) -> None:
    """Read the set if it is on this machine, else ask the hub whether it has it; raises what reading would."""
    named = hub_set(source)
    if named is None or is_settled(named):
        load_set(source, kind)
    else:
        refuse_absent(named)


@remembered_by_content(maxsize=8)
def load_set(source: str, kind: str) -> LoadedSet:
    """A public set read and parsed once in a process, and again where its files changed.

    Warns (``DataWarning``) of more than 5% excluded or repeated, and of sides that are missing. Raises what
    :func:`load_rows` raises, and ``DataError`` where more than half of the rows cannot be used.
    """
    rows = load_rows(source, kind)
    items, excluded = SETS[kind].parse(rows)
    usage = usage_of(kind, rows, excluded, items)
    usage.require_most()
    for line in usage.warnings():
        warnings.warn(f"{source}: {line}", DataWarning, stacklevel=4)
    gone = {(gap.file, gap.row) for gap in excluded}
    return LoadedSet([row for number, row in enumerate(rows, start=1) if place_of(row, number) not in gone], usage)
