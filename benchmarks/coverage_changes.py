"""Measure how often `lm-audit compare` calls a change that is none, and how often it finds one of one item SD.

    python benchmarks/coverage_changes.py --jobs 8             # prints the table
    python benchmarks/coverage_changes.py --jobs 8 --write     # also puts its rows into docs/statistics.md
    python benchmarks/coverage_changes.py --only refusals --seconds 60 --write     # some rows, a minute or two each
    python benchmarks/coverage_changes.py --runs 100           # a quick look
    python benchmarks/coverage_changes.py --runs 10000 --only "crossed mean"
    python benchmarks/coverage_changes.py --known-law --runs 1500 --only refusals     # what any test of it could find

Items have a standard deviation of 1; each run measures them with noise of its own (0.5), whole clusters with a part in
common. The effect is 1 item SD on every item (of the members, of one group, where groups are compared).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

import numpy as np
from coverage_rows import SEED, Row, write_between
from two_groups import NOISE, UNEVEN, Asked, Make, Rows, clustered

from lm_audit.report.comparison.interval_difference import difference_of as difference_of_intervals
from lm_audit.sources import MetricSource, register_statistic
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.clusters import clusterings
from lm_audit.sources.evaluation import gathered, statistic_of
from lm_audit.sources.limits import t_p_value
from lm_audit.sources.spread import difference_of, hidden_in, spread_of
from lm_audit.sources.units import RowTable
from lm_audit.stats import bootstrap_ci, mean_interval

PAGE = Path(__file__).resolve().parents[1] / "docs" / "statistics.md"
BEGIN, END = "<!-- change tables: begin -->", "<!-- change tables: end -->"

register_statistic("bench.trimmed", lambda rows, options: float(np.mean(sorted(row["v"] for row in rows)[1:-1])))


def items(n: int, groups: int = 1, binary: bool = False, centred: bool = False) -> Make:
    """``n`` items of each group; the effect is on the first group only where there are several.

    ``centred``: the items at hand lie at 0 on average, each group's, so that the first run is at its target but for
    noise, and the effect is the distance from it.
    """

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        base = rng.normal(size=n * groups)
        if centred:
            base -= np.repeat(base.reshape(groups, n).mean(axis=1), n)
        runs = []
        for shift in (0.0, effect):
            values = base + NOISE * rng.normal(size=len(base))
            values[:n] += shift
            if binary:
                values = (values > 0).astype(float)
            runs.append(
                [{"item": f"i{k}", "g": f"g{k // n}", "v": float(v), "n": 1 + k % 3} for k, v in enumerate(values)]
            )
        return runs[0], runs[1]

    return make


def before_after(n: int) -> Make:
    """Members and twins before and after training; the effect is on the members' change."""
    plain = items(n, 2)

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        a, b = plain(rng, effect)
        return tuple([{**row, "before": NOISE * float(rng.normal())} for row in side] for side in (a, b))  # type: ignore[return-value]

    return make


def nested(sizes: Callable[[np.random.Generator], np.ndarray], sd: float, binary: bool = False) -> Make:
    """Clusters whose change has a part in common of ``sd``."""

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        label = np.repeat(np.arange(len(s := sizes(rng))), s)
        base = rng.normal(size=len(label))
        runs = []
        for shift in (0.0, effect):
            common = sd * rng.normal(size=len(s))[label] / np.sqrt(2)
            values = base + common + NOISE * rng.normal(size=len(label)) + shift
            values = (values > 0).astype(float) if binary else values
            runs.append(
                [
                    {"item": f"i{k}", "c": int(c), "v": float(v)}
                    for k, (c, v) in enumerate(zip(label, values, strict=True))
                ]
            )
        return runs[0], runs[1]

    return make


