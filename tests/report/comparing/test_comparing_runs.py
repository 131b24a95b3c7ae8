"""Comparison of two runs: pairs, tests, directions, and what it takes to fail CI."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.cli import main
from lm_audit.evidence import Control
from lm_audit.report.comparison.interval_difference import difference_of
from lm_audit.report.comparison.page import render_comparison
from lm_audit.report.comparison.runs import MetricChange, RunComparison, compare_runs
from lm_audit.report.comparison.text import comparison_lines
from lm_audit.runstore.records import Verdict
from lm_audit.runstore.run import read_run
from lm_audit.sources import MetricSource
from lm_audit.stats.estimate import Estimate
from tests.report.made_runs import MadeCase, write_run

CASE = "evals/test_bias.py::test_x[m@cpu-c]"


def hits(p: float, n: int = 200, seed: int = 0, prefix: str = "i") -> list[dict[str, object]]:
    """``n`` items of which a share ``p`` hits; the same seed gives the same order of difficulty."""
    u = np.random.default_rng(seed).permutation(n) / n
    return [{"item": f"{prefix}{i}", "noise": float(u[i]), "hit": int(u[i] < p)} for i in range(n)]


def case(
    rows: list[dict[str, object]], *, better: str | None = "lower", scale: float = 1.0, **more: object
) -> MadeCase:
    """A case whose metric is the mean of its items' hits."""
    value = scale * sum(int(str(row["hit"])) for row in rows) / len(rows)
    estimate = Estimate(value, max(0.0, value - 0.07 * scale), value + 0.07 * scale, len(rows), better=better)
    source = {"bias.hit": MetricSource.mean("hit", scale=scale)}
    made = MadeCase(CASE, "bias", "m", metrics={"bias.hit": estimate}, rows=rows, sources=source)
    return replace(made, **more)  # type: ignore[arg-type]


def compared(tmp_path: Path, a: list[MadeCase], b: list[MadeCase], **options: Any) -> RunComparison:
    """The comparison of two made runs."""
    runs = [read_run(write_run(tmp_path / name, cases)) for name, cases in (("a", a), ("b", b))]
    return compare_runs(*runs, **options)


def only(comparison: RunComparison) -> MetricChange:
    """The single change of a comparison of one metric."""
    (change,) = comparison.changes
    return change


def test_shares_on_the_same_items_are_compared_in_pairs_by_mcnemar(tmp_path: Path) -> None:
    from scipy.stats import binomtest

    a, b = hits(0.40), hits(0.48)
    change = only(compared(tmp_path, [case(a)], [case(b)]))
    gained = sum(x["hit"] == 0 and y["hit"] == 1 for x, y in zip(a, b, strict=True))
    assert (change.basis, change.pairs, change.only_a, change.only_b) == ("paired", 200, 0, 0)
    assert change.difference.value == pytest.approx(0.08)
    assert change.p == pytest.approx(binomtest(gained, gained).pvalue)
    assert change.direction == "worse" and change.regression


@pytest.mark.parametrize(
    ("better", "direction"), [("lower", "worse"), ("higher", "better"), (None, "changed"), ("target:0.5", "better")]
)
def test_direction_follows_what_is_better(tmp_path: Path, better: str | None, direction: str) -> None:
    change = only(compared(tmp_path, [case(hits(0.30), better=better)], [case(hits(0.45), better=better)]))
    assert change.direction == direction


def test_a_target_is_compared_by_distance_also_across_it(tmp_path: Path) -> None:
    a = case(hits(0.40), better="target:50", scale=100.0)
    near = only(compared(tmp_path / "1", [a], [case(hits(0.61), better="target:50", scale=100.0)]))
    assert near.difference.value == pytest.approx(21) and near.direction == "reversed"
    far = only(compared(tmp_path / "2", [a], [case(hits(0.85), better="target:50", scale=100.0)]))
    assert far.direction == "worse" and far.basis == "paired"


def test_items_of_one_run_only_are_counted_and_named(tmp_path: Path) -> None:
    a, b = hits(0.4), hits(0.4)
    b = b[:150] + [{**row, "item": f"new{row['item']}"} for row in b[150:180]]
    change = only(compared(tmp_path, [case(a)], [case(b)]))
    assert (change.pairs, change.only_a, change.only_b) == (150, 50, 30)


def test_other_items_are_two_samples(tmp_path: Path) -> None:
    change = only(compared(tmp_path, [case(hits(0.2))], [case(hits(0.5, seed=1, prefix="other"))]))
    assert change.basis == "two samples" and change.direction == "worse"


def test_without_items_the_intervals_decide(tmp_path: Path) -> None:
    far = only(compared(tmp_path, [replace(case(hits(0.2)), rows=[])], [replace(case(hits(0.6)), rows=[])]))
    assert far.basis == "intervals" and far.direction == "worse"
    assert far.difference.low is not None and far.difference.low > 0.2


