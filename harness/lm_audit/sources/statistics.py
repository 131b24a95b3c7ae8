"""The statistics that a source may name, each for many weightings of the units at once.

``STATISTICS[name](units, options)`` returns a function of weights of shape (B, n), how often each unit counts, that
returns B values; NaN where a weighting has no value (a group without units). Weights of one give the metric itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from lm_audit.sources.units import Floats, Mask, Units

Evaluate = Callable[[Floats], Floats]
Prepare = Callable[[Units, Mapping[str, Any]], Evaluate]


def mean(units: Units, options: Mapping[str, object]) -> Evaluate:
    """The mean; ``weight``: a column by which units are weighted."""
    own = _weights(units, options)
    return lambda weights: _ratio(weights @ (own * units.values), weights @ own)


def total(units: Units, options: Mapping[str, object]) -> Evaluate:
    """The sum of the values."""
    return lambda weights: np.asarray(weights @ units.values, dtype=np.float64)


def ratio(units: Units, options: Mapping[str, Any]) -> Evaluate:
    """Sum of the values over the sum of the column ``denominator``."""
    below = np.nan_to_num(units.numbers(options["denominator"]))
    return lambda weights: _ratio(weights @ units.values, weights @ below)


def perplexity(units: Units, options: Mapping[str, object]) -> Evaluate:
    """exp of minus the mean (weighted by the column ``weight``) of log-probabilities in nats."""
    average = mean(units, options)
    return lambda weights: np.exp(-average(weights))


def quantile(units: Units, options: Mapping[str, Any]) -> Evaluate:
    """The quantile ``q`` (0.5, the median), linear between order statistics as in numpy."""
    share = float(options.get("q", 0.5))
    order = np.argsort(units.values, kind="stable")
    ordered = units.values[order]

    def evaluate(weights: Floats) -> Floats:
        reached = np.cumsum(weights[:, order], axis=1)
        place = share * (reached[:, -1] - 1)
        below, part = np.floor(place), place - np.floor(place)
        low = _value_at(reached, below, ordered)
        high = _value_at(reached, np.minimum(below + 1, reached[:, -1] - 1), ordered)
        return np.where(reached[:, -1] > 0, low + part * (high - low), np.nan)

    return evaluate


def difference(units: Units, options: Mapping[str, Any]) -> Evaluate:
    """The mean of the units in ``first`` minus that of the units in ``second``."""
    sides = [units.mask(options[name]).astype(np.float64) for name in ("first", "second")]
    own = _weights(units, options)

    def evaluate(weights: Floats) -> Floats:
        first, second = (_ratio(weights @ (own * side * units.values), weights @ (own * side)) for side in sides)
        return first - second

    return evaluate


def group_means(units: Units, options: Mapping[str, Any]) -> Callable[[Floats], Floats]:
    """Means by the column ``group``: a function of weights (B, n) to (B, groups); ``groups`` gives their order."""
    names = [str(name) for name in units.column(options["group"])]
    listed = options.get("groups")
    order = [str(name) for name in listed] if listed is not None else list(dict.fromkeys(names))
    member = np.array([[name == group for name in names] for group in order], dtype=np.float64).reshape(
        len(order), len(names)
    )
    return lambda weights: _ratio(weights @ (member * units.values).T, weights @ member.T)


def max_min(units: Units, options: Mapping[str, object]) -> Evaluate:
    """The largest minus the smallest of the means by ``group``."""
    means = group_means(units, options)
    return lambda weights: np.ptp(means(weights), axis=1)


def mean_of_groups(units: Units, options: Mapping[str, Any]) -> Evaluate:
    """The mean of the means by ``group``; with ``groups`` and ``absent`` a listed group without units counts so."""
    means = group_means(units, options)
    absent = options.get("absent")
    if absent is None:
        return lambda weights: _nan_mean(means(weights))
    return lambda weights: np.nan_to_num(means(weights), nan=float(absent)).mean(axis=1)


def correlation(units: Units, options: Mapping[str, Any]) -> Evaluate:
    """Pearson's correlation of the values with the column ``other``."""
    other = units.numbers(options["other"])
    known = np.isfinite(other).astype(np.float64)
    other = np.nan_to_num(other)

    def evaluate(weights: Floats) -> Floats:
        w = weights * known
        n = w.sum(axis=1)
        x, y = _ratio(w @ units.values, n), _ratio(w @ other, n)
        dx, dy = units.values - x[:, None], other - y[:, None]
        return _ratio((w * dx * dy).sum(axis=1), np.sqrt((w * dx**2).sum(axis=1) * (w * dy**2).sum(axis=1)))

    return evaluate