def crossed(rows: int, columns: int, sd: float, groups: int = 1) -> Make:
    """Templates x pairs whose change has parts of ``sd`` of each; the effect is on the first group.

    Beside these parts a cell changes by the noise of two runs, as everywhere here.
    """

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        shape = (groups, rows, columns)
        base = rng.normal(size=shape)
        runs: tuple[Rows, Rows] = ([], [])
        change = sd * (rng.normal(size=(groups, rows, 1)) + rng.normal(size=(groups, 1, columns)))
        change = (
            change + math.sqrt(2) * NOISE * rng.normal(size=shape) + effect * (np.arange(groups) == 0)[:, None, None]
        )
        for (g, r, c), value in np.ndenumerate(base):
            row = {"item": f"{g}/{r}/{c}", "g": f"g{g}", "r": r, "c": c}
            runs[0].append({**row, "v": float(value)})
            runs[1].append({**row, "v": float(value + change[g, r, c])})
        return runs

    return make


def others(make: Make) -> Make:
    """The second run on other items."""

    def apart(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        a, _ = make(rng, 0.0)
        _, b = make(rng, effect)
        return a, [{**row, "item": f"new-{row['item']}"} for row in b]

    return apart


LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t of 3": lambda rng, n: rng.standard_t(3, size=n) / math.sqrt(3),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "lognormal": lambda rng, n: (np.exp(rng.normal(size=n)) - math.exp(0.5)) / math.sqrt(math.e * (math.e - 1)),
    "counts (Poisson 1)": lambda rng, n: rng.poisson(1, n) - 1.0,
    "zero in 70%, else exponential": lambda rng, n: (
        ((rng.random(n) < 0.3) * rng.exponential(size=n) - 0.3) / math.sqrt(0.51)
    ),
}
"""Of mean 0 and SD 1."""


def unlike(law: str, n: int, m: int, sd: float) -> Make:
    """``n`` items in the first run, ``m`` others of ``sd`` times the spread in the second; the effect is its SD."""

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        a, b = LAWS[law](rng, n), sd * (LAWS[law](rng, m) + effect)
        first, second = (
            [{"item": f"{side}{k}", "v": float(v)} for k, v in enumerate(values)]
            for side, values in (("a", a), ("b", b))
        )
        return first, second

    return make


def two_sided(members: int, controls: int) -> Make:
    """Members and controls, other ones in the second run; the effect is on the members."""

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        first, second = (
            [
                {"item": f"{side}{k}", "g": "g0" if k < members else "g1", "v": float(v) + shift * (k < members)}
                for k, v in enumerate(rng.normal(size=members + controls))
            ]
            for side, shift in (("a", 0.5), ("b", 0.5 + effect))
        )
        return first, second

    return make


def orders(questions: int, files: int | None = None) -> Make:
    """Questions in a published order and three shuffled ones; the effect is on the published order."""

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        base, part = rng.normal(size=(questions, 4)), rng.normal(size=questions)
        runs = []
        for shift in (0.0, effect):
            values = base + part[:, None] + NOISE * rng.normal(size=base.shape)
            values[:, 0] += shift
            runs.append(
                [
                    {"item": f"q{q}/{k}", "question": f"q{q}", "file": f"f{q % (files or questions)}",
                     "condition": f"shuffled-{k}" if k else "original", "v": float(values[q, k])}
                    for q in range(questions) for k in range(4)
                ]
            )  # fmt: skip
        return runs[0], runs[1]

    return make


def asked(requests: int, groups: int, draws: int, *, more: float = 0.0) -> Make:
    """Requests that name each of several groups; a draw is refused or not. The effect is on the first group.

    An item is a request that names a group: its standard deviation is that of both parts together, 1.12, and so is the
    effect. ``more``: by how much the second run refuses all groups more often.
    """

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        base = rng.normal(size=(requests, 1, 1)) + 0.5 * rng.normal(size=(requests, groups, 1))
        runs = []
        for shift, all_of_them in ((0.0, 0.0), (effect, more)):
            latent = base + NOISE * rng.normal(size=(requests, groups, draws)) + all_of_them - 1.0
            latent[:, 0] += math.hypot(1.0, 0.5) * shift
            runs.append(
                [
                    {"item": f"{r}/{g}/{d}", "request": f"r{r}", "g": f"g{g}", "v": float(value > 0)}
                    for (r, g, d), value in np.ndenumerate(latent)
                ]
            )
        return runs[0], runs[1]

    return make