def test_the_interval_of_a_difference_matches_the_textbook() -> None:
    # Newcombe's method 10 is this recovery over Wilson intervals: 56/70 against 48/80 gives [0.0524, 0.3339].
    from lm_audit.stats import wilson

    difference, p = difference_of(wilson(48, 80), wilson(56, 70))
    assert difference.value == pytest.approx(0.2)
    assert difference.low == pytest.approx(0.0524, abs=5e-4) and difference.high == pytest.approx(0.3339, abs=5e-4)
    assert p is not None and 0.004 < p < 0.015


def test_what_cannot_differ_makes_no_test_harder(tmp_path: Path) -> None:
    names = [CASE.replace("-c]", f"-c{k}]") for k in range(5)]
    a = [replace(case(hits(0.40, seed=k)), case_id=name) for k, name in enumerate(names)]
    b = [replace(case(hits(0.43 if k == 0 else 0.40, seed=k)), case_id=name) for k, name in enumerate(names)]
    changes = compared(tmp_path, a, b).changes
    # The four cases without any difference cannot be significant and take nothing from the first.
    assert changes[0].p == pytest.approx(2 * 0.5**6) and changes[0].adjusted == pytest.approx(2 * 0.5**6)
    assert [change.direction for change in changes] == ["worse", "same", "same", "same", "same"]


def test_void_numbers_and_controls_fail_nothing(tmp_path: Path) -> None:
    control = replace(
        case(hits(0.1)),
        case_id=CASE.replace("-c]", "-control]"),
        outcome="failed",
        control=Control("positive", False, "x", "y"),
    )
    comparison = compared(tmp_path, [case(hits(0.3))], [case(hits(0.8)), control])
    assert only(comparison).void and comparison.regressions == ()
    assert comparison.appeared == (control.case_id,)


def test_states_that_change_and_cases_that_come_and_go(tmp_path: Path) -> None:
    met, missed = (Verdict("bias.hit", word, "<= 0.5", "why") for word in ("met", "missed"))
    gone = replace(case(hits(0.4)), case_id="evals/test_bias.py::test_x[m@cpu-gone]")
    comparison = compared(
        tmp_path, [case(hits(0.4), verdicts=[met]), gone], [case(hits(0.4), verdicts=[missed], outcome="failed")]
    )
    assert [(s.before.name, s.after.name) for s in comparison.states] == [("met", "missed")]
    assert comparison.vanished == (gone.case_id,)
    html = render_comparison(replace(comparison, remarks=("cases of Base-7B are in A alone",)))
    assert "<li>Cases of Base-7B are in A alone.</li>" in html
    assert "Vanished" in html and gone.case_id in html


def test_models_of_other_names_are_matched_only_when_asked(tmp_path: Path) -> None:
    a, b = [case(hits(0.3))], [replace(case(hits(0.5)), model="v2", case_id=CASE.replace("m@", "v2@"))]
    apart = compared(tmp_path, a, b)
    assert apart.changes == () and "--across-models" in apart.remarks[0]
    runs = [read_run(tmp_path / name) for name in "ab"]
    assert only(compare_runs(*runs, across_models=True)).direction == "worse"


def test_a_value_that_is_not_estimable_is_unknown(tmp_path: Path) -> None:
    none = MadeCase(CASE, "bias", "m", metrics={"bias.hit": Estimate.not_estimable("too few items")})
    change = only(compared(tmp_path, [case(hits(0.3))], [none]))
    assert change.direction == "not comparable" and change.adjusted is None


def test_the_command_exits_with_one_on_a_regression_and_writes_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "good", [case(hits(0.2))])
    write_run(tmp_path / "bad", [case(hits(0.5))])
    page = tmp_path / "out" / "c.html"
    compare = ["compare", "--reports", str(tmp_path)]
    assert main([*compare, "good", "bad", "--html", str(page)]) == 1
    assert "1 significant regression at 5 %" in capsys.readouterr().out and "worse" in page.read_text()
    assert main([*compare, "bad", "good"]) == 0
    assert main([*compare, "good", "nowhere"]) == 2
    assert "no run 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("outcome", "state"), [("crashed", "crashed"), ("error", "error"), (None, "unfinished"), ("failed", "error")]
)
def test_what_was_measured_and_broke_since_is_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outcome: str | None, state: str
) -> None:
    other = replace(case(hits(0.4)), case_id="evals/test_bias.py::test_x[m@cpu-other]")
    broken = MadeCase(CASE, "bias", "m", outcome=outcome, message="boom", cause="exception")
    write_run(tmp_path / "good", [case(hits(0.4)), other])
    write_run(tmp_path / "part", [broken, other])
    assert main(["compare", "--reports", str(tmp_path), "good", "part"]) == 1
    told = capsys.readouterr().out
    assert f"not measured now: {CASE}: {state}" in told and "1 case that was measured before broke" in told
    assert main(["compare", "--reports", str(tmp_path), "part", "good"]) == 0
    comparison = compare_runs(*(read_run(tmp_path / name) for name in ("good", "part")))
    assert "Worse: 1 case that was measured before broke." in render_comparison(comparison)


