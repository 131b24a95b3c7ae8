"""Intervals and tests hold what they say: known values, and a short form of ``benchmarks/coverage_leakage.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.leakage import Benchmark, Item, load_benchmark, neighbour_places, paired_sign_flip
from lm_audit.audits.leakage.averages import FileWeights, file_mean, mean_of, of_these_files, record_these_files
from lm_audit.audits.leakage.evidence.conclusions import order_findings
from lm_audit.audits.leakage.signs import UNREACHABLE
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate
from tests.benchmark_script import benchmark_script
from tests.present import present

TRIALS = 300


simulation = benchmark_script("coverage_leakage")


@pytest.mark.parametrize(
    ("design", "low", "high"),
    [
        # 93 to 97% give 300 trials a share of at least 0.90 with 99%.
        (simulation.of_questions("differences", 8, 1), 0.90, 0.99),
        (simulation.of_questions("log-probability", 12, 3), 0.90, 0.99),
        (simulation.of_questions("hits", 12, 3), 0.90, 1.0),
        (simulation.of_files([2, 3, 4, 5, 6, 30], 0.3, ""), 0.90, 0.995),
        (simulation.of_files([4] * 6, 1.0, ""), 0.90, 0.99),
        (simulation.place_of_files(7, 12), 0.90, 0.99),
        (simulation.these_files("in nats", 24, 5, 0.1), 0.90, 0.99),
        (simulation.these_files("of hits", 57, 10, 0.1, 0.7, 60), 0.90, 0.99),
        (simulation.these_files("of places", 12, 5, 0.5, 0.7), 0.90, 0.99),
        # A t over files holds 80% of the first and 75% of the second.
        (simulation.hits_of_files(8, 5), 0.90, 1.0),
        pytest.param(simulation.hits_of_files(8, 10, uneven=1.0), 0.90, 1.0, marks=pytest.mark.slow),
        (simulation.hits_of_files(12, 4, 0.3, np.inf), 0.90, 1.0),
        # Hits are few and skewed: at least 95% of them.
        pytest.param(simulation.published(57, 100, 60, 0.15), 0.90, 1.0, marks=pytest.mark.slow),
        (simulation.published(57, 100, 12, 1, centre=0.1, uneven=1.0), 0.93, 1.0),
        pytest.param(simulation.published(3, 12, 10_000, 0.3), 0.90, 1.0, marks=pytest.mark.slow),
        (simulation.sign_flips(8, "skewed"), 0.0, 0.09),
        (simulation.themes(40, 5, swapped=True), 0.0, 0.09),
    ],
    ids=lambda value: f"{value.what} {value.detail}".strip() if isinstance(value, simulation.Design) else "",
)
def test_coverage(design: Any, low: float, high: float) -> None:
    rng = np.random.default_rng(3)
    found = [answer for seed in range(TRIALS) if (answer := design.trial(rng, seed)) is not None]
    assert len(found) == TRIALS
    assert low <= float(np.mean(found)) <= high


def test_rows_on_one_theme_mislead_the_shuffles_and_not_the_swaps() -> None:
    """Forty new questions, five in a row on one theme: the shards' test says memorised nearly always."""
    rates = []
    for swapped in (False, True):
        rng, design = np.random.default_rng(1), simulation.themes(40, 5, swapped=swapped)
        rates.append(np.mean([design.trial(rng, seed) for seed in range(100)]))
    assert rates[0] > 0.5 and rates[1] < 0.13


def test_a_sample_of_many_files_has_the_score_of_all() -> None:
    """A score of 2 everywhere is 2, however few files a sample reaches; files without questions still count as 0."""
    files = [f"f{k % 9}" for k in range(12)]
    items = tuple(Item(str(k), name, "q", ("a", "b", "c")) for k, name in enumerate(files))
    by_file = {f"f{k}": 100 for k in range(57)} | {"e0": 0, "e1": 0, "e2": 0}
    sample = Benchmark("b", items, tuple(by_file), 5700, 5700, by_file=by_file)
    weights = FileWeights.of(files, sample)
    found = file_mean(np.full(12, 2.0), files, weights, limits=(0.0, 3.0), seed=0)
    assert found.value == pytest.approx(2.0 * 57 / 60)
    assert found.low is not None and found.high is not None and present(found.low) < present(found.value) < found.high