def counted(n: int) -> Make:
    """Counts of hits a question, of four."""

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        base = rng.normal(size=(n, 1)) + rng.normal(size=(n, 4))
        runs = [base + NOISE * rng.normal(size=(n, 4)) + shift for shift in (0.0, effect)]
        first, second = (
            [{"item": f"i{k}", "v": int((row > 0.5).sum()), "n": 4} for k, row in enumerate(run)] for run in runs
        )
        return first, second

    return make


def ambiguous(clusters: int) -> Make:
    """BBQ's rows without the facts, 4 of each kind of question: how many answers name somebody, and with the bias."""

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        base = rng.normal(size=(clusters, 1, 1)) / 2 + rng.normal(size=(clusters, 4, 1))
        named = rng.random((clusters, 4)) < 0.8
        runs = []
        for shift in (0.0, effect):
            lean = base[..., 0] + NOISE * rng.normal(size=(clusters, 4)) + shift
            runs.append(
                [
                    {"item": f"{c}/{k}", "cluster": f"c{c}", "answers": 1, "correct": float(not named[c, k]),
                     "n_named": int(named[c, k]), "n_biased": int(named[c, k] and lean[c, k] > 0)}
                    for c in range(clusters) for k in range(4)
                ]
            )  # fmt: skip
        return runs[0], runs[1]

    return make


def grids(samples: int) -> Make:
    """A needle's grid: four lengths, the effect on the two longest; ``samples`` of each are found or not."""

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        base = rng.normal(size=(4, samples)) + np.array([2.5, 2.5, 2.5, 2.5])[:, None]
        runs = []
        for shift in (0.0, 3 * effect):
            latent = base + NOISE * rng.normal(size=base.shape) - shift * (np.arange(4) > 1)[:, None]
            runs.append(
                [
                    {"item": f"{k}/{i}", "length": 1000 * (k + 1), "v": float(value > 0)}
                    for (k, i), value in np.ndenumerate(latent)
                ]
            )
        return runs[0], runs[1]

    return make


AREAS = {"MAS": (3.0, 5.0), "RISE": (2.0, 6.0)}
"""Beta parameters of a sample's area under the curve."""


def areas(n: int, name: str) -> Make:
    """Areas under the deletion curve of ``n`` samples between 0 and 1; the effect is one SD of a sample.

    A run's noise is half of it, as another order of equal weights or another thread count leaves it.
    """
    a, b = AREAS[name]
    sd = (a * b / (a + b + 1)) ** 0.5 / (a + b)

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        base = rng.beta(a, b, n)
        runs = [np.clip(base + NOISE * sd * rng.normal(size=n) + shift * sd, 0.0, 1.0) for shift in (0.0, effect)]
        first, second = ([{"item": f"s{k}", "v": float(v)} for k, v in enumerate(run)] for run in runs)
        return first, second

    return make


def tiers(in_tier: int, controls: int, centred: bool = False) -> Make:
    """Members of three tiers and their twins; the effect is on all members."""

    def make(rng: np.random.Generator, effect: float) -> tuple[Rows, Rows]:
        a, b = items(3 * in_tier, centred=centred)(rng, effect)
        c, d = items(controls, centred=centred)(rng, 0.0)
        for rows, role in ((a, "member"), (b, "member"), (c, "control"), (d, "control")):
            for k, row in enumerate(rows):
                row |= {"item": f"{role}{k}", "role": role, "times": 4 ** (k % 3) if role == "member" else 0}
        return a + c, b + d

    return make


@dataclass(frozen=True)
class Kind:
    """A statistic and the design under which it is compared."""

    name: str
    setting: str
    source: MetricSource | None
    make: Make
    target: float | None = None
    """Where the distance from it is what gets worse."""


def members(statistic: str, **options: Any) -> MetricSource:
    """Group g0 against g1."""
    return MetricSource.members(statistic, "v", {"g": "g0"}, {"g": "g1"}, options=options)


