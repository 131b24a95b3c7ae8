"""A metric's source tells how many independent units stand behind it."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.evidence import Evidence
from lm_audit.findings import Finding, claim
from lm_audit.gates.gate import Gate, judge
from lm_audit.sources.counting import count_units, with_units
from lm_audit.sources.record import MetricSource
from lm_audit.sources.recording import record_measured
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


def test_an_exact_share_of_answers_of_one_cluster_decides_nothing() -> None:
    """Of 60 answers to one template none is wrong: exact for that template, and of templates nothing is known."""
    rows = [{**row, "template": "t0"} for row in ROWS]
    evidence = Evidence("toy", rows=rows)
    evidence.metric("toy.exact", clopper_pearson(0, 60), MetricSource.mean("score", clusters=("template",)))
    verdict = judge(Gate("toy.exact", high=0.1, limit="<= 0.1"), with_units(evidence)["toy.exact"])
    assert verdict.word == "undecided" and "1 independent unit (60 values) of the 6" in verdict.reason


def test_a_finding_stands_on_as_many_units_as_its_metric() -> None:
    """Sixty values of three templates: what a gate leaves open for want of templates no finding says."""
    rows = [{**row, "template": f"t{k % 3}"} for k, row in enumerate(ROWS)]
    effect = Estimate(1.0, 0.5, 1.5, n=60, chance=0.0)
    evidence = Evidence("toy", rows=rows)
    evidence.metric("toy.shift", effect, MetricSource.mean("score", clusters=("template",)))
    evidence.finding(claim("toy.k", effect, found="it does", absent="it does not", unknown="?", metric="toy.shift"))
    assert evidence.findings[0].verdict == "found"
    kept = Kept()
    record_measured(evidence, kept)
    assert judge(Gate("toy.shift", low=0.1, limit=">= 0.1"), kept.metrics["toy.shift"]).word == "undecided"
    assert kept.findings[0].verdict == "cannot tell" and kept.findings[0].needed == 6
    assert "3 independent units (60 values) of the 6" in kept.findings[0].reason


class Kept:
    """Keeps metrics and findings."""

    def __init__(self) -> None:
        self.metrics: dict[str, Estimate] = {}
        self.findings: list[Finding] = []

    def metric(self, name: str, estimate: Estimate, source: object) -> None:
        self.metrics[name] = estimate

    def finding(self, finding: Finding) -> None:
        self.findings.append(finding)

    def rows(self, rows: object) -> None: ...
    def parameter(self, name: str, value: object) -> None: ...
    def figure(self, figure: object) -> None: ...
    def attach(self, path: object) -> None: ...
    def note(self, text: str) -> None: ...
    def headline(self, text: object) -> None: ...


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
        "toy.plain": (None, None), "toy.clustered": (10, 6), "toy.stated": (4, None), "toy.exact": (10, 6),
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
