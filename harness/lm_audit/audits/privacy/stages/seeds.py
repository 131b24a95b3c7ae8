"""Several seeds: do they agree in direction, and what is the spread?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lm_audit.audits.privacy.attribution.transitions import CONSISTENCY_RULE
from lm_audit.audits.privacy.evidence.figures import seed_figure
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate, clustered_mean
from lm_audit.stats.covering import FEWEST
from lm_audit.stats.shares.proportions import sign_test_p


def combine_seeds(evidences: Mapping[int, Evidence], metric: str) -> Evidence:
    """Evidence on one metric over seeds: mean with a t interval over seeds, and the direction they agree in.

    A seed is the unit: the canaries of one run share a model.
    """
    found = {seed: evidence.metrics[metric] for seed, evidence in evidences.items() if metric in evidence.metrics}
    known = {seed: e for seed, e in found.items() if e.value is not None}
    values = [float(e.value) for e in known.values() if e.value is not None]
    combined = Evidence("privacy", parameters={"seeds": list(evidences), "metric": metric})
    combined.metric(f"{metric}.over_seeds", mean_over_seeds(values, metric), MetricSource.mean("value"))
    consistency = MetricSource("privacy.direction_consistency", "value")
    combined.metric(f"{metric}.direction_consistency", direction_consistency(values), consistency)
    rows = [
        {"item": f"seed-{seed}", "seed": seed, "value": e.value, "low": e.low, "high": e.high}
        for seed, e in known.items()
    ]
    combined.extend_rows(rows)
    combined.figures.append(seed_figure(rows))
    combined.headline = f"{metric}.over_seeds"
    return combined


def mean_over_seeds(values: Sequence[float], metric: str) -> Estimate:
    """Mean over seeds, with a t interval from 8 seeds on.

    Of fewer, whose values are means of few canaries with long tails, t covered 91.4% to 95.4% (24 designs of 3 to 7
    seeds, 8,000 each): as everywhere, fewer than 8 have none, and the note tells how far they lie apart.
    """
    method = "mean over seeds"
    if not values:
        return Estimate.not_estimable(f"no seed has a value of {metric}", method=method)
    data = np.asarray(values, dtype=np.float64)
    if len(data) >= FEWEST:
        found = clustered_mean(data, range(len(data)))
        note = found.note or f"sd over seeds {data.std(ddof=1):.3f}"
        return replace(found, method=f"{method}, t interval", better="lower", note=note, units=None, fewest=None)
    apart = f", which lie between {data.min():.3g} and {data.max():.3g}" if len(data) > 1 else ""
    many = "1 seed gives" if len(data) == 1 else f"{len(data)} seeds give"
    note = f"{many} no interval, {FEWEST} do{apart}"
    return Estimate(float(data.mean()), n=len(data), method=method, better="lower", note=note)


def direction_consistency(values: Sequence[float]) -> Estimate:
    """Share of the seeds that do not tie which move in the majority's direction, with the exact sign test beside it."""
    positive, negative = sum(v > 0 for v in values), sum(v < 0 for v in values)
    moved, method = positive + negative, "direction consistency"
    if not moved:
        return Estimate.not_estimable("no seed moved", n=len(values), method=method, confidence=None)
    share = max(positive, negative) / moved
    word = "meets" if share >= CONSISTENCY_RULE else "misses"
    p, chance = sign_test_p(positive, negative), agreement_by_chance(moved)
    note = f"{positive} up, {negative} down, {len(values) - moved} ties; sign test p = {p:.3f}; {word} the 70% rule"
    return Estimate(share, n=len(values), confidence=None, method=method, unit="share", note=note, chance=chance)


def agreement_by_chance(seeds: int) -> float:
    """The share of so many seeds that go with most of them where each goes either way alike: 3 agree to 0.75."""
    ways = [math.comb(seeds, up) for up in range(seeds + 1)]
    return math.fsum(many * max(up, seeds - up) for up, many in enumerate(ways)) / 2.0**seeds / seeds
