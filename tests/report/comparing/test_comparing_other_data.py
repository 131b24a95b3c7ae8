"""Verdicts that are lost: other items under the same names, headlines without a value, audits that were skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.cli import main
from lm_audit.report.comparison.models_compared import told_comparisons
from lm_audit.report.comparison.page import render_comparison
from lm_audit.report.comparison.runs import MetricChange, RunComparison, compare_runs
from lm_audit.report.comparison.text import comparison_lines
from lm_audit.runstore.run import read_run
from lm_audit.sources import MetricSource, content_digest, register_statistic
from lm_audit.stats.estimate import Estimate
from tests.report.made_runs import MadeCase, write_run

Rows = list[dict[str, Any]]
N = 40
SOURCE = MetricSource.mean("v")


def items(shift: float = 0.0, text: str = "data", n: int = N, seed: int = 0, changed: int | None = None) -> Rows:
    """``n`` items of a data set; the first ``changed`` of them (all by default) hold ``text``, the others "data"."""
    rng = np.random.default_rng(seed)
    noise = np.random.default_rng([seed, round(abs(shift) * 100)]).normal(0, 0.1, n)
    return [
        {
            "item": f"i{k}",
            "content": content_digest(text if changed is None or k < changed else "data", k),
            "v": float(rng.normal() + shift + noise[k]),
        }
        for k in range(n)
    ]


def case(rows: Rows, name: str = "c", source: MetricSource | None = SOURCE, **more: Any) -> MadeCase:
    """A case whose headline is the mean of its rows."""
    values = np.array([row["v"] for row in rows])
    half = float(2 * values.std() / len(values) ** 0.5)
    mean = Estimate(float(values.mean()), float(values.mean()) - half, float(values.mean()) + half, len(values), better="lower")  # fmt: skip  # noqa: E501
    sources = {} if source is None else {"x.v": source}
    fields: dict[str, Any] = {"metrics": {"x.v": mean}, "rows": rows, "sources": sources} | more
    return MadeCase(f"evals/t_x.py::t[m@cpu-{name}]", "x", "m", **fields)


def compared(
    folder: Path,
    a: Sequence[MadeCase],
    b: Sequence[MadeCase],
    *,
    metadata: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
) -> RunComparison:
    pairs = zip("ab", (a, b), metadata, strict=True)
    return compare_runs(*(read_run(write_run(folder / name, cases, **told)) for name, cases, told in pairs))


def only(comparison: RunComparison) -> MetricChange:
    (change,) = comparison.changes
    return change


def said(comparison: RunComparison) -> str:
    return "\n".join([*comparison_lines(comparison, width=200), render_comparison(comparison)])


@pytest.mark.parametrize("source", [SOURCE, None], ids=["rows", "intervals"])
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_other_data_under_the_same_names_are_never_paired_and_no_pass(
    source: MetricSource | None, shift: float, tmp_path: Path
) -> None:
    good = case(items(), "good")
    found = compared(tmp_path, [case(items(), source=source), good], [case(items(shift, "other"), source=source), good])
    change = found.changes[0]
    assert (change.direction, change.pairs, change.p, change.basis) == ("not comparable", 0, None, "none")
    assert found.failed and not found.regressions and [one.kind for one in found.unmeasured] == ["refused"]
    text = said(found)
    assert f"x.v: other data: {N} of {N} items of one name hold another text, such as i0" in text
    assert "1 case of other data or another unit, which cannot be compared" in text and "Not comparable: 1 case" in text
    assert "Worse" not in text
    (told,) = told_comparisons([found])
    assert told["unmeasured"][0]["reason"].startswith("other data")


def test_the_command_says_so_and_exits_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a", "data"), ("b", "other")):
        write_run(tmp_path / name, [case(items(text=text))])
    assert main(["compare", "--reports", str(tmp_path), "a", "a"]) == 0
    capsys.readouterr()
    assert main(["compare", "--reports", str(tmp_path), "a", "b"]) == 1
    assert "not comparable now: " in (out := capsys.readouterr().out) and "nothing could be compared" in out


def test_some_other_items_leave_the_pairs_and_are_counted(tmp_path: Path) -> None:
    change = only(compared(tmp_path / "1", [case(items())], [case(items(0.5, "other", changed=10))]))
    assert (change.basis, change.pairs, change.others, change.only_a) == ("paired", 30, 10, 0)
    assert change.direction == "worse"
    same = compared(tmp_path / "2", [case(items())], [case(items(text="other", changed=10))])
    assert "10 of other data" in said(same) and not only(same).identical and not same.failed
    # Half of them is the least that is called the same set.
    assert only(compared(tmp_path / "3", [case(items())], [case(items(text="other", changed=20))])).pairs == 20
    assert only(compared(tmp_path / "4", [case(items())], [case(items(text="other", changed=21))])).refused


@pytest.mark.parametrize("side", [0, 1])
def test_runs_from_before_there_were_digests_still_compare(side: int, tmp_path: Path) -> None:
    sides = [items(), items(0.5, "other")]
    for row in sides[side]:
        del row["content"]
    assert only(compared(tmp_path, *([case(rows)] for rows in sides))).direction == "worse"


def test_a_digest_that_one_run_lacks_is_no_change_of_an_audits_own_statistic(tmp_path: Path) -> None:
    register_statistic("other_data.mean", lambda rows, options: float(np.mean([row["v"] for row in rows])))
    source = MetricSource("other_data.mean", "v")
    plain = [{key: value for key, value in row.items() if key != "content"} for row in items()]
    assert only(compared(tmp_path, [case(plain, source=source)], [case(items(), source=source)])).identical


def test_units_of_several_rows_are_told_apart_too(tmp_path: Path) -> None:
    def rows(text: str) -> Rows:
        return [
            {**row, "item": f"{row['item']}:{c}", "question": row["item"], "condition": c}
            for row in items(text=text)
            for c in ("original", "shuffled")
        ]

    source = MetricSource.paired_difference("v", ["question"], {"condition": "original"}, {"condition": "shuffled"})
    sides = [[case(rows(text), source=source)] for text in ("data", "other")]
    assert str(only(compared(tmp_path, *sides)).refused).startswith(f"other data: {N} of {N}")


def test_items_drawn_by_another_seed_are_two_samples(tmp_path: Path) -> None:
    sides = [case(items(seed=1)), case(items(3.0, "other", seed=2))]
    seeds: tuple[Mapping[str, Any], ...] = ({"options": {"seed": 1}}, {"options": {"seed": 2}})
    found = compared(tmp_path / "1", sides[:1], sides[1:], metadata=(seeds[0], seeds[1]))
    assert (only(found).basis, only(found).direction) == ("two samples", "worse")
    assert any("differ in seed" in remark for remark in found.remarks)
    assert only(compared(tmp_path / "2", sides[:1], sides[1:], metadata=(seeds[0], seeds[0]))).refused


def test_another_unit_is_not_compared(tmp_path: Path) -> None:
    share, percent = (Estimate(v, v * 0.9, v * 1.1, 50, unit=u) for v, u in ((0.4, "share"), (40.0, "%")))
    sides = [[case(items(), metrics={"x.v": one})] for one in (share, percent)]
    found = compared(tmp_path, *sides)
    assert only(found).refused == "other units: share and %" and found.failed


GONE = Estimate.not_estimable("3 answers, 8 are needed", n=3)


def test_a_headline_that_is_not_estimable_any_more_is_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = case(items(), "good")
    lost = replace(case(items()), metrics={"x.v": GONE})
    write_run(tmp_path / "a", [case(items()), good])
    write_run(tmp_path / "b", [lost, good])
    assert main(["compare", "--reports", str(tmp_path), "a", "b"]) == 1
    out = capsys.readouterr().out
    assert "x.v: not estimable: 3 answers, 8 are needed" in out and "1 case without the metric that decided" in out
    assert main(["compare", "--reports", str(tmp_path), "b", "a"]) == 0
    assert main(["compare", "--reports", str(tmp_path), "b", "b"]) == 0
    page = render_comparison(compare_runs(*(read_run(tmp_path / name) for name in "ab")))
    assert "Worse: 1 case without the metric that decided before." in page


def test_another_metric_that_is_not_estimable_any_more_fails_nothing(tmp_path: Path) -> None:
    both = {**case(items()).metrics, "x.other": Estimate(1.0, 0.5, 1.5, 40)}
    sides = [[case(items(), metrics=both, headline="x.v")], [case(items(), metrics=both | {"x.other": GONE}, headline="x.v")]]  # fmt: skip  # noqa: E501
    assert not compared(tmp_path, *sides).failed


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        ("lower", "higher", "worse"),
        ("higher", "lower", "worse"),
        ("neither", "lower", "worse"),
        ("lower", "neither", "worse"),
        ("higher", "neither", "better"),
        (None, "lower", "worse"),
        ("lower", None, "worse"),
        ("higher", None, "better"),
        (None, "neither", "changed"),
        ("target:0", "higher", "worse"),
        ("higher", "target:5", "better"),
        ("target:0", "target:5", "worse"),
        ("target:5", None, "better"),
    ],
)
@pytest.mark.parametrize("source", [SOURCE, None], ids=["rows", "intervals"])
def test_what_either_run_calls_worse_is_worse_and_a_contradiction_is_told(
    first: str | None, second: str | None, word: str, source: MetricSource | None, tmp_path: Path
) -> None:
    cases = [case(items(), source=source), case(items(2.0), source=source)]
    sides = [
        [replace(one, metrics={"x.v": replace(one.metrics["x.v"], better=way)})]
        for one, way in zip(cases, (first, second), strict=True)
    ]
    found = compared(tmp_path, *sides)
    assert only(found).direction == word and found.failed is (word == "worse")
    told = [remark for remark in found.remarks if remark.startswith("better is")]
    contradicted = None not in (first, second) and first != second
    assert told == ([f"better is {first} of x.v in A, and {second} in B: what either calls worse counts as worse"] if contradicted else [])  # fmt: skip  # noqa: E501


def skipped(name: str, message: str = "needs the data", audit: str = "x") -> MadeCase:
    return MadeCase(f"evals/t_{audit}.py::t[m@cpu-{name}]", audit, "m", outcome="skipped", message=message)


def test_an_audit_whose_cases_were_all_skipped_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = MadeCase("evals/t_y.py::t[m@cpu-c]", "y", "m", metrics={"y.v": Estimate(0.4, 0.3, 0.5, 50)})
    write_run(tmp_path / "a", [case(items(), "1"), case(items(), "2"), other])
    write_run(tmp_path / "b", [skipped("1"), skipped("2"), other])
    assert main(["compare", "--reports", str(tmp_path), "a", "b"]) == 1
    out = capsys.readouterr().out
    assert "skipped now: x on m: 2 cases: needs the data" in out and "1 audit skipped that was measured before" in out
    page = render_comparison(compare_runs(*(read_run(tmp_path / name) for name in "ab")))
    assert "Worse: 1 audit skipped that was measured before." in page and "Skipped now: x on m" in page
    assert main(["compare", "--reports", str(tmp_path), "b", "a"]) == 0
    write_run(tmp_path / "unselected", [other])
    assert main(["compare", "--reports", str(tmp_path), "a", "unselected"]) == 0


def test_an_audit_of_which_one_case_ran_was_not_skipped(tmp_path: Path) -> None:
    before = [case(items(), "1"), case(items(), "2")]
    assert not compared(tmp_path / "1", before, [skipped("1"), case(items(), "2")]).lost
    # What had no value before has lost none.
    none = replace(case(items(), "1"), metrics={})
    assert not compared(tmp_path / "2", [none], [skipped("1")]).lost
    again = compared(tmp_path / "3", before, [skipped("1", "no GPU"), skipped("2", "no data")])
    assert again.lost[0].reasons == ("1 case: no GPU", "1 case: no data")
