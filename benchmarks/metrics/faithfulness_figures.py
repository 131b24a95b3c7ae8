"""Figures of the faithfulness audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from figure import Design, Told

from lm_audit.audits.faithfulness.compare import rank_methods
from lm_audit.audits.faithfulness.conclusions import REFERENCES, record_gain
from lm_audit.evidence import Evidence
from lm_audit.stats import Estimate, bounded_mean, clopper_pearson, mean_interval

SHAPES = {"rise": (2.0, 6.0), "mas": (3.0, 5.0), "recovery": (1.0, 2.0), "near 0": (0.4, 4.0)}
"""Beta parameters of a sample's score."""


def scores(rng: np.random.Generator, seed: int, there: bool, *, n: int) -> Mapping[str, Told]:
    """Areas under a curve and shares, a value a sample."""
    told: dict[str, Told] = {}
    for name, (a, b) in SHAPES.items():
        found = mean_interval(rng.beta(a, b, n), seed=seed, n_resamples=999)
        told[f"faithfulness.{name}" if name != "near 0" else "faithfulness.rise (near 0)"] = Told(found, a / (a + b))
    penalised = rng.beta(2.0, 6.0, n) + rng.exponential(0.1, n)
    told["faithfulness.rise_ap"] = Told(mean_interval(penalised, seed=seed, n_resamples=999), 0.35)
    # Between a random order and the known one: a ratio, whose denominator is seldom small.
    normalised = 1 - rng.gamma(4.0, 0.15, n)
    told["faithfulness.mas_normalised"] = Told(mean_interval(normalised, seed=seed, n_resamples=999), 0.4)
    told["faithfulness.degenerate_share"] = Told(clopper_pearson(int((rng.random(n) < 0.05).sum()), n), 0.05)
    return told


def gain(rng: np.random.Generator, seed: int, there: bool, *, n: int) -> Mapping[str, Told]:
    """Random orders and even weights minus a method, paired by sample."""
    own = rng.beta(3, 5, n)
    effect = 0.1 if there else 0.0
    references = {f"mas_{kind}": own + effect + 0.08 * rng.standard_t(5, n) for kind in ("random", "uniform")}
    rows = [
        {"sample": f"s-{k}", "degenerate": False, "mas": float(own[k])}
        | {name: float(values[k]) for name, values in references.items()}
        for k in range(n)
    ]
    evidence = Evidence("faithfulness")
    record_gain(evidence, rows, "ifr", "token", seed)
    return {name: Told(evidence.metrics[name], effect, 0.0, "above") for name in REFERENCES}


def separated(rng: np.random.Generator, seed: int, there: bool, *, n: int, methods: int) -> Mapping[str, Told]:
    """Methods that are all alike: is one called worse than the best, which was chosen by looking?"""
    own = rng.beta(3, 5, n)
    table = {
        f"m{k}": dict(zip(map(str, range(n)), own + 0.05 * rng.normal(size=n), strict=True)) for k in range(methods)
    }
    ranked = rank_methods(table, "mas", seed=seed, n_resamples=999)
    worst = max((one.behind for one in ranked if one.behind is not None), key=lambda one: one.low or -1.0)
    return {"faithfulness.mas.{method}, separated": Told(worst, 0.0, 0.0, "above")}


def controls(rng: np.random.Generator, seed: int, there: bool, *, n: int) -> Mapping[str, Told]:
    found: dict[str, Estimate] = {
        "faithfulness.planted_found.{method}": clopper_pearson(int((rng.random(n) < 0.95).sum()), n),
        "faithfulness.random_{score}": bounded_mean(rng.beta(4, 4, n), 0.0, 1.0, seed=seed, n_resamples=999),
        "faithfulness.randomised_correlation.{method}": bounded_mean(
            2 * rng.beta(6, 5, n) - 1, -1.0, 1.0, seed=seed, n_resamples=999
        ),
    }
    truth = (0.95, 0.5, 1 / 11)
    return {name: Told(one, value) for (name, one), value in zip(found.items(), truth, strict=True)}


def designs() -> Iterator[Design]:
    for n in (8, 24):
        yield Design("mean_interval, clopper_pearson", "a score a sample", f"{n} samples", partial(scores, n=n))
        yield Design("studentised_mean", "paired by sample", f"{n} samples", partial(gain, n=n))
        for methods in (2, 6):
            yield Design(
                "mean_interval, Bonferroni over pairs",
                f"{methods} methods, all alike",
                f"{n} samples",
                partial(separated, n=n, methods=methods),
            )
        yield Design("clopper_pearson, bounded_mean", "controls", f"{n} samples", partial(controls, n=n), discrete=True)