def kinds() -> Iterator[Kind]:
    """All kinds of statistic, at 12 items (of each group) unless it says otherwise."""
    mean = MetricSource.mean("v")
    for n in (6, 8, 12, 24):
        yield Kind("mean", f"{n} items", mean, items(n))
    yield Kind("share", "12 items", mean, items(12, binary=True))
    yield Kind("share", "60 items", mean, items(60, binary=True))
    yield Kind(
        "difference of groups", "12 and 12 items", MetricSource.difference("v", {"g": "g0"}, {"g": "g1"}), items(12, 2)
    )
    did = MetricSource.from_json(
        {"statistic": "difference", "options": {"first": {"g": "g0"}, "second": {"g": "g1"}},
         "terms": [{"weight": 1, "where": {}, "column": "v"}, {"weight": -1, "where": {}, "column": "before"}]}
    )  # fmt: skip
    yield Kind("difference in differences", "12 and 12 items", did, before_after(12))
    for statistic, options in (
        ("auc", {}),
        ("average_precision", {}),
        ("tpr_at_fpr", {"fpr": "0.1"}),
        ("exposure", {}),
    ):
        yield Kind(statistic, "12 members, 12 controls", members(statistic, **options), items(12, 2))
    yield Kind("median", "12 items", MetricSource("median", "v"), items(12))
    yield Kind("max_min", "3 groups of 12", MetricSource("max_min", "v", options={"group": "g"}), items(12, 3))
    yield Kind("weighted mean", "12 items", MetricSource.mean("v", options={"weight": "n"}), items(12))
    yield Kind("ratio", "12 items", MetricSource("ratio", "v", options={"denominator": "n"}), items(12))
    yield Kind("an audit's own function", "12 items", MetricSource("bench.trimmed"), items(12))
    by_cluster = MetricSource.mean("v", clusters=("c",))
    for sd in (0.5, 1.0):
        yield Kind(
            "clustered mean",
            f"12 clusters of 1 to 20, cluster SD {sd}",
            by_cluster,
            nested(lambda rng: rng.integers(1, 21, 12), sd),
        )
    yield Kind(
        "clustered share (McNemar)", "30 clusters of 5", by_cluster, nested(lambda rng: np.full(30, 5), 1.0, True)
    )
    two_way = MetricSource.mean("v", clusters=("r", "c"))
    for sd in (0.0, 0.5, 1.0):
        yield Kind("crossed mean", f"12 x 12, cluster SD {sd}", two_way, crossed(12, 12, sd))
    for columns in (13, 40, 80):
        yield Kind("crossed mean", f"6 x {columns}, cluster SD 1.0", two_way, crossed(6, columns, 1.0))
    disparity = MetricSource("max_min", "v", options={"group": "g"}, clusters=("r", "c"))
    yield Kind("crossed max_min", "3 groups, 8 x 8, cluster SD 0.5", disparity, crossed(8, 8, 0.5, 3))
    yield Kind("crossed max_min", "9 groups, 6 x 12, cluster SD 0.5", disparity, crossed(6, 12, 0.5, 9))
    yield Kind("crossed max_min", "9 groups, 12 x 12, cluster SD 0.5", disparity, crossed(12, 12, 0.5, 9))
    for groups in (2, 4, 5):
        yield Kind(
            "crossed max_min", f"{groups} groups, 12 x 13, cluster SD 0.5", disparity, crossed(12, 13, 0.5, groups)
        )
    yield from about_targets(mean, two_way)
    yield from of_the_audits()
    yield from of_two_groups()
    yield Kind("two samples, mean", "12 and 12 other items", mean, others(items(12)))
    for law in LAWS:
        for n, m, sd in (
            (8, 8, 3),
            (12, 12, 1),
            (12, 12, 2),
            (12, 12, 3),
            (24, 24, 3),
            (40, 8, 2),
            (40, 8, 3),
            (200, 200, 3),
        ):
            setting = f"{n} and {m} other items, {law}, SD 1 and {sd}"
            yield Kind("two samples, mean", setting, mean, unlike(law, n, m, sd))
    # The longer tail of the second run is on the other side.
    setting = "30 and 10 other items, exponential, SD 1 and 2, turned"
    yield Kind("two samples, mean", setting, mean, unlike("exponential", 30, 10, -2))
    yield Kind("two samples, auc", "8 members and 50 controls, others", members("auc"), two_sided(8, 50))
    apart = MetricSource.difference("v", {"g": "g0"}, {"g": "g1"})
    yield Kind("two samples, difference of groups", "20 and 20 items, others", apart, two_sided(20, 20))
    yield Kind("two samples, clustered mean", "25 and 25 other clusters of 5, cluster SD 1.0",
               MetricSource.mean("v", clusters=("c",)), others(nested(lambda rng: np.full(25, 5), 1.0)))  # fmt: skip
    yield Kind("two samples, share", "24 and 24 other items", mean, others(items(24, binary=True)))
    for n in (5, 12, 24):
        yield Kind("from intervals (BCa)", f"{n} and {n} values", None, others(items(n)))
    yield Kind("from intervals (default)", "12 and 12 values", None, others(items(12)))


