"""Comparison of methods: ranking by paired bootstrap over samples, agreement, hops, and token versus sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from lm_audit.audits.faithfulness.deletion.metrics import rank_correlation
from lm_audit.audits.faithfulness.study import Scored
from lm_audit.audits.metric_info import metric_info
from lm_audit.stats import Estimate

Table = Mapping[str, Mapping[str, float]]
"""Method -> sample -> value."""


CONFIDENCE = 0.95
"""Of all differences between methods at once."""


@dataclass(frozen=True)
class Ranked:
    """A method's place by one metric; ``behind`` is best minus this method, or this minus best: never below 0 on
    average.

    ``separated`` says that the interval of the difference to the best method lies beyond 0. The best one was chosen by
    looking, so that these intervals hold for all pairs of methods at once (Bonferroni); fewer than 8 samples give none.
    """

    metric: str
    place: int
    method: str
    mean: Estimate
    behind: Estimate | None
    separated: bool

    def row(self) -> dict[str, Any]:
        """A flat record."""
        return {
            "metric": self.metric,
            "place": self.place,
            "method": self.method,
            "mean": self.mean.value,
            "low": self.mean.low,
            "high": self.mean.high,
            "n": self.mean.n,
            "behind": None if self.behind is None else self.behind.value,
            "behind_low": None if self.behind is None else self.behind.low,
            "behind_high": None if self.behind is None else self.behind.high,
            "separated": self.separated,
        }


def table_of(scored: Sequence[Scored], metric: str, *, skip_degenerate: bool = True) -> dict[str, dict[str, float]]:
    """Values of a metric by method and sample; degenerate samples and undefined values are left out."""
    table: dict[str, dict[str, float]] = {}
    for one in scored:
        value = one.row()[metric]
        if value is None or (skip_degenerate and one.curve.degenerate):
            continue
        table.setdefault(one.method, {})[one.sample] = float(value)
    return table


def rank_methods(table: Table, metric: str, *, seed: int, n_resamples: int = 2000) -> list[Ranked]:
    """Methods from best to worst over the samples that all of them have, each with its difference to the best."""
    from lm_audit.stats import mean_interval

    if not table:
        return []
    shared = sorted(set.intersection(*(set(values) for values in table.values())))
    declared = metric_info(f"faithfulness.{metric}")
    sign = 1.0 if declared is not None and declared.better == "higher" else -1.0
    columns = {method: np.array([values[name] for name in shared]) for method, values in table.items()}
    if not shared:
        return []
    ordered = sorted(columns, key=lambda method: (-sign * columns[method].mean(), method))
    best = columns[ordered[0]]
    level = 1 - (1 - CONFIDENCE) / max(1, len(columns) * (len(columns) - 1) // 2)
    ranked = []
    for place, method in enumerate(ordered, 1):
        mean = mean_interval(columns[method], seed=seed, n_resamples=n_resamples)
        behind = None
        if place > 1:
            differences = sign * (best - columns[method])
            behind = mean_interval(differences, confidence=level, seed=seed, n_resamples=n_resamples)
        separated = behind is not None and behind.low is not None and behind.low > 0.0
        ranked.append(Ranked(metric, place, method, mean, behind, separated))
    return ranked


def agreement(weights: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mean Spearman correlation of every two methods over samples; ``weights``: method -> sample -> prompt weights."""
    rows = []
    for first, second in combinations(weights, 2):
        found = [
            rank_correlation(weights[first][name], weights[second][name])
            for name in weights[first]
            if name in weights[second]
        ]
        defined = [value for value in found if value is not None]
        mean = float(np.mean(defined)) if defined else None
        rows.append({"first": first, "second": second, "spearman": mean, "samples": len(defined)})
    return rows


def hidden_by_sentences(
    token: Sequence[Scored], sentence: Sequence[Scored], *, metric: str = "mas", token_gap: float = 0.05
) -> list[dict[str, Any]]:
    """Samples and pairs of methods that differ at token level by ``token_gap`` but not at all at sentence level."""
    rows = []
    lines = {(one.sample, one.method): one.row()[metric] for one in token}
    blocks = {(one.sample, one.method): one.row()[metric] for one in sentence}
    for sample in dict.fromkeys(one.sample for one in token):
        methods = [method for name, method in lines if name == sample and (sample, method) in blocks]
        for first, second in combinations(methods, 2):
            apart = lines[sample, first] - lines[sample, second]
            blocked = blocks[sample, first] - blocks[sample, second]
            if abs(apart) >= token_gap and abs(blocked) < 1e-9:
                rows.append({"sample": sample, "first": first, "second": second, "token_difference": apart})
    return rows