def test_a_case_that_was_skipped_or_not_selected_is_told_and_fails_nothing(tmp_path: Path) -> None:
    other = replace(case(hits(0.4)), case_id="evals/test_bias.py::test_x[m@cpu-other]")
    skipped = MadeCase(CASE, "bias", "m", outcome="skipped", message="needs the data")
    for k, after in enumerate(([skipped, other], [other])):
        found = compared(tmp_path / str(k), [case(hits(0.4)), other], after)
        assert not found.failed and found.unmeasured == () and len(found.states) + len(found.vanished) == 1


def test_a_killed_run_has_not_measured_what_it_planned(tmp_path: Path) -> None:
    other = replace(case(hits(0.4)), case_id="evals/test_bias.py::test_x[m@cpu-other]")
    before = read_run(write_run(tmp_path / "a", [case(hits(0.4)), other]))
    after = read_run(write_run(tmp_path / "b", [other], planned=[CASE], finished=False))
    found = compare_runs(before, after)
    assert [one.case_id for one in found.unmeasured] == [CASE] and found.failed


@pytest.mark.parametrize("after", ["nothing", "another model", "no value"])
def test_where_nothing_can_be_compared_nothing_is_said_to_be_no_regression(tmp_path: Path, after: str) -> None:
    none = MadeCase(CASE, "bias", "m", metrics={"bias.hit": Estimate.not_estimable("too few items")})
    moved = replace(case(hits(0.4)), model="v2", case_id=CASE.replace("m@", "v2@"))
    found = compared(tmp_path, [case(hits(0.3))], {"nothing": [], "another model": [moved], "no value": [none]}[after])
    text = "\n".join(comparison_lines(found))
    assert found.failed and "nothing could be compared" in text and "regression" not in text
    assert "Nothing could be compared." in render_comparison(found)
    nothing_before = compared(tmp_path / "2", [], [moved])
    assert not nothing_before.failed


def test_what_another_processor_computes_is_no_change(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(-3, 1, 40)
    for k, (shift, word) in enumerate(((4e-4, "same"), (0.05, "worse"))):
        sides = [
            [{"item": f"i{j}", "x": float(v + add * (1 + 0.1 * (j % 3)))} for j, v in enumerate(values)]
            for add in (0.0, shift)
        ]
        cases = [
            MadeCase(
                CASE, "bias", "m", rows=rows, sources={"bias.x": MetricSource.mean("x")},
                metrics={"bias.x": Estimate(float(np.mean([r["x"] for r in rows])), -4, -2, 40, better="lower")},
            )
            for rows in sides
        ]  # fmt: skip
        change = only(compared(tmp_path / str(k), cases[:1], cases[1:]))
        assert change.direction == word and change.difference.value == pytest.approx(shift * 1.1, rel=0.1)


def test_options_on_which_numbers_depend_are_told_where_they_differ(tmp_path: Path) -> None:
    base: dict[str, Any] = {
        "size": "smoke",
        "limit": None,
        "seed": 0,
        "data": {"crows_pairs": "a.csv"},
        "audit": {"bias_margin": 0.5},
    }
    other: dict[str, Any] = {
        "size": "smoke",
        "limit": 12,
        "seed": 0,
        "data": {"crows_pairs": "b.csv"},
        "audit": {"bias_margin": 0.2},
    }
    runs = [
        read_run(write_run(tmp_path / f"r{k}", [case(hits(0.4))], options=options | {"workers": k}))
        for k, options in enumerate((base, other, {**base, "size": "standard"}))
    ]
    assert compare_runs(runs[0], runs[0]).remarks == ()
    assert compare_runs(runs[0], runs[1]).remarks == (
        "the runs differ in limit: none and 12",
        "the runs differ in crows pairs: a.csv and b.csv",
        "the runs differ in bias margin: 0.5 and 0.2",
    )
    assert compare_runs(runs[0], runs[2]).remarks == ("the runs differ in size: smoke and standard",)


def test_the_same_run_twice_shows_no_change(shown: Path) -> None:
    run = read_run(shown)
    comparison = compare_runs(run, run)
    assert not (comparison.states or comparison.appeared or comparison.vanished)
    assert {change.direction for change in comparison.changes} <= {"same", "not comparable"}
    assert comparison_lines(comparison)[-1].startswith("0 significant regressions")
