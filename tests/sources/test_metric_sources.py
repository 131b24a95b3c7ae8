"""Metric sources: the statistics against numpy and scikit-learn, the way through the ledger, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.plugin.record.evidence_fixture import Recorder
from lm_audit.runstore.attempt import AttemptWriter
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.run import read_run
from lm_audit.sources import MetricSource, Term, recompute, register_statistic, undirected, unreproduced, unsourced
from lm_audit.sources.functions import weighted_form
from lm_audit.sources.statistics import STATISTICS
from lm_audit.sources.units import RowTable, units_of
from lm_audit.stats import Estimate, exposure_sampled, pr_auc, roc_auc, tpr_at_fpr

MEMBER, CONTROL = {"role": "member"}, {"role": "control"}


def rows(n: int = 40, seed: int = 3) -> list[dict[str, Any]]:
    """Rows with a score (with ties), a role, a group, a question of four rows, and numbers beside them."""
    rng = np.random.default_rng(seed)
    return [
        {
            "item": f"i{k}",
            "question": f"q{k // 4}",
            "condition": ("original", "original", "shuffled", "shuffled")[k % 4],
            "group": "abc"[k % 3],
            "role": "member" if k % 5 < 2 else "control",
            "score": round(float(rng.normal()), 1),
            "other": float(rng.normal()),
            "tokens": int(rng.integers(1, 9)),
            "hit": bool(rng.integers(0, 2)),
            "text": "hostile",
            "gap": None if k % 7 == 0 else 1.5 * k,
        }
        for k in range(n)
    ]


TABLE = rows()


def values(column: str = "score", **where: Any) -> np.ndarray[Any, Any]:
    """A column of the rows that match."""
    return np.array([row[column] for row in TABLE if all(row[k] == v for k, v in where.items())], dtype=np.float64)


def by_question(condition: str) -> np.ndarray[Any, Any]:
    """Means of each question's rows under a condition."""
    means: np.ndarray[Any, Any] = values(condition=condition).reshape(-1, 2).mean(axis=1)
    return means


def members(statistic: str, **more: Any) -> MetricSource:
    """A source of members against controls."""
    return MetricSource.members(statistic, "score", MEMBER, CONTROL, **more)


