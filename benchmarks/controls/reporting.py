"""What every control asks of its reported numbers (``audits/second_opinion.py``), on values as they come.

Each draw is one metric of one kind, reported by the function that the audits use. Well: no fault may be found. Broken:
its interval is half or twice as wide, or its chance level 0.1 up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from designs import Design

from lm_audit.audits.leakage.averages import mean_of
from lm_audit.audits.leakage.orders.rows import sharded_test
from lm_audit.audits.needle.grid.cells import share as needle_share
from lm_audit.audits.privacy.measure.membership import auc_estimate, pr_estimate, tpr_estimate
from lm_audit.audits.second_opinion import misreported
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate, bounded_mean, clopper_pearson, mean_exposure, studentised_difference, two_way_mean
from lm_audit.stats import share as exact_share
from lm_audit.stats.means.independent import mean_interval
from lm_audit.stats.means.studentised import studentised_mean
from lm_audit.stats.shares.share_differences import clustered_share_difference

Made = tuple[Estimate, MetricSource, list[dict[str, Any]]]
Kind = Callable[[np.random.Generator], Made]
MEMBER, TWIN = {"role": "member"}, {"role": "control"}


def _rows(values: np.ndarray, **columns: Any) -> list[dict[str, Any]]:
    return [
        {"item": str(i), "value": float(value), **{name: column[i] for name, column in columns.items()}}
        for i, value in enumerate(values)
    ]


def share(rng: np.random.Generator) -> Made:
    n = int(rng.choice([5, 8, 16, 24, 40, 200]))
    hits = rng.random(n) < rng.choice([0.0, 0.02, 0.3, 0.9, 1.0])
    return clopper_pearson(int(hits.sum()), n), MetricSource.mean("value"), _rows(hits)


def clustered_share(rng: np.random.Generator) -> Made:
    """Of 6 to 20 clusters, of which each may hold one answer only."""
    count = int(rng.choice([6, 8, 12, 20]))
    labels = rng.integers(count, size=count * int(rng.choice([1, 2, 3, 6])))
    own, level = rng.random(count), rng.choice([0.0, 0.1, 0.5, 0.9])
    hits = np.where(rng.random(len(labels)) < rng.choice([0.0, 0.3, 1.0]), own[labels], rng.random(len(labels))) < level
    names = [f"s{label}" for label in labels]
    return needle_share(hits, names), MetricSource.mean("value", clusters=("stretch",)), _rows(hits, stretch=names)


def share_of_answers(rng: np.random.Generator) -> Made:
    """Of items with several answers each, some of which name nobody, over the items' clusters: a ratio of two sums."""
    count = int(rng.choice([8, 12, 30]))
    named, own = rng.integers(1, 7, size=count), rng.random(count)
    chosen = np.where(rng.random(count) < rng.choice([0.3, 1.0]), own, rng.choice([0.1, 0.5, 0.9]))
    hits, labels = rng.binomial(named, chosen), rng.integers(max(6, count // 2), size=count)
    answers = np.concatenate([np.arange(n) < h for n, h in zip(named, hits, strict=True)])
    names = [f"c{label}" for label in labels]
    rows = [
        {"item": str(i), "hits": int(h), "named": int(n), "cluster": names[i]}
        for i, (h, n) in enumerate(zip(hits, named, strict=True))
    ]
    source = MetricSource("ratio", "hits", clusters=("cluster",), options={"denominator": "named"})
    return exact_share(answers, np.repeat(names, named)), source, rows


def share_difference(rng: np.random.Generator) -> Made:
    """Two groups asked the same requests, or independent ones."""
    count, draws = int(rng.choice([8, 12, 24])), int(rng.choice([1, 3]))
    both = rng.normal(0, rng.choice([0.0, 1.0]), count)
    levels = np.stack([both + rng.choice([-3.0, 0.0]), both + rng.choice([-1.0, 1.0])])
    hits = (rng.normal(size=(2, count, draws)) < levels[:, :, None]).astype(float).ravel()
    side = np.repeat(["first", "second"], count * draws)
    labels = np.tile(np.repeat(np.arange(count), draws), 2)
    if rng.random() < 0.3:
        labels = np.arange(len(hits))
    found = clustered_share_difference(hits, side == "first", labels)
    source = MetricSource.difference("value", {"side": "first"}, {"side": "second"}, clusters=("request",))
    return found, source, _rows(hits, side=side, request=[f"r{label}" for label in labels])


def two_groups(rng: np.random.Generator) -> Made:
    """Of unequal sizes, spreads and shapes: bootstrap-t."""
    m, n = (int(rng.choice(sizes)) for sizes in ([15, 24, 40], [15, 60, 200]))
    first, second = (rng.gamma(rng.choice([1.0, 4.0, 30.0]), size=size) for size in (m, n))
    values = np.r_[rng.choice([0.3, 1.0, 3.0]) * first, second]
    side = ["member"] * m + ["control"] * n
    found = studentised_difference(values[:m], values[m:], seed=int(rng.integers(99)), n_resamples=1999).difference
    return found, MetricSource.difference("value", MEMBER, TWIN), _rows(values, role=side)


def bounded(rng: np.random.Generator) -> Made:
    n = int(rng.choice([8, 16, 24, 40]))
    a, b = [(0.3, 0.3), (2, 8), (9, 1), (20, 2)][int(rng.integers(4))]
    values = rng.beta(a, b, size=n)
    values = np.round(values * 4) / 4 if rng.random() < 0.5 else values
    return bounded_mean(values, seed=int(rng.integers(99))), MetricSource.mean("value"), _rows(values)


def skewed(rng: np.random.Generator) -> Made:
    """As log-probabilities are: bootstrap-t."""
    values = -rng.gamma(rng.choice([1.0, 2.0, 8.0]), size=int(rng.choice([12, 24, 60])))
    found = mean_of(values, ["f"] * len(values), unit="nats", seed=int(rng.integers(99)), better="lower")
    return found, MetricSource.mean("value"), _rows(values)


def difference(rng: np.random.Generator) -> Made:
    values = rng.standard_t(4, size=int(rng.choice([12, 24, 60])))
    found = mean_of(values, ["f"] * len(values), unit="nats", seed=0, kind="differences")
    return found, MetricSource.mean("value"), _rows(values)


def files(rng: np.random.Generator) -> Made:
    """Of eight files: CR2."""
    names = [f"f{k}" for k in rng.integers(8, size=60)]
    own = dict(zip(sorted(set(names)), rng.normal(0, 0.5, 8), strict=False))
    values = np.array([own[name] for name in names]) + rng.normal(size=60)
    found = mean_of(values, names, unit="nats", seed=0, kind="differences")
    return found, MetricSource.mean("value", clusters=("file",)), _rows(values, file=names)


def method_means(rng: np.random.Generator) -> Made:
    """As scores of a deletion test over ten samples are: recall of three letters, areas, shares between two orders."""
    kind = rng.integers(4)
    values = (
        rng.binomial(3, rng.choice([0.4, 0.7]), size=10) / 3
        if kind == 0
        else rng.beta(6, 6, size=10)
        if kind == 1
        else rng.beta(1.5, 8, size=10)
        if kind == 2
        else 1 - rng.gamma(2.0, 0.3, size=10)
    )
    return (
        mean_interval(values, seed=int(rng.integers(99)), n_resamples=2000),
        MetricSource.mean("value"),
        _rows(values),
    )


def method_gains(rng: np.random.Generator) -> Made:
    """A method's gains over another order on ten samples."""
    values = rng.normal(rng.choice([0.0, 0.2]), 0.1, size=10) - rng.choice([0.0, 1.0]) * rng.gamma(2.0, 0.05, size=10)
    return studentised_mean(values, seed=int(rng.integers(99))), MetricSource.mean("value"), _rows(values)


def shards(rng: np.random.Generator) -> Made:
    """Eight shards' gains over their shuffles: a t interval."""
    mixed = rng.normal(0, 3, size=(8, 3)) * rng.gamma(4.0, 0.25, size=(8, 1))
    own = rng.normal(rng.choice([0.0, 6.0]), 3, size=8)
    found = sharded_test(own.tolist(), mixed.tolist()).gain
    return replace(found, chance=None), MetricSource.mean("value"), _rows(own - mixed.mean(axis=1))


def neighbours(rng: np.random.Generator) -> Made:
    """Twelve pairs of neighbours in order and swapped, of one file."""
    values = rng.normal(rng.choice([0.0, 8.0]), 1, size=12) * rng.choice([1.0, 3.0], size=12)
    found = mean_of(values, ["f"] * 12, unit="nats", seed=0, kind="differences", general=False)
    return found, MetricSource.mean("value"), _rows(values)


def grid(rng: np.random.Generator) -> Made:
    table = rng.normal(0, 0.4, (6, 1)) + rng.normal(0, 0.4, (1, 6)) + rng.normal(0, 0.6, (6, 6))
    places = [(f"t{i}", f"p{k}") for i in range(6) for k in range(6)]
    columns = {"template": [t for t, _ in places], "pair": [p for _, p in places]}
    source = MetricSource.mean("value", clusters=("template", "pair"))
    return two_way_mean(table), source, _rows(table.ravel(), **columns)


def _groups(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    n, m = [(16, 200), (15, 200), (200, 200), (50, 400)][int(rng.integers(4))]
    members, twins = rng.normal(rng.choice([0.0, 0.0, 0.5, 2.0, 9.0]), 1, n), rng.normal(size=m)
    roles = ["member"] * n + ["control"] * m
    return members, twins, _rows(np.r_[members, twins], role=roles)


def auc(rng: np.random.Generator) -> Made:
    members, twins, rows = _groups(rng)
    return auc_estimate(members, twins), MetricSource.members("auc", "value", MEMBER, TWIN), rows


def average_precision(rng: np.random.Generator) -> Made:
    members, twins, rows = _groups(rng)
    found = pr_estimate(members, twins, int(rng.integers(99)))
    return found, MetricSource.members("average_precision", "value", MEMBER, TWIN), rows


def tpr(rng: np.random.Generator) -> Made:
    members, twins, rows = _groups(rng)
    source = MetricSource.members("tpr_at_fpr", "value", MEMBER, TWIN, options={"fpr": "0.01"})
    return tpr_estimate(members, twins, "0.01"), source, rows


def exposure(rng: np.random.Generator) -> Made:
    members, twins, rows = _groups(rng)
    return mean_exposure(-members, -twins), MetricSource.members("exposure", "value", MEMBER, TWIN), rows


LIMITS = (0.0, 1.0)
BOUNDED = (share, clustered_share, share_of_answers, share_difference, bounded)


def held(rng: np.random.Generator, kind: Kind, fault: str = "") -> bool:
    estimate, source, rows = kind(rng)
    while fault and (estimate.low is None or estimate.high is None):
        estimate, source, rows = kind(rng)
    value, low, high, chance = estimate.value, estimate.low, estimate.high, estimate.chance
    if fault in WIDTHS:
        assert value is not None and low is not None and high is not None
        times = WIDTHS[fault]
        estimate = replace(estimate, low=value + times * (low - value), high=value + times * (high - value))
    elif fault and chance is not None:
        estimate = replace(estimate, chance=chance + 0.1)
    evidence = Evidence("reporting", rows=rows)
    evidence.metric("reporting.metric", estimate, source)
    return not misreported(evidence, limits={"reporting.metric": LIMITS} if kind in BOUNDED else None)


KINDS: dict[str, Kind] = {
    "shares": share,
    "shares over clusters": clustered_share,
    "shares of answers over clusters": share_of_answers,
    "differences of shares": share_difference,
    "means of bounded values": bounded,
    "means of skewed values": skewed,
    "paired differences": difference,
    "differences of two groups": two_groups,
    "means over files": files,
    "means over templates and pairs": grid,
    "scores of a method": method_means,
    "gains of a method": method_gains,
    "gains of shards": shards,
    "gains of neighbours": neighbours,
    "AUC": auc,
    "average precision": average_precision,
    "TPR at 1 %": tpr,
    "exposure": exposure,
}
WIDTHS = {"half as wide": 0.5, "twice as wide": 2.0}
WITH_CHANCE = ("AUC", "average precision", "TPR at 1 %", "exposure")
DESIGNS = [
    *(Design("every control's numbers", name, True, partial(held, kind=kind)) for name, kind in KINDS.items()),
    *(
        Design(
            "every control's numbers",
            f"{name} {fault}",
            False,
            partial(held, kind=kind, fault=fault),
            0.25,
        )
        for fault in WIDTHS
        for name, kind in KINDS.items()
    ),
    *(
        Design(
            "every control's numbers",
            f"{name}, chance 0.1 up",
            False,
            partial(held, kind=KINDS[name], fault="chance"),
            0.25,
        )
        for name in WITH_CHANCE
    ),
]