def test_a_whole_benchmark_has_the_published_aggregation() -> None:
    files = ["a", "a", "a", "b"]
    items = tuple(Item(str(k), name, "q", ("a", "b")) for k, name in enumerate(files))
    whole = Benchmark("b", items, ("a", "b", "empty"), 4, 4)
    found = file_mean(np.array([0, 1, 2, 2.0]), files, FileWeights.of(files, whole), limits=(0, 2), seed=0)
    assert found.value == pytest.approx((1 + 2 + 0) / 3)


def test_a_file_counts_as_its_usable_rows(tmp_path: Path) -> None:
    for name, rows in (("a", 30), ("b", 3)):
        lines = [json.dumps({"question": f"{name}{k}?", "A": "x", "B": "y", "answer": "A"}) for k in range(rows)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "c.jsonl").write_text("", encoding="utf-8")
    benchmark = load_benchmark(tmp_path, limit=5)
    assert benchmark.by_file == {"a": 30, "b": 3, "c": 0}


def test_few_questions_and_equal_values_are_no_certainty() -> None:
    few = mean_of(np.array([0.1, 0.3, 0.2]), ["f"] * 3, unit="x", seed=0)
    assert few.value == pytest.approx(0.2) and few.low is None and "3 questions give no interval" in (few.note or "")
    none_hit = mean_of(np.zeros(12), ["f"] * 12, unit="x", seed=0, kind="counts", limits=(0.0, 1.0))
    assert none_hit.low == 0 and none_hit.high == pytest.approx(1 - 0.025 ** (1 / 12))
    equal = mean_of(np.ones(12), [f"f{k}" for k in range(12)], unit="x", seed=0, limits=(0.0, 1.0))
    assert equal.low is not None and equal.low < 0.8 and equal.high == 1
    unbounded = mean_of(np.ones(12), ["f"] * 12, unit="x", seed=0)
    assert unbounded.value == 1 and unbounded.low is None and "all values are equal" in (unbounded.note or "")


@pytest.mark.parametrize("kind", ["hits", "order effect of hits", "order effect in nats"])
@pytest.mark.parametrize(("files", "each", "held"), [(8, 5, 0.1), (12, 5, 0.1), (24, 5, 0.05)])
def test_what_few_files_hold_is_covered(kind: str, files: int, each: int, held: float) -> None:
    """A t over files holds 67 to 84 % of these: most samples hold no file, or one, that was memorised."""
    rng, design = np.random.default_rng(5), simulation.held_by_files(kind, files, each, held)
    found = [design.trial(rng, seed) for seed in range(100)]
    assert np.mean(found) >= 0.93


def test_a_file_that_was_not_drawn_may_hold_everything() -> None:
    """Eight files of five questions without any effect: 1 - 0.05^(1/8) of all files may hold one, and no fewer."""
    names = [f"f{k // 5}" for k in range(40)]
    values = np.tile([0.01, -0.01, 0.0, 0.01, -0.01], 8) + np.repeat(np.linspace(-1e-4, 1e-4, 8), 5)
    found = mean_of(values, names, unit="x", seed=0, kind="differences", limits=(-1.0, 1.0))
    plain = mean_of(values, names, unit="x", seed=0, kind="differences")
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 8), abs=0.01)
    # No file is taken to hold less than nothing.
    assert found.low == pytest.approx(plain.low, abs=1e-4)
    assert "Gaffke's limits of 8 files" in found.method and (found.units, found.fewest, found.n) == (8, 6, 40)
    half = mean_of(values, names, unit="x", seed=0, kind="differences", limits=(-1.0, 1.0), unseen=(0.0, 0.5))
    assert half.high == pytest.approx(present(found.high) / 2, abs=0.01)
    level = mean_of(values - 2, names, unit="x", seed=0, unseen=(-np.inf, 0.0))
    assert level.high == pytest.approx(-2 + 2 * (1 - 0.05 ** (1 / 8)), abs=0.02)
    assert level.low == pytest.approx(present(plain.low) - 2, abs=1e-4)


def test_files_of_unequal_sizes_may_be_followed_by_a_large_one() -> None:
    even, uneven = [f"f{k % 7}" for k in range(37)], [f"f{k}" for k in range(7)] + ["f0"] * 30
    values = np.tile([1.0, 0.0, 0.0], 13)[:37]
    widths = []
    for names in (even, uneven):
        found = mean_of(values, names, unit="x", seed=0, limits=(0.0, 1.0), kind="counts")
        widths.append(present(found.high) - present(found.low))
    assert widths[1] > 1.2 * widths[0]
    nothing = mean_of(np.zeros(24), [f"f{k % 6}" for k in range(24)], unit="x", seed=0, limits=(0.0, 1.0))
    assert nothing.low == 0 and nothing.high == pytest.approx(1 - 0.025 ** (1 / 6))


