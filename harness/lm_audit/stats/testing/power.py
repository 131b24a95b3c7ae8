"""How many items a test needs for an effect, and what effect it can detect with the items it has."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from lm_audit.errors import UsageError
from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import check_share, number, whole

DEFAULT_POWER = 0.8
MOST = 10**9
"""Sample sizes beyond this are not searched for."""


@checked
def power_paired_t(
    effect: float | None = None, *, n: int | None = None, level: float = 0.05, power: float | None = None
) -> Estimate:
    """Sample size, detectable effect or power of the two-sided paired t-test.

    With ``effect`` (d_z) the number of pairs; with ``n`` the detectable d_z; with both the power. Sizes are whole, at
    least 2; the note has the exact root. Power defaults to 0.8. Solved by statsmodels ``TTestPower``. Raises
    ``UsageError`` without effect and n, or with all of effect, n and power.
    """
    return _solve_t("paired t-test", "pairs", "TTestPower", effect, n, level, power)


@checked
def power_two_sample_t(
    effect: float | None = None, *, n: int | None = None, level: float = 0.05, power: float | None = None
) -> Estimate:
    """As :func:`power_paired_t` for the two-sample t-test: effect is d_s, n the size of each of two equal groups."""
    return _solve_t("two-sample t-test", "per group", "TTestIndPower", effect, n, level, power)


@checked
def power_auc(
    auc: float | None = None, *, n: int | None = None, level: float = 0.05, power: float | None = None
) -> Estimate:
    """Sample size, detectable AUC or power of the two-sided test of AUC = 1/2 with two groups of n each.

    With ``auc`` the size of a group; with ``n`` the detectable AUC above 1/2; with both the power.
    Hanley and McNeil's (1982) finite-n variance, that of AUC 1/2 under the null. Power defaults to 0.8.
    """
    wanted = _wanted(auc, n, power)
    area = None if auc is None else number("auc", auc, low=0, high=1)
    size = None if n is None else whole("n", n, low=2, high=MOST)
    if isinstance(area, str) or isinstance(size, str):
        return _none(area if isinstance(area, str) else str(size), "Hanley-McNeil")
    if area is not None and size is not None:
        return _found(_auc_power(area, size, level), "Hanley-McNeil", "power", None)
    if size is not None:
        return _detectable_auc(size, level, wanted)
    if area == 0.5 or area is None:
        return _none("auc is 0.5, there is nothing to detect", "Hanley-McNeil")
    return _auc_size(area, level, wanted)


def _auc_size(area: float, level: float, wanted: float) -> Estimate:
    low, high = 1, 2
    while high < MOST and _auc_power(area, high, level) < wanted:
        low, high = high, 2 * high
    if high >= MOST:
        return _none(f"auc is {area}, more than {MOST} per group would be needed", "Hanley-McNeil")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _auc_power(area, middle, level) < wanted else (low, middle)
    return _found(float(high), "Hanley-McNeil", "per group", None)


def _detectable_auc(n: int, level: float, wanted: float) -> Estimate:
    if _auc_power(1.0, n, level) < wanted:
        return _none(f"{n} per group cannot show even an AUC of 1", "Hanley-McNeil")
    from scipy.optimize import brentq

    root = brentq(lambda area: _auc_power(area, n, level) - wanted, 0.5, 1.0, xtol=1e-12)
    return _found(float(root), "Hanley-McNeil", "AUC", None)


def _auc_power(area: float, n: int, level: float) -> float:
    """Normal power, written as P(reject); jumps to 0 or 1 where the variance at ``area`` is 0."""
    from scipy.special import ndtr, ndtri

    margin = abs(area - 0.5) - float(-ndtri(level / 2)) * math.sqrt(_auc_variance(0.5, n))
    spread = math.sqrt(_auc_variance(max(area, 1 - area), n))
    return float(ndtr(margin / spread)) if spread > 0 else float(margin >= 0)


def _auc_variance(area: float, n: int) -> float:
    first, second = area / (2 - area), 2 * area * area / (1 + area)
    excess = (first - area * area) + (second - area * area)
    return max(0.0, (area * (1 - area) + (n - 1) * excess) / n**2)


def _solve_t(
    method: str, unit: str, solver: str, effect: float | None, n: int | None, level: float, power: float | None
) -> Estimate:
    wanted = _wanted(effect, n, power)
    distance = None if effect is None else number("effect", effect)
    size = None if n is None else whole("n", n, low=2, high=MOST)
    if isinstance(distance, str) or isinstance(size, str):
        return _none(distance if isinstance(distance, str) else str(size), method)
    import statsmodels.stats.power as library

    test = getattr(library, solver)()
    with np.errstate(all="ignore"):
        if distance is not None and size is not None:
            return _found(_t_power(test, abs(distance), size, level), method, "power", None)
        if size is not None:
            return _found(_root(lambda d: _t_power(test, d, size, level) - wanted, 0.0, 1.0), method, "d", None)
        return _size_t(test, abs(distance or 0.0), level, wanted, method, unit)


def _size_t(test: object, distance: float, level: float, wanted: float, method: str, unit: str) -> Estimate:
    if distance < 1e-4:
        return _none(f"effect is {distance:g}: too small, more than {MOST} {unit} would be needed", method)
    if _t_power(test, distance, 2, level) >= wanted:
        return _found(2.0, method, unit, "two are enough")
    exact = _exact_size(test, distance, level, wanted)
    return _found(float(math.ceil(exact - 1e-9)), method, unit, f"exact root {exact!r}")


def _exact_size(test: Any, distance: float, level: float, wanted: float) -> float:
    # The library's search can stop short without saying so; its answer counts only if it has the power asked for.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = float(np.squeeze(test.solve_power(distance, None, level, wanted)))
    if math.isfinite(exact) and abs(_t_power(test, distance, exact, level) - wanted) < 1e-6:
        return exact
    return _root(lambda size: _t_power(test, distance, size, level) - wanted, 2.0, 4.0)


def _t_power(test: Any, distance: float, size: float, level: float) -> float:
    """Power by statsmodels, tail by tail: of its noncentral t, the far tail is asked for from the other side.

    As the lower tail it is NaN in a quarter of cases; so it is NaN only where it is 0. The near tail is NaN more than
    thirty standard deviations beyond the critical value, where the power is 1.
    """
    if distance >= 1e3:
        return 1.0
    near, far = (float(test.power(d, size, level / 2, alternative="larger")) for d in (distance, -distance))
    if not math.isfinite(near):
        return 1.0
    return near + far if math.isfinite(far) else near


def _root(function: Any, low: float, high: float) -> float:
    from scipy.optimize import brentq

    while function(high) < 0:
        low, high = high, 2 * high
    return float(brentq(function, low, high, xtol=1e-10, rtol=1e-13))


def _wanted(effect: float | None, n: int | None, power: float | None) -> float:
    if effect is None and n is None:
        raise UsageError(
            "give the effect (to get the sample size), n (to get the detectable effect), or both (the power)"
        )
    if effect is not None and n is not None and power is not None:
        raise UsageError("effect, n and power are all given: nothing is left to solve for")
    return check_share("power", DEFAULT_POWER if power is None else power)


def _found(value: float, method: str, unit: str, note: str | None) -> Estimate:
    return Estimate(value, confidence=None, method=f"power, {method}", unit=unit, note=note)


def _none(reason: str, method: str) -> Estimate:
    return Estimate.not_estimable(reason, method=f"power, {method}", confidence=None)