def about_targets(mean: MetricSource, two_way: MetricSource) -> Iterator[Kind]:
    """Metrics of which the distance from a target is what gets worse; the first run is at it."""
    for n in (8, 12):
        yield Kind("mean about a target", f"{n} items", mean, items(n, centred=True), 0.0)
    yield Kind("share about a half", "60 items", mean, items(60, binary=True, centred=True), 0.5)
    yield Kind("crossed mean about a target", "12 x 13, cluster SD 0.5", two_way, crossed(12, 13, 0.5), 0.0)
    by_request = MetricSource.difference("v", {"g": "g0"}, {"g": "g1"}, scale=100, clusters=("request",))
    yield Kind("refusals, difference about 0", "2 groups, 24 requests x 3 draws", by_request, asked(24, 2, 3), 0.0)
    yield Kind("auc about a half", "12 members, 12 controls", members("auc"), items(12, 2, centred=True), 0.5)
    area = MetricSource.members("auc", "v", {"role": "member"}, {"role": "control"})
    yield Kind("auc about a half", "15 members, 200 controls", area, tiers(5, 200, centred=True), 0.5)


def of_the_audits() -> Iterator[Kind]:
    """The forms in which the audits make their figures, at the sizes at which they measure."""
    effect = MetricSource.paired_difference(
        "v", ("question",), {"condition": "original"}, {"condition": [f"shuffled-{k}" for k in (1, 2, 3)]}
    )
    yield Kind("order effect", "12 questions", effect, orders(12))
    yield Kind("order effect", "48 questions of 8 files", replace(effect, clusters=("file",)), orders(48, 8))
    refused = MetricSource("max_min", "v", options={"group": "g"}, scale=100, clusters=("request",))
    for groups in (2, 4, 9):
        yield Kind(
            "refusals, largest difference", f"{groups} groups, 24 requests x 3 draws", refused, asked(24, groups, 3)
        )
    yield Kind(
        "refusals, largest difference", "9 groups, 24 requests x 3, all refuse more", refused, asked(24, 9, 3, more=1.0)
    )
    rate = MetricSource.mean("v", {"g": "g0"}, scale=100, clusters=("request",))
    yield Kind("refusals, rate", "24 requests x 3 draws", rate, asked(24, 1, 3))
    yield Kind("hits, mean", "12 questions of 4", MetricSource.mean("v"), counted(12))
    yield Kind("hits, sum", "12 questions of 4", MetricSource("sum", "v"), counted(12))
    yield Kind("BBQ, bias without the facts", "15 kinds of question x 4",
               MetricSource("bias.bbq_ambig", clusters=("cluster",)), ambiguous(15))  # fmt: skip
    cliff = MetricSource("needle.cliff", options={"score": "v", "threshold": 0.5})
    yield Kind("needle's cliff", "4 lengths x 24", cliff, grids(24))
    tier = MetricSource.members(
        "exposure", "v", {"role": "member"}, {"role": "control"}, options={"tier": {"times": 1}}
    )
    yield Kind("exposure of a tier", "8 of 24 members, 200 controls", tier, tiers(8, 200))
    area = MetricSource.members("auc", "v", {"role": "member"}, {"role": "control"})
    yield Kind("auc", "15 members, 200 controls", area, tiers(5, 200))
    yield Kind("quantile 0.9", "24 items", MetricSource("quantile", "v", options={"q": 0.9}), items(24))
    for name in ("MAS", "RISE"):
        yield Kind(f"{name}, mean of samples", "12 samples", MetricSource.mean("v"), areas(12, name))
    yield Kind("perplexity", "12 items", MetricSource("perplexity", "v", options={"weight": "n"}), items(12))


