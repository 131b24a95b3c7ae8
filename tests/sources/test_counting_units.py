"""A metric's source tells how many independent units stand behind it."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.evidence import Evidence
from lm_audit.sources.counting import count_units, with_units
from lm_audit.sources.record import MetricSource
from lm_audit.sources.units import RowTable
from lm_audit.stats import Estimate, clopper_pearson

ROWS = [
    {"item": f"{t}-{p}", "template": f"t{t}", "pair": f"p{p}", "score": float(t * p), "role": "a" if t < 3 else "b"}
    for t in range(10)
    for p in range(6)
]
SIDES: dict[str, Any] = {"members": {"role": "a"}, "controls": {"role": "b"}}


@pytest.mark.parametrize(
    ("source", "units"),
    [
        (MetricSource.mean("score"), 60),
        (MetricSource.mean("score", {"role": "a"}), 18),
        (MetricSource.mean("score", clusters=("template",)), 10),
        (MetricSource.mean("score", clusters=("template", "pair")), 6),
        (MetricSource("mean", "score", unit=("template",)), 10),
        (MetricSource.difference("score", {"role": "a"}, {"role": "b"}), 18),
        (MetricSource.difference("score", {"role": "a"}, {"role": "b"}, clusters=("template",)), 3),
        (MetricSource.members("auc", "score", **SIDES), 18),
        (MetricSource("exposure", "score", options=SIDES | {"tier": {"pair": "p1"}}), 3),
        (MetricSource("max_min", "score", options={"group": "role"}), 18),
        (MetricSource("toy.own", "score", clusters=("template",)), 10),
        (MetricSource("toy.own", "score"), None),
        (MetricSource.mean("score", {"role": "c"}), 0),
    ],
)
def test_units_are_counted(source: MetricSource, units: int | None) -> None:
    assert count_units(source, RowTable(ROWS)) == units


def test_metrics_get_the_units_that_they_do_not_state() -> None:
    evidence = Evidence("toy", rows=list(ROWS))
    clustered = MetricSource.mean("score", clusters=("template",))
    evidence.metric("toy.plain", Estimate(1.0, 0.0, 2.0, n=60), MetricSource.mean("score"))
    evidence.metric("toy.clustered", Estimate(1.0, 0.0, 2.0, n=60), clustered)
    evidence.metric("toy.stated", Estimate(1.0, 0.0, 2.0, n=60, units=4), clustered)
    evidence.metric("toy.exact", clopper_pearson(3, 60), clustered)
    evidence.metric("toy.unknown", Estimate(1.0, 0.0, 2.0, n=60))
    evidence.metric("toy.wrong", Estimate(1.0, 0.0, 2.0, n=60), MetricSource.mean("no_such_column"))
    found = {name: (estimate.units, estimate.fewest) for name, estimate in with_units(evidence).items()}
    assert found == {
        "toy.plain": (None, None), "toy.clustered": (10, 6), "toy.stated": (4, None), "toy.exact": (10, 1),
        "toy.unknown": (None, None), "toy.wrong": (None, None),
    }  # fmt: skip


def test_an_estimate_of_an_older_ledger_has_no_units_and_a_new_one_keeps_them() -> None:
    old = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10, "confidence": 0.95, "method": "m", "unit": None,
           "better": None, "note": None, "chance": None}  # fmt: skip
    assert Estimate.from_json(old).units is None
    assert Estimate.from_json(old).to_json() == old
    new = Estimate(0.5, n=10, units=3, fewest=6)
    assert Estimate.from_json(new.to_json()) == new
    with pytest.raises(ValueError, match="units"):
        Estimate(0.5, units=-1)
