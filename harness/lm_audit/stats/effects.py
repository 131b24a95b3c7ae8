"""Effect sizes of paired values, every one as b minus a."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.stats.checked import checked
from lm_audit.stats.inputs import Array, large_exponent, paired_arrays, rounding
from lm_audit.stats.shares.proportions import sign_test_p


@dataclass(frozen=True, slots=True)
class Direction:
    """Counts of positive, negative and zero differences; the larger share among those not zero; exact sign test."""

    pos: int
    neg: int
    zero: int
    consistency_nonzero: float | None
    sign_test_p: float

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The paired t-test and Wilcoxon's signed-rank test, both two-sided."""

    t: float
    df: int
    p_two_sided: float
    wilcoxon_p: float

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@dataclass(frozen=True, slots=True)
class PairedEffect:
    """How far b lies above a, in several units.

    A standardised effect over a spread of 0 is 0 without a difference, else None (``undefined`` says so of d_s).
    ``mean_diff`` in the unit of the data. ``d_z``: over the standard deviation of the differences (ddof 1). ``d_av``:
    over the mean of both standard deviations. ``d_s``: over the pooled standard deviation, ``g_s`` the same times
    Hedges' correction ``hedges_J`` (exact gamma form, 2 n - 2 degrees of freedom). ``seed_formula_population_sd``:
    over the pooled population standard deviation (ddof 0), larger than d_s by sqrt(n / (n - 1)), for comparison only;
    0 over no spread. Sources: Hedges 1981; Lakens 2013.
    """

    n: int
    mean_diff: float | None = None
    pooled_sd_ddof1: float | None = None
    d_s: float | None = None
    hedges_J: float | None = None
    g_s: float | None = None
    d_z: float | None = None
    d_av: float | None = None
    seed_formula_population_sd: float | None = None
    undefined: bool = True
    paired_test: PairedTest | None = None
    direction: Direction | None = None
    note: str | None = None


@checked
def paired_effect(a: ArrayLike, b: ArrayLike) -> PairedEffect:
    """The effect sizes of paired values, b minus a.

    ``a`` and ``b`` have shape (n,). NaN, infinity or no values: every field None, with the reason in ``note``; one
    pair: no standardised effect. Raises ``UsageError`` where the lengths differ.
    """
    pair = paired_arrays(a, b)
    if isinstance(pair, str):
        return PairedEffect(int(np.size(a)), note=pair)
    exponent = large_exponent(*pair)
    first, second = (np.ldexp(side, -exponent) for side in pair)
    differences = second - first
    mean = float(differences.mean())
    known: dict[str, Any] = {
        "n": len(differences),
        "mean_diff": _back(mean, exponent),
        "direction": direction_of(differences),
    }
    if len(differences) < 2:
        return PairedEffect(**known, note="one pair has no spread: no standardised effect")
    return PairedEffect(**known, **_standardised(first, second, differences, mean, exponent))


def direction_of(differences: Array) -> Direction:
    """Counts of signs with their exact test."""
    positive, negative = int((differences > 0).sum()), int((differences < 0).sum())
    moved = positive + negative
    return Direction(
        pos=positive,
        neg=negative,
        zero=len(differences) - moved,
        consistency_nonzero=max(positive, negative) / moved if moved else None,
        sign_test_p=sign_test_p(positive, negative),
    )


def hedges_correction(df: int) -> float:
    """Hedges' small-sample factor J in its exact gamma form, for df >= 2."""
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)


def _standardised(a: Array, b: Array, differences: Array, mean: float, exponent: int) -> dict[str, Any]:
    noise, correction = rounding(a, b), hedges_correction(2 * len(a) - 2)
    sd_a, sd_b, sd_differences = (_spread(values, 1, noise) for values in (a, b, differences))
    pooled = math.sqrt((sd_a**2 + sd_b**2) / 2)
    population = math.sqrt((_spread(a, 0, noise) ** 2 + _spread(b, 0, noise) ** 2) / 2)
    d_s = _over(mean, pooled, noise)
    return {
        "pooled_sd_ddof1": _back(pooled, exponent),
        "d_s": d_s,
        "hedges_J": correction,
        "g_s": None if d_s is None else d_s * correction,
        "d_z": _over(mean, sd_differences, noise),
        "d_av": _over(mean, (sd_a + sd_b) / 2, noise),
        "seed_formula_population_sd": _over(mean, population, noise) or 0.0,
        "undefined": d_s is None,
        "paired_test": _paired_test(differences, mean, sd_differences) if sd_differences else None,
        "note": "a spread is 0: effects over it are 0 or None" if 0 in (pooled, sd_differences) else None,
    }


def _spread(values: Array, ddof: int, noise: float) -> float:
    # Equal values whose mean is rounded would else give a spread of 1e-17, and an effect of 1e16.
    spread = float(values.std(ddof=ddof))
    return spread if spread > noise else 0.0


def _over(mean: float, spread: float, noise: float) -> float | None:
    if spread > 0:
        return mean / spread
    return 0.0 if abs(mean) <= noise else None


def _paired_test(differences: Array, mean: float, spread: float) -> PairedTest:
    from scipy.special import stdtr
    from scipy.stats import wilcoxon

    df = len(differences) - 1
    t = mean / (spread / math.sqrt(len(differences)))
    # scipy's ttest_rel gives the same and warns of cancellation where the spread is near rounding; so may wilcoxon.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranks = float(wilcoxon(differences).pvalue)
    return PairedTest(t, df, float(2 * stdtr(df, -abs(t))), ranks)


def _back(value: float, exponent: int) -> float | None:
    scaled = float(np.ldexp(value, exponent)) if exponent < 1000 or abs(value) < 1 else math.inf
    return scaled if math.isfinite(scaled) else None
