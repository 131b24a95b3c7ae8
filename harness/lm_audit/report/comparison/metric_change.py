"""One metric of one case in two runs: what changed, how sure that is, and what it is called."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from lm_audit.audits.metric_info import RANGE_OF_UNIT, metric_info
from lm_audit.errors import DataError
from lm_audit.report.comparison.direction import directions, reversed_about, worse_by_either
from lm_audit.report.comparison.interval_difference import difference_of
from lm_audit.report.comparison.margins import margin_of
from lm_audit.runstore.records import CaseRecord
from lm_audit.sources.content import OtherData, other_data
from lm_audit.sources.limits import SMALLEST
from lm_audit.sources.record import MetricSource
from lm_audit.sources.units import RowTable
from lm_audit.stats.estimate import Estimate

Basis = Literal["paired", "two samples", "intervals", "none"]

Outcome = Literal["worse", "better", "changed", "reversed", "same", "not shown", "not comparable"]
"""``reversed``: not shown to be further from its target or nearer, and on its other side: both runs' intervals exclude
it. ``same``: identical, or shown to differ by less than the margin. ``not shown``: neither a change nor sameness was.
``not comparable``: a value is missing, or nothing is known of its spread."""

LEVEL = 0.05


@dataclass(frozen=True)
class MetricChange:
    """One metric of one case in both runs; ``difference`` is b minus a in the metric's own unit.

    ``p`` is ``None`` where there is no test, ``floor`` the smallest p that these data could have given. ``decided``:
    the metric is one by which the comparison decides (a headline), adjusted in that family; the others are exploratory
    and adjusted among themselves for the false discovery rate. ``able`` is False where the test could not reach the
    level. ``others`` counts items of one name that hold another text in each run, and are no pairs. ``refused`` says
    why values that both runs have are not the same thing, so that nothing is compared. ``ends`` are the values of both
    runs on the items that were compared, by which the change has its direction: where one run lacks items, ``a`` and
    ``b`` may lie the other way round.
    """

    case_id: str
    case_id_b: str
    audit: str | None
    metric: str
    a: Estimate
    b: Estimate
    difference: Estimate
    p: float | None
    basis: Basis
    pairs: int = 0
    only_a: int = 0
    only_b: int = 0
    void: bool = False
    adjusted: float | None = None
    floor: float = 0.0
    clusters: int = 0
    decided: bool = True
    able: bool = True
    identical: bool = False
    equivalent: bool = False
    margin: float | None = None
    others: int = 0
    refused: str | None = None
    ends: tuple[float, float] | None = None

    @property
    def significant(self) -> bool:
        """Whether the adjusted p-value is at most 0.05."""
        return self.adjusted is not None and self.adjusted <= LEVEL

    @property
    def direction(self) -> Outcome:
        """What the comparison shows of this metric."""
        if self.a.value is None or self.b.value is None:
            return "not comparable"
        if self.identical:
            return "same"
        if self.significant:
            worse = worse_by_either(*self._compared)
            return "changed" if worse is None else "worse" if worse else "better"
        if self.equivalent:
            return "same"
        if self.reversed_about is not None:
            return "reversed"
        return "not comparable" if self.basis == "none" else "not shown"

    @property
    def reversed_about(self) -> float | None:
        """The target that the metric has crossed, shown by both runs' intervals; ``None`` where none, or where only
        items that one run lacks show it."""
        target = reversed_about(self.a, self.b)
        if target is None or self.ends is None:
            return target
        return target if (self.ends[0] - target) * (self.ends[1] - target) < 0 else None

    @property
    def _compared(self) -> tuple[Estimate, Estimate]:
        """Both sides with the values of the items that were compared."""
        if self.ends is None:
            return self.a, self.b
        return replace(self.a, value=self.ends[0]), replace(self.b, value=self.ends[1])

    @property
    def regression(self) -> bool:
        """A significant change for the worse of what is decided and not void."""
        return self.direction == "worse" and self.decided and not self.void


@dataclass(frozen=True)
class Comparing:
    """Two cases and their rows, and how finely p-values must be told apart."""

    before: CaseRecord
    after: CaseRecord
    rows_a: RowTable
    rows_b: RowTable
    resolution: float
    seed: int
    redrawn: bool = False

    def change(self, name: str) -> MetricChange:
        """How the metric ``name``, which both cases have, changed."""
        a, b = self.before.last.metrics[name], self.after.last.metrics[name]
        nothing = Estimate.not_estimable("no value in one of the runs")
        ids = self.before.case_id, self.after.case_id, self.before.audit
        change = MetricChange(*ids, name, a, b, nothing, None, "none")
        if a.value is None or b.value is None:
            return change
        if a.unit and b.unit and a.unit != b.unit:
            return _refused(change, f"other units: {a.unit} and {b.unit}")
        source = self._source(name)
        if source is None or isinstance(source, str):
            return _possible(self._by_intervals(change, None, source))
        return _possible(self._by_rows(change, source))

    def _source(self, name: str) -> MetricSource | str | None:
        """The metric's source; a run from before there were sources is read by the other's."""
        found = [case.last.sources.get(name) for case in (self.before, self.after)]
        known = [source for source in found if source is not None]
        if len(known) == 2 and _made(known[0]) != _made(known[1]):
            return "the runs make this metric from different rows or by different statistics"
        # What is of no consequence may be said anew: the stricter one holds.
        margins = [source.margin for source in known if source.margin is not None]
        return replace(known[0], margin=min(margins, default=None)) if known else None

    def _by_rows(self, change: MetricChange, source: MetricSource) -> MetricChange:
        from lm_audit.sources.change import change_between

        options: dict[str, Any] = {"resolution": self.resolution, "seed": self.seed, "redrawn": self.redrawn}
        try:
            found = change_between(source, self.rows_a, self.rows_b, target=_target(change.a, change.b), **options)
        except (DataError, KeyError) as error:
            found = str(error)
        if isinstance(found, OtherData):
            return _refused(change, str(found))
        if isinstance(found, str):
            return self._by_intervals(change, source, found)
        margin = margin_of(change.a, source.margin)
        return replace(
            change,
            difference=replace(found.difference, unit=change.a.unit),
            p=found.p,
            floor=found.floor,
            basis=found.basis,
            pairs=found.pairs,
            only_a=found.only_a,
            only_b=found.only_b,
            clusters=found.clusters,
            others=found.others,
            ends=(found.before, found.after),
            identical=found.identical and found.only_a == found.only_b == found.others == 0,
            # Where all there is did not move it is identical; else enough must have stayed to stand for the rest.
            equivalent=(found.identical and found.clusters >= SMALLEST)
            or (margin is not None and found.within(margin)),
            margin=margin,
        )

    def _by_intervals(
        self, change: MetricChange, source: MetricSource | None, reason: str | None = None
    ) -> MetricChange:
        """Compared by the intervals, which know no items: unless the rows beside them tell that these are others."""
        if self.others is not None and not self.redrawn:
            return _refused(change, str(self.others))
        return _by_intervals(change, source, reason)

    @cached_property
    def others(self) -> OtherData | None:
        """What the cases hold under the same names, where that is not the same."""
        return other_data(self.rows_a.rows, self.rows_b.rows)


def _possible(change: MetricChange) -> MetricChange:
    """The interval without what no change can be: of two shares the one is at most 1 above the other."""
    info = metric_info(change.metric)
    limits = RANGE_OF_UNIT.get(change.a.unit or "") if info is None else info.limits
    low, high, value = change.difference.low, change.difference.high, change.difference.value
    if limits is None or value is None or abs(value) > (widest := limits[1] - limits[0]):
        return change
    low, high = (None if end is None else min(max(end, -widest), widest) for end in (low, high))
    return replace(change, difference=replace(change.difference, low=low, high=high))


def _refused(change: MetricChange, reason: str) -> MetricChange:
    return replace(change, difference=Estimate.not_estimable(reason), refused=reason)


def _by_intervals(change: MetricChange, source: MetricSource | None, reason: str | None = None) -> MetricChange:
    difference, p = difference_of(change.a, change.b)
    if reason:
        difference = replace(difference, note="; ".join(filter(None, (reason, difference.note))))
    margin = margin_of(change.a, source.margin if source else None)
    low, high = difference.low, difference.high
    small = margin is not None and low is not None and high is not None and -margin < low and high < margin
    same = (change.a.value, change.a.low, change.a.high) == (change.b.value, change.b.low, change.b.high)
    basis: Basis = "none" if low is None else "intervals"
    return replace(change, difference=difference, p=p, basis=basis, identical=same, equivalent=small, margin=margin)


def _made(source: MetricSource) -> dict[str, Any]:
    """How the metric follows from the rows, without what is said of its change."""
    return replace(source, margin=None).to_json()


def _target(a: Estimate, b: Estimate) -> float | None:
    """The target of the metric; ``None`` where it has none, or the runs name different ones."""
    ways = directions(a, b)
    return float(ways[0].partition(":")[2]) if len(ways) == 1 and ways[0].startswith("target:") else None
