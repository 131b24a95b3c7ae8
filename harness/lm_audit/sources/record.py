"""MetricSource: which rows, which column and which statistic a metric was made from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Where = Mapping[str, Any]
"""Rows by the values of their columns; all entries must hold. A list or tuple stands for "one of"."""

Within = Literal["mean", "sum", "max", "min"]
Transform = Literal["abs", "negate", "sign_share"]


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a unit's value: ``weight`` times the unit's rows that match ``where``, in ``column``.

    Without ``column`` the source's own. A unit that lacks a value of any term is left out.
    """

    weight: float = 1.0
    where: Where = field(default_factory=dict)
    column: str | None = None


@dataclass(frozen=True, slots=True)
class MetricSource:
    """How a metric follows from the rows of its case.

    Rows that match ``where`` are gathered into units: the rows that agree in the columns ``unit`` (each row by itself
    where ``unit`` is empty). A unit's value is the mean (``within``) of its rows' ``column``, or with ``terms`` their
    weighted sum: ``(Term(1, {"condition": "original"}), Term(-1, {"condition": "shuffled"}))`` is a paired difference.
    ``transform`` turns that value: ``"abs"``, ``"negate"``, or ``"sign_share"`` (1 above 0, 0 below, a half at 0). A
    unit without a value is left out. ``statistic`` takes the units' values, ``options`` are its arguments, and the
    metric is its answer times ``scale`` (100 for per cent) plus ``offset``.

    ``statistic`` is a name of :data:`lm_audit.sources.statistics.STATISTICS` or one that an audit has registered; such
    a function is given the rows that match ``where`` (see :mod:`lm_audit.sources.functions`).

    ``clusters`` names the columns within whose values units are not independent: none, one, or two crossed ones
    (template and word pair). Of nested clusters name the outermost. ``margin`` is the largest change, in the metric's
    unit, that is of no consequence. ``seeded`` says that chance had a part: the rows give the value only nearly.
    """

    statistic: str = "mean"
    column: str | None = None
    where: Where = field(default_factory=dict)
    unit: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()
    within: Within = "mean"
    transform: Transform | None = None
    clusters: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    scale: float = 1.0
    offset: float = 0.0
    margin: float | None = None
    seeded: bool = False

    def __post_init__(self) -> None:
        for name in ("unit", "clusters", "terms"):
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise ValueError(f"MetricSource.{name} must be a tuple, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        if len(self.clusters) > 2:
            raise ValueError(
                f"MetricSource.clusters names {len(self.clusters)} columns {self.clusters}, at most 2 cross"
            )
        if self.within not in ("mean", "sum", "max", "min"):
            raise ValueError(f"MetricSource.within is {self.within!r}, must be mean, sum, max or min")
        if self.transform not in (None, "abs", "negate", "sign_share"):
            raise ValueError(f"MetricSource.transform is {self.transform!r}, must be abs, negate or sign_share")
        if not math.isfinite(self.scale) or self.scale == 0:
            raise ValueError(f"MetricSource.scale is {self.scale!r}, must be finite and not 0")

    @classmethod
    def mean(cls, column: str, where: Where | None = None, **fields: Any) -> MetricSource:
        """The mean of a column; ``scale=100`` for a share in per cent."""
        return cls("mean", column, where or {}, **fields)

    @classmethod
    def paired_difference(
        cls, column: str, unit: Sequence[str], first: Where, second: Where, **fields: Any
    ) -> MetricSource:
        """The mean over units of their rows that match ``first`` minus those that match ``second``."""
        return cls("mean", column, unit=tuple(unit), terms=(Term(1.0, first), Term(-1.0, second)), **fields)

    @classmethod
    def column_difference(cls, first: str, second: str, where: Where | None = None, **fields: Any) -> MetricSource:
        """The mean over rows of one column minus another."""
        return cls("mean", None, where or {}, terms=(Term(1.0, {}, first), Term(-1.0, {}, second)), **fields)

    @classmethod
    def difference(cls, column: str | None, first: Where, second: Where, **fields: Any) -> MetricSource:
        """The mean over the units in group ``first`` minus that over the units in group ``second``.

        With ``unit`` and ``terms`` (after minus before) this is a difference in differences.
        """
        options = {"first": dict(first), "second": dict(second)}
        return cls("difference", column, options=options, **fields)

    @classmethod
    def members(
        cls, statistic: str, column: str, members: Where, controls: Where, *, higher: bool = True, **fields: Any
    ) -> MetricSource:
        """``"auc"``, ``"average_precision"``, ``"tpr_at_fpr"`` (with ``options={"fpr": "0.01"}``) of members against
        controls; ``higher=False`` where a lower value is more member-like.
        """
        options = {"members": dict(members), "controls": dict(controls), "higher": higher, **fields.pop("options", {})}
        return cls(statistic, column, options=options, **fields)

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as plain JSON values."""
        plain = MetricSource()
        found = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) != getattr(plain, name)}
        if "terms" in found:
            found["terms"] = [{"weight": t.weight, "where": _lists(t.where), "column": t.column} for t in self.terms]
        for name in ("where", "options"):
            if name in found:
                found[name] = _lists(found[name])
        for name in ("unit", "clusters"):
            if name in found:
                found[name] = list(found[name])
        return found

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> MetricSource:
        """The inverse of :meth:`to_json`; fields this version does not know are ignored."""
        known = {name: record[name] for name in cls.__slots__ if name in record}
        if "terms" in known:
            known["terms"] = tuple(Term(t["weight"], t["where"], t["column"]) for t in known["terms"])
        return cls(**known)


def _lists(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _lists(entry) for key, entry in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [_lists(entry) for entry in value]
    return value