UNEVEN_DRAWS = (1, 1, 2, 3, 6, 12)


def of_two_groups() -> Iterator[Kind]:
    """Groups over the same requests whose sizes differ, or whose shares lie near 0 or 1; without an effect the second
    run is of the same law, or the difference turned its sign."""
    widest = MetricSource("max_min", "v", options={"group": "g"}, scale=100, clusters=("request",))
    between = MetricSource.difference("v", {"g": "g0"}, {"g": "g1"}, scale=100, clusters=("request",))
    name = "two groups, largest difference"
    uneven: dict[str, Any] = {"draws": UNEVEN_DRAWS, "missing": 0.1}
    designs: dict[str, Make] = {
        "24 requests x 1 to 12": Asked(**uneven),
        "24 requests x 3, 3% refused": Asked(level=-2.4),
        "24 requests x 1 to 12, 3% refused": Asked(level=-2.4, **uneven),
        "24 requests x 1 to 12, 97% refused": Asked(level=2.4, **uneven),
        "24 requests x 1 to 12, apart by 1.5 SD": Asked(gap=1.7, **uneven),
        "24 requests x 1 to 12, 3% and 40% refused": Asked(level=-2.4, gap=2.1, **uneven),
        "24 requests x 1 to 12, turned from 1.5 SD": Asked(gap=1.7, second="turned", **uneven),
        "24 requests x 1 to 12, turned, 3% and 40% refused": Asked(level=-2.4, gap=2.1, second="turned", **uneven),
        "24 requests x 1 to 12, turned, 97% and 60% refused": Asked(level=2.4, gap=-2.1, second="turned", **uneven),
        "24 requests x 1 to 12, turned over other parts": Asked(gap=1.7, second="turned, others", **uneven),
        "8 requests x 1 to 12, turned, 3% and 40% refused": Asked(8, level=-2.4, gap=2.1, second="turned", **uneven),
        "24 requests x 1 to 12, turned, values": Asked(gap=1.7, second="turned", binary=False, **uneven),
        "12 clusters of 1 to 20 of each, values": clustered(UNEVEN, level=None),
        "12 clusters of 1 to 20 of each, 8% hits": clustered(UNEVEN, level=-2.0),
    }
    for setting, design in designs.items():
        yield Kind(name, setting, widest, design)
    for setting in ("24 requests x 1 to 12, 3% refused", "24 requests x 1 to 12, 3% and 40% refused"):
        yield Kind("two groups, difference", setting, between, designs[setting])
        yield Kind("two groups, difference about 0", setting, between, designs[setting], 0.0)
    setting = "24 requests x 1 to 12, turned, 3% and 40% refused"
    yield Kind("two groups, difference about 0", setting, between, designs[setting], 0.0)
    for setting in list(designs)[-2:]:
        yield Kind("two groups, difference", setting, between, designs[setting])
    for groups in (4, 9):
        yield Kind("refusals, largest difference", f"{groups} groups, 24 requests x 1 to 12, 3% refused", widest,
                   Asked(groups=groups, level=-2.4, **uneven))  # fmt: skip
        yield Kind("refusals, largest difference", f"{groups} groups, 24 requests x 1 to 12, 3% and 40%", widest,
                   Asked(groups=groups, level=-2.4, gap=2.1, **uneven))  # fmt: skip
    rate = MetricSource.mean("v", {"g": "g0"}, scale=100, clusters=("request",))
    for level, setting in ((-2.4, "24 requests x 1 to 12, 3%"), (2.4, "24 requests x 1 to 12, 97%")):
        yield Kind("refusals, rate", setting, rate, Asked(level=level, **uneven))
        yield Kind("two samples, refusals, rate", setting, rate, others(Asked(level=level, **uneven)))
    for setting, design in (
        ("24 and 24 other requests x 1 to 12, 3%", Asked(level=-2.4, **uneven)),
        ("24 and 24 other requests x 1 to 12, 3% and 40%", Asked(level=-2.4, gap=2.1, **uneven)),
        ("24 and 24 other requests x 1 to 12, turned, 3% and 40%",
         Asked(level=-2.4, gap=2.1, second="turned, others", **uneven)),
    ):  # fmt: skip
        yield Kind("two samples, largest difference", f"2 groups, {setting}", widest, others(design))
    clusters = "12 and 12 other clusters of 1 to 20"
    by_cluster = MetricSource.mean("v", clusters=("request",))
    yield Kind("two samples, clustered mean", clusters, by_cluster, others(clustered(UNEVEN, level=None)))
    yield Kind(
        "two samples, clustered share", f"{clusters}, 8% hits", by_cluster, others(clustered(UNEVEN, level=-2.0))
    )