CASES: dict[str, tuple[MetricSource, float]] = {
    "mean": (MetricSource.mean("score"), values().mean()),
    "share in per cent": (MetricSource.mean("hit", scale=100), 100 * values("hit").mean()),
    "offset": (MetricSource.mean("hit", scale=2, offset=-1), 2 * values("hit").mean() - 1),
    "rows of one group": (MetricSource.mean("score", {"group": "b"}), values(group="b").mean()),
    "one of several": (
        MetricSource.mean("score", {"group": ["a", "b"]}),
        np.concatenate([values(group="a"), values(group="b")]).mean(),
    ),
    "missing values": (MetricSource.mean("gap"), float(np.mean([r["gap"] for r in TABLE if r["gap"] is not None]))),
    "weighted": (
        MetricSource.mean("score", options={"weight": "tokens"}),
        float(np.average(values(), weights=values("tokens"))),
    ),
    "units": (MetricSource.mean("score", unit=("question",)), values().reshape(-1, 4).mean(axis=1).mean()),
    "sums within": (
        MetricSource.mean("hit", unit=("question",), within="sum"),
        values("hit").reshape(-1, 4).sum(axis=1).mean(),
    ),
    "largest within": (
        MetricSource.mean("score", unit=("question",), within="max"),
        values().reshape(-1, 4).max(axis=1).mean(),
    ),
    "absolute": (MetricSource.mean("score", transform="abs"), np.abs(values()).mean()),
    "signs": (MetricSource.mean("score", transform="sign_share"), float(((np.sign(values()) + 1) / 2).mean())),
    "paired difference": (
        MetricSource.paired_difference("score", ["question"], {"condition": "original"}, {"condition": "shuffled"}),
        (by_question("original") - by_question("shuffled")).mean(),
    ),
    "column difference": (MetricSource.column_difference("score", "other"), (values() - values("other")).mean()),
    "group difference": (
        MetricSource.difference("score", MEMBER, CONTROL),
        values(role="member").mean() - values(role="control").mean(),
    ),
    "difference in differences": (
        MetricSource.difference(None, MEMBER, CONTROL, terms=(Term(1, {}, "other"), Term(-1, {}, "score"))),
        (values("other", role="member") - values(role="member")).mean()
        - (values("other", role="control") - values(role="control")).mean(),
    ),
    "median": (MetricSource("median", "score"), float(np.median(values()))),
    "quantile": (MetricSource("quantile", "other", options={"q": 0.9}), float(np.quantile(values("other"), 0.9))),
    "max-min": (
        MetricSource("max_min", "score", options={"group": "group"}),
        float(np.ptp([values(group=g).mean() for g in "abc"])),
    ),
    "mean of groups": (
        MetricSource("mean_of_groups", "score", options={"group": "group"}),
        float(np.mean([values(group=g).mean() for g in "abc"])),
    ),
    "an empty group counts": (
        MetricSource("mean_of_groups", "score", options={"group": "group", "groups": list("abcd"), "absent": 0}),
        float(np.sum([values(group=g).mean() for g in "abc"])) / 4,
    ),
    "ratio": (
        MetricSource("ratio", "score", options={"denominator": "tokens"}),
        values().sum() / values("tokens").sum(),
    ),
    "perplexity": (
        MetricSource("perplexity", "score", options={"weight": "tokens"}),
        float(np.exp(-np.average(values(), weights=values("tokens")))),
    ),
    "correlation": (
        MetricSource("correlation", "score", options={"other": "other"}),
        float(np.corrcoef(values(), values("other"))[0, 1]),
    ),
    "auc": (members("auc"), roc_auc(values(role="member"), values(role="control")).value or 0.0),
    "auc of losses": (
        members("auc", higher=False),
        roc_auc(-values(role="member"), -values(role="control")).value or 0.0,
    ),
    "average precision": (
        members("average_precision"),
        pr_auc(values(role="member"), values(role="control")).value or 0.0,
    ),
    "tpr": (
        members("tpr_at_fpr", options={"fpr": "0.29"}),
        tpr_at_fpr(values(role="member"), values(role="control"), "0.29").tpr or 0.0,
    ),
    "exposure of a tier": (
        members("exposure", options={"tier": {"group": "a"}}),
        float(
            np.mean(
                [e.exposure for e in exposure_sampled(-values(role="member", group="a"), -values(role="control"))]
            )
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_rows_give_the_metric(name: str) -> None:
    source, expected = CASES[name]
    assert recompute(source, TABLE) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_weight_counts_as_so_many_copies(name: str) -> None:
    source, _ = CASES[name]
    units = units_of(source, RowTable(TABLE))
    counts = np.random.default_rng(7).integers(0, 4, (9, len(units)))
    # Beside whole draws some without units, with one alone, and without one or the other side.
    counts[5:7, :] = 0
    counts[6, 0] = 1
    sides = [name for name in ("controls", "members", "first", "second") if name in source.options]
    for row, side in zip((7, 8), sides, strict=False):
        counts[row, units.mask(source.options[side])] = 0
    found = STATISTICS[source.statistic](units, source.options)(counts.astype(np.float64))
    for row, value in zip(counts, found, strict=True):
        copied = units.take(np.repeat(np.arange(len(units)), row))
        lost = source.statistic == "max_min" and len(set(copied.column("group"))) < 3
        if lost or not len(copied):  # a contrast of three groups is none of two
            assert np.isnan(value) or "absent" in source.options
            continue
        expected = STATISTICS[source.statistic](copied, source.options)(np.ones((1, len(copied))))[0]
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)
        if sides and 0 in (int(row[units.mask(source.options[side])].sum()) for side in sides):
            assert np.isnan(value)  # of one side alone nothing is known


@pytest.mark.parametrize("name", CASES)
def test_a_source_comes_back_from_json_as_it_was(name: str) -> None:
    source, expected = CASES[name]
    again = MetricSource.from_json(json.loads(json.dumps(source.to_json(), allow_nan=False)))
    assert again.to_json() == source.to_json()
    assert recompute(again, json.loads(json.dumps(TABLE))) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_it_goes_through_the_ledger_and_the_fold(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.create()
    run.run_json.write_text("{}")
    ledger = Ledger(run.ledger, "main")
    writer = AttemptWriter(run, ledger, "evals/test_x.py::test_x[m@cpu-c]", 1)
    writer.start(audit="x")
    source = CASES["difference in differences"][0]
    evidence = Evidence("x", rows=list(TABLE))
    evidence.metric("x.did", Estimate(CASES["difference in differences"][1]), source)
    evidence.metric("x.plain", Estimate(1.0))
    Recorder(writer).record(evidence)
    writer.end("passed", 1.0)
    ledger.close()
    (case,) = read_run(run.path).cases
    assert case.last.sources == {"x.did": source} and set(case.last.metrics) == {"x.did", "x.plain"}


def test_a_source_of_another_version_costs_no_metric(tmp_path: Path) -> None:
    from lm_audit.runstore.fold import fold
    from lm_audit.runstore.reader import Line

    record = {
        "kind": "metric",
        "t": 1.0,
        "case_id": "c",
        "attempt": 1,
        "name": "x.m",
        "estimate": {"value": 1.0},
        "source": {"within": "nonsense"},
    }
    cases, damaged = fold([Line("main-1.jsonl", 1, record)])
    assert cases[0].last.metrics["x.m"].value == 1.0 and cases[0].last.sources == {} and len(damaged) == 1
    assert MetricSource.from_json({"column": "a", "of_the_future": 1}) == MetricSource.mean("a")


def test_what_the_rows_do_not_give_is_named() -> None:
    evidence = Evidence("x", rows=list(TABLE))
    evidence.metric("x.right", Estimate(values().mean()), MetricSource.mean("score"))
    evidence.metric("x.column", Estimate(1.0), MetricSource.mean("scores"))
    evidence.metric("x.drawn", Estimate(9.0), MetricSource.mean("score", seeded=True))
    evidence.metric("x.none", Estimate.not_estimable("too few"), MetricSource.mean("score"))
    evidence.metric("x.wrong", Estimate(values().mean() + 1e-6), MetricSource.mean("score"))
    evidence.metric("x.p", Estimate(0.5, unit="p"))
    evidence.metric("x.silent", Estimate(0.5))
    problems = unreproduced(evidence)
    assert [problem.partition(":")[0] for problem in problems] == ["x.column", "x.wrong"]
    assert "no row has the column scores" in problems[0]
    assert unsourced(evidence) == ["x.silent"]


@pytest.mark.parametrize(
    ("recorded", "given", "relative", "wrong"),
    [
        (200.0, 200.1, 1e-3, False),  # within a thousandth of either
        (200.1, 200.0, 1e-3, False),
        (200.0, 200.3, 1e-3, True),
        (200.3, 200.0, 1e-3, True),
        (100.0, 101.0, 0.00995, False),  # of the larger of the two
        (101.0, 100.0, 0.00995, False),
        (2.0, 2.5, 0.2, False),  # what is allowed is allowed whole
        (0.0, 4e-7, 1e-3, False),  # small numbers as a thousandth
        (0.0, 4e-6, 1e-3, True),
        (1e-7, 2e-7, 1e-9, True),
    ],
)
def test_what_counts_as_the_same_number(recorded: float, given: float, relative: float, wrong: bool) -> None:
    evidence = Evidence("x", rows=[{"score": given}])
    evidence.metric("x.m", Estimate(recorded), MetricSource.mean("score"))
    assert bool(unreproduced(evidence, relative=relative)) is wrong


def test_metrics_that_say_no_direction_are_named_but_p_values() -> None:
    evidence = Evidence("x")
    evidence.metric("x.silent", Estimate(0.5))
    evidence.metric("x.said", Estimate(0.5, better="higher"))
    evidence.metric("x.p", Estimate(0.5, unit="p"))
    evidence.metric("x.p said", Estimate(0.5, unit="p", better="lower"))
    assert undirected(evidence) == ["x.silent"]


def test_a_weighted_form_is_that_of_the_audit_whose_name_comes_first() -> None:
    from lm_audit.audits.leakage.statistics import WEIGHTED

    register_statistic("leakage.mine", lambda some, options: 0.0)
    assert {name: weighted_form(name) for name in WEIGHTED} == WEIGHTED
    for name in ("leakage.mine", "leakage.no_such", "needle.cliff", "unheard", "unheard.of", "os.path.join"):
        assert weighted_form(name) is None


def test_functions_of_an_audit_are_found_by_name_and_nothing_else_is_imported() -> None:
    register_statistic("mine.longest", lambda some, options: max(len(str(row[options["of"]])) for row in some))
    source = MetricSource("mine.longest", where={"group": "a"}, options={"of": "text"})
    assert recompute(source, TABLE) == 7
    for name in ("os.system", "needle.no_such", "lm_audit.cli", "unheard"):
        with pytest.raises(DataError, match="not known"):
            recompute(MetricSource(name), TABLE)
    with pytest.raises(ValueError, match="begins with the audit"):
        register_statistic("longest", lambda some, options: 0.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"clusters": "file"}, "must be a tuple"),
        ({"clusters": ("a", "b", "c")}, "at most 2"),
        ({"within": "median"}, "must be mean"),
        ({"transform": "log"}, "must be abs"),
        ({"scale": 0.0}, "not 0"),
    ],
)
def test_a_source_without_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MetricSource("mean", "score", **fields)


def test_no_row_no_value() -> None:
    assert recompute(MetricSource.mean("score", {"group": "z"}), TABLE) is None
    assert recompute(members("auc", where={"role": "member"}), TABLE) is None
