"""Faults between what was measured and what is reported, the same for every audit: planted where evidence is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from lm_audit.evidence import Evidence
from lm_audit.sources.record import MetricSource
from lm_audit.stats.covering import independent_units
from lm_audit.stats.estimate import Estimate

Fault = Callable[[pytest.MonkeyPatch], None]
Rows = list[dict[str, Any]]


def of_metrics(change: Callable[[Estimate], Estimate]) -> Fault:
    """Every metric put through ``change`` as it is recorded."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = Evidence.metric

        def metric(self: Evidence, name: str, estimate: Estimate, source: MetricSource | None = None) -> None:
            honest(self, name, change(estimate), source)

        patch.setattr(Evidence, "metric", metric)

    return apply


def of_rows(change: Callable[[Rows], Rows]) -> Fault:
    """All rows put through ``change`` as they are recorded; metrics stay those of the rows as they were."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        honest, own = Evidence.__setattr__, Evidence.extend_rows

        def changed(self: Evidence, name: str, value: Any) -> None:
            honest(self, name, change(list(value)) if name == "rows" and value else value)

        def extended(self: Evidence, rows: Iterable[Mapping[str, object]]) -> None:
            own(self, change([dict(row) for row in rows]))

        patch.setattr(Evidence, "__setattr__", changed)
        patch.setattr(Evidence, "extend_rows", extended)

    return apply


def _width(times: float) -> Callable[[Estimate], Estimate]:
    def change(estimate: Estimate) -> Estimate:
        value, low, high = estimate.value, estimate.low, estimate.high
        if value is None or low is None or high is None:
            return estimate
        return replace(estimate, low=value + times * (low - value), high=value + times * (high - value))

    return change


def _chance(estimate: Estimate) -> Estimate:
    return estimate if estimate.chance is None else replace(estimate, chance=estimate.chance + 0.1)


def _sign(estimate: Estimate) -> Estimate:
    value, low, high = (None if end is None else -end for end in (estimate.value, estimate.high, estimate.low))
    return replace(estimate, value=value, low=low, high=high)


def _n(estimate: Estimate) -> Estimate:
    return estimate if estimate.n is None else replace(estimate, n=2 * estimate.n)


def _units(estimate: Estimate) -> Estimate:
    units = independent_units(estimate)
    return estimate if units is None else replace(estimate, units=2 * units)


WIDTHS: dict[str, Fault] = {
    "independent units said to be twice as many": of_metrics(_units),
    "intervals half as wide": of_metrics(_width(0.5)),
    "intervals twice as wide": of_metrics(_width(2.0)),
}
CHANCES: dict[str, Fault] = {"chance levels 0.1 up": of_metrics(_chance)}
COUNTS: dict[str, Fault] = {
    "signs of metrics reversed": of_metrics(_sign),
    "items said to be twice as many": of_metrics(_n),
    "every second row lost": of_rows(lambda rows: rows[::2] if len(rows) > 1 else []),
    "rows recorded twice": of_rows(lambda rows: [*rows, *rows]),
}
REPORTING: dict[str, Fault] = {**WIDTHS, **CHANCES, **COUNTS}