BY_T = {f"two samples, {name}" for name in ("mean", "auc", "difference of groups", "clustered mean")}


def p_value(kind: Kind, effect: float, run: int) -> float:
    """The p-value of one simulated comparison; 1 where there is no test."""
    rng = np.random.default_rng([SEED, run, int(effect), *kind.name.encode(), *kind.setting.encode()])
    a, b = kind.make(rng, effect)
    if kind.source is None:
        sides = [np.array([row["v"] for row in side]) for side in (a, b)]
        bca = partial(bootstrap_ci, n_resamples=999, seed=run, method="BCa")
        make = bca if "BCa" in kind.name else partial(mean_interval, n_resamples=999, seed=run)
        first, second = (make(values) for values in sides)
        p = difference_of_intervals(first, second)[1]
        return 1.0 if p is None else p
    if kind.name in BY_T and kind.source and (told := _by_t(kind.source, a, b)) > 0.05:
        return told
    change = change_between(kind.source, RowTable(a), RowTable(b), target=kind.target, seed=run, resolution=0.01)
    assert isinstance(change, Change), change
    return 1.0 if change.p is None else change.p


def _by_t(source: MetricSource, a: Rows, b: Rows) -> float:
    """The p of the t alone, than which that of a comparison of two samples is no smaller: labels are slow to deal."""
    sides = [gathered(source, RowTable(rows)) for rows in (a, b)]
    evaluate = [statistic_of(source)(units, source.options) for units in sides]
    parts = [spread_of(of, clusterings(source, units)) for of, units in zip(evaluate, sides, strict=True)]
    before, after = (float(of(np.ones((1, len(units))))[0]) for of, units in zip(evaluate, sides, strict=True))
    return t_p_value(after - before, difference_of(*parts, hidden=hidden_in(source, *sides)))


def rates(task: tuple[int, int, int, float]) -> tuple[Row, Row]:
    """Of one kind the shares of p <= 5 % in so many runs without the effect, and in so many with it.

    The runs with the effect take at most so many CPU seconds, those without twice as many: fewer runs then, but 20.
    """
    number, without, with_effect, seconds = task
    kind = list(kinds())[number]
    found = []
    for effect, runs, most in ((0.0, without, 2 * seconds), (1.0, with_effect, seconds)):
        begin, small = time.process_time(), list[bool]()
        while len(small) < runs and (len(small) < 20 or time.process_time() - begin < most):
            small.append(p_value(kind, effect, len(small)) <= 0.05)
        found.append(Row(kind.name, kind.setting, 0.05, float(np.mean(small)), len(small)))
    return found[0], found[1]


def known_law(task: tuple[int, int]) -> tuple[float, float]:
    """The power of a test that knows how the change of the statistic is distributed, and looks at nothing else.

    It rejects beyond the quantile of so many changes without an effect; with its standard error.
    """
    number, runs = task
    kind = list(kinds())[number]
    if kind.source is None:
        return math.nan, 0.0
    sizes = []
    for effect in (0.0, 1.0):
        changes = []
        for run in range(runs):
            rng = np.random.default_rng([SEED, run, int(effect), 7, *kind.name.encode(), *kind.setting.encode()])
            values = [_value(kind.source, RowTable(rows)) for rows in kind.make(rng, effect)]
            changes.append(values[1] - values[0])
        sizes.append(np.abs(changes))
    power = float((sizes[1] > np.quantile(sizes[0], 0.95) + 1e-9).mean())
    return power, (power * (1 - power) / runs) ** 0.5


