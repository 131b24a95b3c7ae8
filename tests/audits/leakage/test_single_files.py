"""One file of many that was seen whole is named, at the level of all files together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp

from lm_audit.audits.leakage import Benchmark, Item
from lm_audit.audits.leakage.evidence.conclusions import file_findings
from lm_audit.audits.leakage.half_option.conditions import Effect, QuestionScores, order_effect
from lm_audit.audits.leakage.half_option.single_files import SingleFiles, largest_of_files, single_files
from lm_audit.audits.leakage.statistics import largest_of_rows, weighted_largest
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource
from lm_audit.sources.units import RowTable, units_of
from lm_audit.stats import Estimate


def shown_by(values: np.ndarray, files: Sequence[str]) -> SingleFiles | None:
    return single_files(
        values, files, lambda mask: float(ttest_1samp(values[mask], 0.0, alternative="greater").pvalue), unit="nats"
    )


def drawn(seed: int, files: int, each: int, seen: dict[int, float]) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    place = np.repeat(np.arange(files), each)
    return 0.35 * rng.normal(size=len(place)) + np.array([seen.get(int(k), 0.0) for k in place]), [
        f"f{k}" for k in place
    ]


def test_one_file_of_57_is_named_and_the_interval_is_of_the_largest() -> None:
    values, files = drawn(0, 57, 20, {31: 0.6})
    found = shown_by(values, files)
    assert found is not None and (found.remembered, found.files, found.few) == (("f31",), 57, 0)
    own = values[31 * 20 : 32 * 20]
    half = t.ppf(1 - 0.025 / 57, 19) * own.std(ddof=1) / 20**0.5
    assert (found.largest.value, found.largest.low) == pytest.approx((own.mean(), own.mean() - half))
    assert found.p == pytest.approx(57 * ttest_1samp(own, 0.0, alternative="greater").pvalue)
    assert abs(values.mean()) < 0.05  # The mean of all shows nothing.


def test_the_surest_is_named_first_and_holm_hands_on_what_is_not_needed() -> None:
    values, files = drawn(1, 12, 20, {2: 0.3, 7: 0.9})
    found = shown_by(values, files)
    assert found is not None and found.remembered == ("f7", "f2")


def test_without_memory_a_file_is_named_in_one_of_twenty_benchmarks() -> None:
    named = sum(
        bool(found.remembered) for k in range(60) if (found := shown_by(*drawn(100 + k, 12, 8, {}))) is not None
    )
    assert named <= 7  # 5 % of 60, and 2.4 standard errors


def test_the_interval_holds_the_largest_whichever_it_is() -> None:
    truth, held = {k: 0.1 * k for k in range(8)}, 0
    for k in range(100):
        found = shown_by(*drawn(500 + k, 8, 12, truth))
        assert found is not None and found.largest.low is not None and found.largest.high is not None
        held += found.largest.low <= 0.7 <= found.largest.high
    assert held >= 93


@pytest.mark.parametrize(("sizes", "files", "few"), [((8, 8, 7), 2, 1), ((9, 7, 7), None, None), ((40,), None, None)])
def test_files_with_too_few_questions_take_no_part(sizes: tuple[int, ...], files: int | None, few: int | None) -> None:
    names = [f"f{k}" for k, size in enumerate(sizes) for _ in range(size)]
    values = np.random.default_rng(2).normal(size=len(names))
    found = shown_by(values, names)
    assert (files, few) == (None, None) if found is None else (found.files, found.few) == (files, few)
    if len(sizes) == 3 and files == 2:
        values[0] = np.nan
        assert shown_by(values, names) is None


def test_what_the_largest_says_of_itself() -> None:
    """Its units are the questions of the smallest file that takes part; what has no interval says why."""
    values = np.r_[np.arange(9.0), np.arange(8.0), np.arange(3.0)]
    files = ["a"] * 9 + ["b"] * 8 + ["c"] * 3
    found = single_files(values, files, lambda mask: None, unit="nats")
    assert found is not None and (found.remembered, found.p, found.files, found.few) == ((), None, 2, 1)
    one = found.largest
    assert (one.n, one.unit, one.better, one.chance, one.units) == (17, "nats", "lower", 0.0, 8)
    assert (one.method, one.note) == ("largest of 2 files, t at 5% over all", None) and one.low is not None
    values[9:17] = 0.5
    flat = single_files(values, files, lambda mask: None, unit="nats")
    assert flat is not None and (flat.largest.value, flat.largest.n, flat.largest.units) == (4.0, 17, 8)
    assert (flat.largest.unit, flat.largest.better, flat.largest.chance) == ("nats", "lower", 0.0)
    assert flat.largest.method == one.method and flat.largest.low is None
    assert flat.largest.note == "the questions of a file do not differ: nothing tells how far chance reaches"


def test_a_file_is_named_at_the_level_of_5_percent_itself() -> None:
    values, files = np.r_[np.arange(8.0), np.arange(8.0)], ["a"] * 8 + ["b"] * 8
    for p, named in ((0.025, ("a",)), (0.0251, ())):
        found = single_files(values, files, lambda mask, p=p: p if mask[0] else 0.9, unit="nats")  # type: ignore[misc]
        assert found is not None and found.remembered == named


def test_rows_without_a_value_count_for_no_file_and_give_no_warning() -> None:
    values = np.array([[1.0] * 8 + [np.nan] * 2 + [0.5] * 8, [np.nan] * 10 + [0.5] * 8])
    codes = [0] * 10 + [1] * 8
    with np.errstate(all="raise"):
        assert largest_of_files(values, codes).tolist() == [1.0, 0.5]
        assert np.isnan(largest_of_files(values[:, :9], codes[:9])[1])
        assert largest_of_files(np.array([[2.0, 0.0, np.nan]]), [0, 0, 0], fewest=2).tolist() == [1.0]


def test_equal_questions_have_no_interval() -> None:
    found = single_files(np.r_[np.zeros(8), np.arange(8.0)], ["a"] * 8 + ["b"] * 8, lambda mask: 0.5, unit="nats")
    assert found is not None and (found.largest.value, found.largest.low) == (3.5, None)


def test_rows_and_weights_give_the_largest_mean() -> None:
    values, files = drawn(3, 3, 9, {1: 1.0})
    files[-2:] = ["small", "small"]
    rows = [
        {"item": f"i{k}", "file": name, "v": float(v)} for k, (name, v) in enumerate(zip(files, values, strict=True))
    ]
    options = {"of": MetricSource.mean("v").to_json()}
    assert largest_of_rows(rows, options) == pytest.approx(values[9:18].mean())
    weights = np.ones((2, len(rows)))
    weights[1, 9:11] = 0.0  # Seven are left, too few.
    found = weighted_largest(units_of(MetricSource.mean("v"), RowTable(rows)), options)(weights)
    assert found[0] == pytest.approx(values[9:18].mean()) and found[1] == pytest.approx(values[:9].mean())
    assert largest_of_rows(rows[:7], options) is None
    assert np.isnan(largest_of_files(values[None, :7], [0] * 7)).all()


def scores(seen: int | None) -> QuestionScores:
    """Ten files of ten questions; the published order of one file is likelier by half a nat a byte."""
    rng = np.random.default_rng(4)
    items = tuple(Item(f"q{k}", f"f{k // 10}", f"Question {k}?", ("a", "b", "c", "d")) for k in range(100))
    table = rng.normal(-2, 0.2, (100, 4))
    if seen is not None:
        table[10 * seen : 10 * seen + 10, 0] += 0.5
    return QuestionScores(
        items, ("original", "shuffled-1", "shuffled-2", "shuffled-3"), {"logprob": table, "hits": table}
    )


def finding_of(effect: Effect) -> tuple[str, str]:
    assert effect.single_files is not None
    evidence = Evidence("leakage")
    evidence.metric("leakage.order_effect.logprob.largest_file", effect.single_files.largest)
    (found,) = file_findings(evidence, effect, "MMLU", False)
    return found.verdict, found.statement


def test_the_finding_names_the_file() -> None:
    made = scores(3)
    benchmark = Benchmark("MMLU", made.items, tuple(f"f{k}" for k in range(10)), 100, 100)
    verdict, statement = finding_of(order_effect(made, "logprob", benchmark, seed=0))
    assert verdict == "found"
    assert statement == "The model prefers the printed order of the options of single files, 1 of 10 files of MMLU: f3"
    none = order_effect(scores(None), "logprob", benchmark, seed=0)
    assert finding_of(none)[0] == "cannot tell" and none.single_files is not None and not none.single_files.remembered
    assert order_effect(made, "hits", benchmark, seed=0).single_files is None
    assert order_effect(made, "logprob", seed=0).single_files is None


def test_files_that_are_all_alike_are_told_and_more_than_five_are_counted() -> None:
    largest = Estimate(0.01, -0.02, 0.03, n=800, units=40)
    bare = Effect(largest, largest, None, largest, None, SingleFiles(largest, (), 0.9, 20, 3))
    verdict, statement = finding_of(bare)
    assert verdict == "not found" and statement.startswith(
        "In none of 20 files of MMLU by itself does the model prefer"
    )
    many = SingleFiles(Estimate(0.5, 0.3, 0.7, n=800, units=40), tuple("abcdefg"), 0.001, 20, 0)
    assert finding_of(replace(bare, single_files=many))[1].endswith("7 of 20 files of MMLU: a, b, c, d, e and 2 more")
    assert file_findings(Evidence("leakage"), replace(bare, single_files=None), "MMLU", False) == []