def auc(units: Units, options: Mapping[str, object]) -> Evaluate:
    """Area under the ROC curve of ``members`` against ``controls``, ties half."""
    scores, member, control = _sides(units, options)
    levels, place = np.unique(scores, return_inverse=True)

    def evaluate(weights: Floats) -> Floats:
        m, c = (_by_level(weights * side, place, len(levels)) for side in (member, control))
        below = np.cumsum(c, axis=1) - c / 2
        return _ratio((m * below).sum(axis=1), m.sum(axis=1) * c.sum(axis=1))

    return evaluate


def average_precision(units: Units, options: Mapping[str, object]) -> Evaluate:
    """Average precision with ``members`` as positives; tied scores enter as one threshold."""
    scores, member, control = _sides(units, options)
    levels, place = np.unique(scores, return_inverse=True)

    def evaluate(weights: Floats) -> Floats:
        m, c = (_by_level(weights * side, place, len(levels))[:, ::-1] for side in (member, control))
        true, false = np.cumsum(m, axis=1), np.cumsum(c, axis=1)
        precision = np.divide(true, true + false, out=np.zeros_like(true), where=true + false > 0)
        found = _ratio((m * precision).sum(axis=1), m.sum(axis=1))
        return np.where(c.sum(axis=1) > 0, found, np.nan)

    return evaluate


def tpr_at_fpr(units: Units, options: Mapping[str, object]) -> Evaluate:
    """Share of ``members`` strictly above the threshold that at most ``fpr`` (read in decimal) of ``controls`` pass."""
    scores, member, control = _sides(units, options)
    share = Fraction(str(options["fpr"]))
    order = np.argsort(-scores, kind="stable")

    def evaluate(weights: Floats) -> Floats:
        m, c = ((weights * side)[:, order] for side in (member, control))
        totals = c.sum(axis=1)
        allowed = np.array([math.floor(share * int(n)) for n in totals], dtype=np.float64)
        passed = np.cumsum(c, axis=1)
        # The threshold is the (allowed + 1)-th largest control; members strictly above it are detected.
        over = passed > allowed[:, None]
        at = np.where(over.any(axis=1), over.argmax(axis=1), len(order) - 1)
        threshold = np.where(over.any(axis=1), scores[order][at], -np.inf)
        detected = (m * (scores[order][None, :] > threshold[:, None])).sum(axis=1)
        return np.where(totals > 0, _ratio(detected, m.sum(axis=1)), np.nan)

    return evaluate


def exposure(units: Units, options: Mapping[str, Any]) -> Evaluate:
    """Mean bits of the ``members`` that match ``tier`` (all without it), each ranked among ``controls``: log2(n + 1) -
    log2(rank), rank = 1 + controls that score at least as high.
    """
    scores, member, control = _sides(units, options)
    counted = np.flatnonzero(member * units.mask(options.get("tier", {})))
    twins = np.flatnonzero(control)
    reached = (scores[twins][:, None] >= scores[counted][None, :]).astype(np.float64)

    def evaluate(weights: Floats) -> Floats:
        c, m = weights[:, twins], weights[:, counted]
        bits = np.log2(c.sum(axis=1) + 1)[:, None] - np.log2(1 + c @ reached)
        return np.where(c.sum(axis=1) > 0, _ratio((m * bits).sum(axis=1), m.sum(axis=1)), np.nan)

    return evaluate


STATISTICS: Mapping[str, Prepare] = {
    "mean": mean,
    "sum": total,
    "ratio": ratio,
    "perplexity": perplexity,
    "quantile": quantile,
    "median": quantile,
    "difference": difference,
    "max_min": max_min,
    "mean_of_groups": mean_of_groups,
    "correlation": correlation,
    "auc": auc,
    "average_precision": average_precision,
    "tpr_at_fpr": tpr_at_fpr,
    "exposure": exposure,
}


def _weights(units: Units, options: Mapping[str, Any]) -> Floats:
    name = options.get("weight")
    return np.ones(len(units)) if name is None else np.nan_to_num(units.numbers(name))


def _sides(units: Units, options: Mapping[str, Any]) -> tuple[Floats, Mask, Mask]:
    sign = 1.0 if options.get("higher", True) else -1.0
    return sign * units.values, units.mask(options["members"]), units.mask(options["controls"])


def _by_level(weights: Floats, place: Any, levels: int) -> Floats:
    found = np.zeros((len(weights), levels))
    np.add.at(found.T, place, weights.T)
    return found


def _value_at(reached: Floats, place: Floats, ordered: Floats) -> Floats:
    """Of each row the value whose copies include the 0-based ``place``."""
    index = np.minimum((reached <= place[:, None]).sum(axis=1), len(ordered) - 1)
    return np.asarray(ordered[index], dtype=np.float64)


def _ratio(above: Floats, below: Floats) -> Floats:
    out: Floats = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=out, where=np.asarray(below) != 0)
    return out


def _nan_mean(values: Floats) -> Floats:
    known = np.isfinite(values)
    return _ratio(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1).astype(np.float64))