def test_the_gain_of_pairs_speaks_of_their_files() -> None:
    values = np.random.default_rng(0).normal(size=24)
    names = [f"f{k % 8}" for k in range(24)]
    found = mean_of(values, names, unit="x", seed=0, kind="differences", general=False)
    assert found.method.endswith("conditional on these 8 files") and found.units is None


def test_what_an_interval_speaks_of_is_said() -> None:
    values = np.random.default_rng(0).normal(size=24)
    three = mean_of(values, [f"f{k % 3}" for k in range(24)], unit="x", seed=0)
    eight = mean_of(values, [f"f{k % 8}" for k in range(24)], unit="x", seed=0)
    assert three.method.endswith("conditional on these 3 files")
    assert "t over 8 clusters" in eight.method


def test_a_benchmark_is_judged_by_its_own_files() -> None:
    """24 files without an effect: a file like them may hold one, and these do not."""
    rng = np.random.default_rng(0)
    names = [f"f{k % 24}" for k in range(240)]
    items = tuple(Item(str(k), name, "q", ("a", "b", "c")) for k, name in enumerate(names))
    whole = Benchmark("b", items, tuple(sorted(set(names))), 240, 240)
    values = 0.2 * rng.normal(size=240)
    options: dict[str, Any] = {"unit": "nats a byte", "seed": 0, "chance": 0.0, "kind": "differences"}
    evidence = Evidence("leakage")
    evidence.metric("leakage.order_effect.logprob", mean_of(values, names, unseen=(0.0, 0.7), **options))
    evidence.metric("leakage.order_effect.hits", Estimate(0.0))
    assert order_findings(evidence, "b")[0].verdict == "cannot tell"
    source = MetricSource.mean("x", clusters=("file",))
    record_these_files(
        evidence, "leakage.order_effect.logprob", of_these_files(values, names, whole, **options), source
    )
    own, name = order_findings(evidence, "b")[0], "leakage.order_effect.logprob.these_files"
    assert (own.verdict, own.metric) == ("not found", name)
    found = evidence.metrics[name]
    assert found.method.endswith("conditional on these 24 files") and found.better == "lower"
    assert (
        evidence.sources[name].clusters == () and found.value == evidence.metrics["leakage.order_effect.logprob"].value
    )
    # Of a sample it is chance, too, how many questions of a file were drawn.
    shifted = values + np.repeat([0.0, 1.0], 12)[[int(name[1:]) for name in names]]
    sample = Benchmark("b", items, tuple(sorted(set(names))), 5000, 5000)
    widths = []
    for benchmark in (whole, sample):
        one = present(of_these_files(shifted, names, benchmark, **options))
        widths.append(present(one.high) - present(one.low))
    assert widths[1] > 2 * widths[0]
    assert of_these_files(values[:40], ["f1", "f2"] * 20, whole, **options) is None


@pytest.mark.parametrize(("count", "reachable"), [(4, False), (5, True)])
def test_tests_that_cannot_reject_say_so(count: int, reachable: bool) -> None:
    found = paired_sign_flip([0.1 * (k + 1) for k in range(count)] + [0.0] * 3)
    assert found.value == pytest.approx(0.5**count)
    assert (UNREACHABLE in (found.note or "")) != reachable


def test_neighbours_are_disjoint_and_of_one_file() -> None:
    assert list(neighbour_places([0, 1, 2, 5, 6, 0, 1], ["a"] * 5 + ["b"] * 2)) == [(0, 1), (3, 4), (5, 6)]
    assert list(neighbour_places([], ["a"] * 5)) == [(0, 1), (2, 3)]


def test_a_sample_for_row_order_is_of_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(
        "\n".join(json.dumps({"question": f"{k}?", "A": "x", "B": "y", "answer": "A"}) for k in range(200)),
        encoding="utf-8",
    )
    pairs = load_benchmark(path, limit=12, drawn="pairs")
    assert len(list(neighbour_places(pairs.places, [item.file for item in pairs.items]))) == 6
    assert [int(item.id) - 1 for item in pairs.items] == list(pairs.places)
