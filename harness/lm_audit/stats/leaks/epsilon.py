"""Empirical lower bounds on the epsilon of differential privacy. A bound of 0 means: nothing shown, not: private."""

from __future__ import annotations

import math

import numpy as np

from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import first_reason, no_p_value, number, p_value, whole
from lm_audit.stats.shares.proportions import clopper_pearson

PRECISION = 1e-10
"""Width in epsilon at which bisection stops."""


@checked
def one_run_p_value(m: int, r: int, v: int, eps: float, delta: float) -> Estimate:
    """p-value of "the training is (eps, delta)-private" after v of r guesses about m canaries were right.

    Holds where each canary was included by an independent fair coin, and r was fixed beforehand. q = 1 / (1 +
    exp(-eps)), beta = P[Bin(r, q) >= v], alpha = max over 1 <= i <= v of P[v > Bin(r, q) >= v - i] / i; p = min(1,
    beta + 2 m delta alpha). Source: Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1) training run",
    algorithm in appendix D.
    """
    method = "one-run audit"
    counts = _guesses(m, r, v)
    privacy = (number("eps", eps, low=0), number("delta", delta, low=0, high=1))
    if isinstance(counts, str) or first_reason(privacy):
        return no_p_value(counts if isinstance(counts, str) else first_reason(privacy) or "", method=method)
    return p_value(_one_run_p(*counts, float(eps), float(delta)), n=counts[0], method=method)


@checked
def one_run_epsilon(m: int, r: int, v: int, delta: float, confidence: float = 0.95) -> Estimate:
    """The largest epsilon that :func:`one_run_p_value` rejects at 1 - ``confidence``: a lower bound at that confidence.

    ``value`` and ``low`` are the bound; the note gives the largest that r right guesses could have shown.
    """
    level = 1 - confidence
    method, counts, loss = "one-run audit", _guesses(m, r, v), number("delta", delta, low=0, high=1)
    if isinstance(counts, str) or isinstance(loss, str):
        return _none(first_reason((counts, loss)) or "", method, confidence)
    bound, ceiling = (_largest_rejected(*counts[:2], right, loss, level) for right in (counts[2], counts[1]))
    note = f"{counts[2]} of {counts[1]} guesses right; all right would show {ceiling:.3f}"
    return _bound(bound, counts[0], confidence, method, note)


@checked
def epsilon_from_rates(
    tp: int, n_member: int, fp: int, n_control: int, delta: float, confidence: float = 0.95
) -> Estimate:
    """A lower bound on epsilon from an attack's true and false positive rates, 0 at least.

    The larger of ln((TPR - delta) / FPR) and ln((TNR - delta) / FNR). Each rate is taken at its one-sided
    Clopper-Pearson limit at level (1 - confidence) / 2. ``tp`` of ``n_member`` members and ``fp`` of ``n_control``
    controls were detected. The threshold must not have been chosen on the same scores. Source: Jagielski, Ullman and
    Oprea 2020.
    """
    method, loss = "attack rates, Clopper-Pearson", number("delta", delta, low=0, high=1)
    hits, false = clopper_pearson(tp, n_member, confidence), clopper_pearson(fp, n_control, confidence)
    if isinstance(loss, str) or hits.low is None or false.high is None:
        return _none(hits.note or false.note or str(loss), method, confidence)
    ratios = ((hits.low, false.high), (1 - false.high, 1 - hits.low))
    bounds = [math.log((rate - loss) / error) for rate, error in ratios if rate > loss and error > 0]
    note = f"TPR >= {hits.low:.4f}, FPR <= {false.high:.4f}"
    return _bound(max([0.0, *bounds]), int(n_member) + int(n_control), confidence, method, note)


def _guesses(m: int, r: int, v: int) -> tuple[int, int, int] | str:
    canaries = whole("m", m, low=1, high=10**9)
    guesses = whole("r", r, low=0, high=canaries if isinstance(canaries, int) else None)
    right = whole("v", v, low=0, high=guesses if isinstance(guesses, int) else None)
    if isinstance(canaries, str) or isinstance(guesses, str) or isinstance(right, str):
        return first_reason((canaries, guesses, right)) or ""
    return canaries, guesses, right


def _one_run_p(m: int, r: int, v: int, eps: float, delta: float) -> float:
    from scipy.special import expit
    from scipy.stats import binom

    if v == 0:
        return 1.0
    q = float(expit(eps))
    beta = float(binom.sf(v - 1, r, q))
    if delta == 0:
        return beta
    # Averages of pmf(v - i .. v - 1) over i fall once the sum holds the whole mass, so 40 standard deviations suffice.
    reach = int(np.clip(v - math.floor(r * q - 40 * math.sqrt(r * q * (1 - q))), 1, v))
    mass = np.cumsum(binom.pmf(np.arange(v - 1, v - 1 - reach, -1), r, q))
    alpha = float((mass / np.arange(1, reach + 1)).max())
    return min(1.0, beta + 2 * m * delta * alpha)


def _largest_rejected(m: int, r: int, v: int, delta: float, p: float) -> float:
    if _one_run_p(m, r, v, 0.0, delta) >= p:
        return 0.0
    low, high = 0.0, 1.0
    while _one_run_p(m, r, v, high, delta) < p:
        low, high = high, 2 * high
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if _one_run_p(m, r, v, middle, delta) < p else (low, middle)
    return low


def _bound(value: float, n: int, confidence: float, method: str, note: str) -> Estimate:
    return Estimate(
        value,
        low=value,
        n=n,
        confidence=confidence,
        method=method,
        unit="epsilon",
        better="lower",
        note=note,
        fewest=1,
    )


def _none(reason: str, method: str, confidence: float) -> Estimate:
    return Estimate.not_estimable(reason, method=method, confidence=confidence, unit="epsilon")
