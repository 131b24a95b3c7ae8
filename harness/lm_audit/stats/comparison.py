"""Comparison of two runs: the difference b minus a with its interval, and a test of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.stats.bootstrap.samples import bootstrap_paired
from lm_audit.stats.checked import checked
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.means.mean_difference import studentised_difference
from lm_audit.stats.shares.proportions import mcnemar_exact
from lm_audit.stats.testing.permutation import sign_flip_test


@dataclass(frozen=True, slots=True)
class Comparison:
    """``difference``: mean of b minus mean of a with its interval. ``test``: the p-value of "no difference"."""

    difference: Estimate
    test: Estimate


@checked
def compare_paired(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95, seed: int = 0) -> Comparison:
    """Two runs on the same items in the same order: paired bootstrap, and a test of the pairs.

    The test is McNemar's for answers 0 or 1, else the sign flip. Raises ``UsageError`` where the lengths differ.
    """
    difference = bootstrap_paired(a, b, confidence=confidence, seed=seed)
    if np.isin(a, (0.0, 1.0)).all() and np.isin(b, (0.0, 1.0)).all():
        return Comparison(difference, mcnemar_exact(a, b))
    with np.errstate(all="ignore"):
        return Comparison(difference, sign_flip_test(np.asarray(b, np.float64) - np.asarray(a, np.float64), seed=seed))


@checked
def compare_independent(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95, seed: int = 0) -> Comparison:
    """Two runs on different items, whose values may differ in spread: interval and p-value from one pivot."""
    found = studentised_difference(b, a, confidence=confidence, seed=seed)
    return Comparison(found.difference, found.p)