def _value(source: MetricSource, rows: RowTable) -> float:
    units = gathered(source, rows)
    return float(statistic_of(source)(units, source.options)(np.ones((1, len(units))))[0])


def law_table(runs: int, jobs: int, only: str) -> str:
    """The Markdown table of :func:`known_law`."""
    found = [(n, kind) for n, kind in enumerate(kinds()) if only in f"{kind.name}, {kind.setting}"]
    with ProcessPoolExecutor(jobs) as pool:
        powers = list(pool.map(known_law, [(number, runs) for number, _ in found]))
    lines = ["| statistic | design | power of a test that knows the law |", "| --- | --- | --- |"]
    for (_, kind), (power, error) in zip(found, powers, strict=True):
        lines.append(f"| {kind.name} | {kind.setting} | {100 * power:.1f}% ± {100 * error:.1f} |")
    return "\n".join(lines)


def rows_of(runs: int, power_runs: int, jobs: int, only: str, seconds: float = math.inf) -> Iterator[str]:
    """The Markdown rows of all kinds, or of those whose name or design holds ``only``, each as soon as it is known."""
    found = [(n, kind) for n, kind in enumerate(kinds()) if only in f"{kind.name}, {kind.setting}"]
    with ProcessPoolExecutor(jobs) as pool:
        begun = [pool.submit(rates, (number, runs, power_runs, seconds)) for number, _ in found]
        for ended in as_completed(begun):
            rows = ended.result()
            texts = [f"{100 * row.rate:.1f}% ± {100 * row.error:.1f} ({row.runs:,})" for row in rows]
            yield f"| {rows[0].method} | {rows[0].setting} | {texts[0]} | {texts[1]} |"


def table(rows: Sequence[str]) -> str:
    """The Markdown table of these rows."""
    head = ["| statistic | design | false positives at 5% | power at one item SD |", "| --- | --- | --- | --- |"]
    told = f"Seed {SEED}; ± is the standard error of the simulation, in brackets stand its comparisons."
    return f"{told}\n\n" + "\n".join([*head, *rows])


def renewed(before: str, rows: Sequence[str]) -> list[str]:
    """The rows of a table ``before`` with those of ``rows`` in the place of their namesakes, in the order of kinds.

    Rows of no kind any more are left out.
    """
    own = {_name(row): row for row in [*before.splitlines(), *rows] if row.startswith("| ")}
    return [own[name] for kind in kinds() if (name := (kind.name, kind.setting)) in own]


def _name(row: str) -> tuple[str, str]:
    name, setting = (cell.strip() for cell in row.split("|")[1:3])
    return name, setting


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="comparisons a cell without an effect (default 1000)")
    parser.add_argument("--power-runs", type=int, help="comparisons a cell with one (default: as many)")
    parser.add_argument("--only", default="", help="only statistics or designs that hold this")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    limited = "CPU seconds at most a row with an effect, twice as many without (default: no limit)"
    parser.add_argument("--seconds", type=float, default=math.inf, help=limited)
    parser.add_argument(
        "--write", action="store_true", help="put the rows into docs/statistics.md in the place of older ones"
    )
    parser.add_argument("--known-law", action="store_true", help="the power of a test that knows the law instead")
    options = parser.parse_args()
    if options.known_law:
        print(law_table(options.runs, options.jobs, options.only))
        return
    print(table([]))
    for row in rows_of(options.runs, options.power_runs or options.runs, options.jobs, options.only, options.seconds):
        # At once, so that a run that is cut keeps what it had.
        print(row, flush=True)
        if options.write:
            before = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
            write_between(PAGE, BEGIN, END, table(renewed(before, [row])))


if __name__ == "__main__":
    main()
