"""What a comparison decides: pairs with their clusters, families, words, and what it takes to fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.cli import main
from lm_audit.errors import UsageError
from lm_audit.evidence import Control
from lm_audit.report.comparison.interval_difference import difference_of
from lm_audit.report.comparison.page import render_comparison
from lm_audit.report.comparison.runs import MetricChange, RunComparison, compare_runs
from lm_audit.report.comparison.text import comparison_lines
from lm_audit.runstore.run import read_run
from lm_audit.sources import MetricSource, register_statistic
from lm_audit.sources.recomputing import recompute
from lm_audit.stats.estimate import Estimate
from tests.report.made_runs import MadeCase, write_run

Rows = list[dict[str, Any]]


def made(
    name: str, audit: str, metrics: Mapping[str, tuple[MetricSource, str | None]], rows: Rows, **more: Any
) -> MadeCase:
    """A case whose metrics are what their sources make of the rows; the first is its headline."""
    estimates = {
        metric: Estimate(recompute(source, rows), n=len(rows), better=better, unit=more.get("unit"))
        for metric, (source, better) in metrics.items()
    }
    more.pop("unit", None)
    sources = {metric: source for metric, (source, _) in metrics.items()}
    case_id = f"evals/test_{audit}.py::test_x[m@cpu-{name}]"
    return MadeCase(case_id, audit, "m", metrics=estimates, rows=rows, sources=sources, **more)


def compared(folder: Path, a: list[MadeCase], b: list[MadeCase], **options: Any) -> RunComparison:
    """The comparison of two made runs."""
    return compare_runs(*(read_run(write_run(folder / n, cases)) for n, cases in (("a", a), ("b", b))), **options)


def order_effect(values: np.ndarray[Any, Any], name: str = "c", audit: str = "leakage") -> MadeCase:
    """A case of one paired difference an item, original minus shuffled."""
    rows = [
        {"item": f"q{k}:{c}", "question": f"q{k}", "condition": c, "logprob": float(v if c == "original" else 0.0)}
        for k, v in enumerate(values)
        for c in ("original", "shuffled")
    ]
    source = MetricSource.paired_difference(
        "logprob", ["question"], {"condition": "original"}, {"condition": "shuffled"}
    )
    return made(name, audit, {f"{audit}.order_effect": (source, "lower")}, rows, unit="nats")


def test_an_order_effect_that_appears_fails_the_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = np.random.default_rng(5).normal(0, 0.2, (2, 12))
    write_run(tmp_path / "a", [order_effect(noise[0] - noise[0].mean() - 0.01)])
    write_run(tmp_path / "b", [order_effect(noise[1] - noise[1].mean() + 0.80)])
    assert main(["compare", "--reports", str(tmp_path), "a", "b"]) == 1
    assert "1 significant regression" in capsys.readouterr().out
    assert main(["compare", "--reports", str(tmp_path), "b", "a"]) == 0


def test_a_large_effect_on_twelve_items_is_found_among_hundreds_of_metrics(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    runs: tuple[list[MadeCase], list[MadeCase]] = ([], [])
    for audit in ("leakage", "bias", "needle", "privacy", "faithfulness"):
        for k in range(12):
            before = rng.normal(size=12)
            hit = audit == "leakage" and k < 2
            after = before + 3 * hit + 0.1 * rng.normal(size=12)
            for cases, values in zip(runs, (before, after), strict=True):
                one = order_effect(values, f"b{k}", audit)
                metrics = {name: (source, "lower") for name, source in one.sources.items()}
                metrics |= {f"{audit}.m{j}": (MetricSource.mean("logprob"), "lower") for j in range(3)}
                cases.append(made(f"b{k}", audit, metrics, [dict(row) for row in one.rows]))
    comparison = compared(tmp_path, *runs)
    assert len(comparison.changes) == 240
    found = comparison.regressions
    assert {change.case_id[-3:-1] for change in found} == {"b0", "b1"} and len(found) == 2
    assert all(change.p == 2**-11 and change.decided for change in found)


def test_clusters_are_exchanged_as_wholes(tmp_path: Path) -> None:
    # 6 writers of 20 pairs each that all move together: 120 items, but only 6 independent changes.
    rows = [{"item": f"i{k}", "writer": f"w{k // 20}", "hit": 0} for k in range(120)]
    after = [{**row, "hit": int(row["writer"] != "w0")} for row in rows]
    for clusters, p in (((), 2 * 0.5**100), (("writer",), 2 * 0.5**5)):
        metric = {"bias.hit": (MetricSource.mean("hit", clusters=clusters), "lower")}
        (change,) = compared(
            tmp_path / str(len(clusters)), [made("c", "bias", metric, rows)], [made("c", "bias", metric, after)]
        ).changes
        assert change.p == pytest.approx(p) and change.basis == "paired"


def grid(effect: float, rng: np.random.Generator, rows: int = 8, columns: int = 8) -> tuple[Rows, Rows]:
    """Cells of templates x pairs whose change has a part of each template and each pair."""
    change = effect + rng.normal(size=(rows, 1)) + rng.normal(size=(1, columns)) + rng.normal(size=(rows, columns))
    base: Rows = [
        {"item": f"{i}/{j}", "template": f"t{i}", "pair": f"p{j}", "value": float(rng.normal())}
        for i in range(rows)
        for j in range(columns)
    ]
    moved = [{**row, "value": row["value"] + float(d)} for row, d in zip(base, change.ravel(), strict=True)]
    return base, moved


def test_crossed_clusters_are_a_two_way_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    metric = {"bias.mean": (MetricSource.mean("value", clusters=("template", "pair")), "lower")}
    before, after = grid(2.5, rng)
    (change,) = compared(
        tmp_path / "1", [made("c", "bias", metric, before)], [made("c", "bias", metric, after)]
    ).changes
    assert change.direction == "worse" and change.clusters == 8
    few = grid(2.5, rng, 4, 5)
    (change,) = compared(tmp_path / "2", *([made("c", "bias", metric, side)] for side in few)).changes
    assert change.p is None and change.direction == "not shown" and "needs 6" in str(change.difference.note)


@pytest.mark.parametrize(
    "source",
    [
        MetricSource.members("auc", "score", {"role": "m"}, {"role": "c"}),
        MetricSource.members("exposure", "score", {"role": "m"}, {"role": "c"}),
        MetricSource("max_min", "score", options={"group": "role"}),
        MetricSource.difference("score", {"role": "m"}, {"role": "c"}),
        MetricSource("compare.spread", options={"of": "score"}),
    ],
    ids=lambda source: source.statistic,
)
def test_what_is_no_mean_is_paired_too(tmp_path: Path, source: MetricSource) -> None:
    register_statistic("compare.spread", lambda some, options: float(np.ptp([row[options["of"]] for row in some])))
    rng = np.random.default_rng(8)
    rows: Rows = [{"item": f"i{k}", "role": "mc"[k % 2], "score": float(rng.normal())} for k in range(40)]
    after = [{**row, "score": row["score"] + 3 * (row["role"] == "m") + 0.1 * float(rng.normal())} for row in rows]
    metric = {"privacy.x": (source, "lower")}
    (change,) = compared(tmp_path, [made("c", "privacy", metric, rows)], [made("c", "privacy", metric, after)]).changes
    assert (change.basis, change.pairs, change.direction) == ("paired", 40, "worse")
    assert change.difference.low is not None and change.difference.low > 0


def test_headlines_are_decided_and_the_rest_is_exploratory(tmp_path: Path) -> None:
    rows = [{"item": f"i{k}", "hit": int(k % 2), "other": 0} for k in range(60)]
    after = [{**row, "other": 1} for row in rows]
    metrics = {"x.hit": (MetricSource.mean("hit"), "lower"), "x.other": (MetricSource.mean("other"), "lower")}
    comparison = compared(tmp_path, [made("c", "x", metrics, rows)], [made("c", "x", metrics, after)])
    hit, other = comparison.changes
    assert (hit.direction, hit.decided) == ("same", True)
    assert (other.direction, other.decided, other.regression) == ("worse", False, False)
    assert comparison.regressions == () and not comparison.failed
    text, page = "\n".join(comparison_lines(comparison)), render_comparison(comparison)
    assert "worse (exploratory)" in text and "1 exploratory: 1 worse" in text
    assert page.index("Headlines: decided") < page.index("All other metrics: exploratory")


def test_three_words_for_three_outcomes(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows: Rows = [{"item": f"i{k}", "v": float(rng.normal())} for k in range(30)]
    near = [{**row, "v": row["v"] + 0.01 * float(rng.normal())} for row in rows]
    far = [{**row, "v": row["v"] + float(rng.normal())} for row in rows]
    plain, margin = MetricSource.mean("v"), MetricSource.mean("v", margin=0.1)

    def word(name: str, source: MetricSource, after: Rows) -> MetricChange:
        metric = {"x.v": (source, "lower")}
        (change,) = compared(tmp_path / name, [made("c", "x", metric, rows)], [made("c", "x", metric, after)]).changes
        return change

    assert word("identical", plain, rows).direction == "same"
    assert word("equivalent", margin, near).direction == "same"
    assert word("no margin", plain, near).direction == "not shown"
    assert word("uncertain", margin, far).direction == "not shown"
    none = replace(made("c", "x", {}, rows), metrics={"x.v": Estimate.not_estimable("too few")})
    (change,) = compared(tmp_path / "none", [made("c", "x", {"x.v": (plain, "lower")}, rows)], [none]).changes
    assert change.direction == "not comparable" and change.a.value is not None and change.b.value is None


def test_intervals_without_width_are_no_evidence(tmp_path: Path) -> None:
    # Exposure at its cap: 200 twins allow log2(201) bits, 201 twins log2(202).
    a, b = (Estimate(c, c, c, 12, better="lower") for c in (np.log2(201), np.log2(202)))
    difference, p = difference_of(a, b)
    assert p is None and difference.low is None and "without width" in str(difference.note)
    cases = [[MadeCase("evals/t.py::t[m@cpu-c]", "privacy", "m", metrics={"privacy.e": e})] for e in (a, b)]
    (change,) = compared(tmp_path, *cases).changes
    assert change.direction == "not comparable" and change.adjusted is None
    for lacking in (Estimate(1.0), Estimate(1.0, 0.5, 1.5, 12), Estimate(1.0, 0.5, 1.5, 12, confidence=0.9)):
        assert difference_of(a, lacking)[1] is None
    assert difference_of(Estimate(1.0, 0.9, 1.1, 4), Estimate(2.0, 1.9, 2.1, 4))[1] is None


def test_p_values_are_no_metrics(tmp_path: Path) -> None:
    metrics = {"x.m": Estimate(0.4, 0.3, 0.5, 50), "x.p": Estimate(0.01, n=50, unit="p")}
    cases = [MadeCase("evals/t.py::t[m@cpu-c]", "x", "m", metrics=metrics)]
    assert [change.metric for change in compared(tmp_path, cases, cases).changes] == ["x.m"]


def test_an_audit_that_became_void_fails_the_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = order_effect(np.arange(12.0))

    def control(passed: bool) -> MadeCase:
        return MadeCase(
            "evals/test_leakage.py::test_control[m@cpu-p]", "leakage", "m", outcome="passed" if passed else "failed",
            control=Control("positive", passed, "found", "found" if passed else "nothing"),
        )  # fmt: skip

    write_run(tmp_path / "a", [case, control(True)])
    write_run(tmp_path / "b", [case, control(False)])
    assert main(["compare", "--reports", str(tmp_path), "a", "b"]) == 1
    out = capsys.readouterr().out
    assert "void now: leakage on m" in out or "void now: leakage" in out
    assert main(["compare", "--reports", str(tmp_path), "b", "a"]) == 0
    assert main(["compare", "--reports", str(tmp_path), "b", "b"]) == 0
    runs = [read_run(tmp_path / name) for name in "ab"]
    assert "1 audit void that was measured before" in render_comparison(compare_runs(*runs))


def test_across_models_pairs_by_name_or_asks(tmp_path: Path) -> None:
    def of(model: str, values: np.ndarray[Any, Any]) -> MadeCase:
        case = order_effect(values)
        return replace(case, model=model, case_id=case.case_id.replace("m@", f"{model}@"))

    low, high = np.zeros(12), np.full(12, 2.0) + np.arange(12) / 10
    base = of("base", low)
    two = compared(tmp_path / "1", [base, of("mine", low)], [base, of("mine", high)], across_models=True)
    assert [(c.case_id_b, c.direction) for c in two.changes] == [
        ("evals/test_leakage.py::test_x[base@cpu-c]", "same"),
        ("evals/test_leakage.py::test_x[mine@cpu-c]", "worse"),
    ]
    one = compared(tmp_path / "2", [base, of("v1", low)], [base, of("v2", high)], across_models=True)
    assert [c.direction for c in one.changes] == ["same", "worse"]
    with pytest.raises(UsageError, match=r"which models .* v1, .* v2, v3"):
        compared(tmp_path / "3", [of("v1", low)], [of("v2", low), of("v3", high)], across_models=True)


def test_a_run_without_sources_is_read_by_those_of_the_other(tmp_path: Path) -> None:
    case = order_effect(np.arange(12.0))
    (change,) = compared(tmp_path / "1", [replace(case, sources={})], [case]).changes
    assert change.basis == "paired"
    other = {name: replace(source, within="max") for name, source in case.sources.items()}
    (change,) = compared(tmp_path / "2", [replace(case, sources=other)], [case]).changes
    assert change.basis == "none" and "different statistics" in str(change.difference.note)
