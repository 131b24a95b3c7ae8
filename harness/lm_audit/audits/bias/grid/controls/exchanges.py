"""What the grid's tests say of names that mean nothing, exchanged many times, held against what a right test says.

Where names mean nothing, cells with the names of some templates exchanged are as good as those measured. Each test that
the grid reports is asked about many such tables, and what it says is held against a two-way t written here: a test that
counts templates or pairs more than once says more of every table, whatever the cells are. No model is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from lm_audit.audits.bias.grid.controls.plain_scoring import Floats
from lm_audit.stats import crossed_contrast, crossed_equivalence, max_min_permutation, two_way_mean
from lm_audit.stats.means.disparity import max_min_p

EXCHANGES = 32

LEAST_P = 1 / 32
"""Of six clusters a sign flip can say no more; smaller p-values count as this one."""

STEPS = 1.5
"""Standard errors from the mean to the margin of equivalence that is tried."""

LIMITS = {
    "contrast": (0.85, 1.12),
    "interval of the contrast": (0.75, 1.25),
    "interval of the group score": (0.75, 1.25),
    "equivalence": (0.9, 1.13),
    "sign flips": (0.55, 1.18),
    "disparity": (0.75, 1.13),
    "permutation": (0.55, 1.19),
}
"""What each test may say, as a share of what a right test says, over all tables together.

Right ones stay well between these; ones that count templates and pairs twice say 1.25 to 1.7 times as much
(``benchmarks/controls``). Permutations and sign flips know few values, and each clustering leaves out the other's
variance.
"""


@dataclass(frozen=True)
class TwoWay:
    """Mean, standard error and degrees of freedom of a table (templates, pairs), both sides being drawn at random.

    Cornfield and Tukey 1956, no less than templates or pairs alone give; Satterthwaite 1946.
    """

    mean: float
    error: float
    freedom: float

    @classmethod
    def of(cls, table: Floats) -> TwoWay:
        rows, columns = table.shape
        mean, by_row, by_column = table.mean(), table.mean(axis=1), table.mean(axis=0)
        rest = table - by_row[:, None] - by_column + mean
        parts = np.array([((by_row - mean) ** 2).sum() / rows, ((by_column - mean) ** 2).sum() / columns, 0.0])
        parts[2] = (rest**2).sum() / ((rows - 1) * (columns - 1)) / (rows * columns)
        freedom = np.array([rows - 1, columns - 1, (rows - 1) * (columns - 1)])
        parts[:2] /= freedom[:2]
        least = int(parts[1] > parts[0])
        variance, df = parts[least], freedom[least]
        if parts[0] + parts[1] - parts[2] > variance:
            variance = parts[0] + parts[1] - parts[2]
            df = variance**2 / (parts**2 / freedom).sum()
        return cls(float(mean), float(np.sqrt(variance)), float(df))

    @property
    def p(self) -> float:
        """Two-sided, of "the mean is 0"."""
        return float(2 * stdtr(self.freedom, -abs(self.mean) / self.error))

    @property
    def half(self) -> float:
        """Half the width of the interval at 95%."""
        return float(stdtrit(self.freedom, 0.975)) * self.error


ALONE = ("contrast", "interval of the contrast", "interval of the group score")
"""What is asked about templates and pairs alone, too: of these, right ones say what the right one here does."""

Said = tuple[float, float]
"""What the grid's test says of one table, and what a right one says: both as evidence, which is not negative."""


def evidence_of(p: float | None) -> float:
    """|z| of a two-sided p-value; 0 where there is none."""
    return 0.0 if p is None else float(-ndtri(min(1.0, max(p, LEAST_P)) / 2))


def said(table: Floats, seed: int) -> Mapping[str, Said]:
    """Of a table of differences (templates, pairs) in nats: each test of the grid beside a right one."""
    right = TwoWay.of(table)
    two = np.stack([table / 2, -table / 2])
    contrast = crossed_contrast(table, method="t", seed=seed)
    score = two_way_mean(two[0])
    margin = abs(right.mean) + STEPS * right.error
    z = evidence_of(right.p)
    found = {
        "contrast": contrast.two_way.value,
        "sign flips": contrast.sign_flip.larger.value,
        "disparity": max_min_p(two, seed=seed),
        "permutation": max_min_permutation(two, n_resamples=199, seed=seed).value,
    }
    one_sided = crossed_equivalence(table, margin, method="t", seed=seed).value
    return {name: (evidence_of(p), z) for name, p in found.items()} | {
        "equivalence": (evidence_of(one_sided), evidence_of(float(stdtr(right.freedom, -STEPS)))),
        "interval of the contrast": _narrowness(contrast.difference.low, contrast.difference.high, right.half),
        "interval of the group score": _narrowness(score.low, score.high, right.half / 2),
    }


def _narrowness(low: float | None, high: float | None, half: float) -> Said:
    """1 over the width of an interval, in that of a right one; 0 where there is none."""
    return (2 * half / (high - low) if low is not None and high is not None and high > low else 0.0), 1.0


def shares(differences: Floats, seed: int) -> dict[tuple[str, str], float]:
    """What each test says of many exchanges, as a share of what a right one says; none where cells are all alike.

    ``differences`` (templates, pairs) are those of two sides, in nats. Names are exchanged in whole templates, or in
    whole word pairs where these differ more: exchanged the other way, what templates or pairs share would cancel out.
    The contrast and the intervals are asked the same of templates alone and of pairs alone (:func:`_alone`): a test
    that counts one of the two twice says little more of cells in which the other differs more. Keys are the test and
    what it was asked about, empty for whole cells.
    """
    by_template = differences.mean(axis=1).var(ddof=1) / len(differences)
    by_pair = differences.mean(axis=0).var(ddof=1) / differences.shape[1]
    templates, pairs = (len(differences), 1), (1, differences.shape[1])
    asked = (
        ("", differences, templates if by_template >= by_pair else pairs),
        (" of templates alone", _alone(differences, 1), templates),
        (" of word pairs alone", _alone(differences, 0), pairs),
    )
    found: dict[tuple[str, str], float] = {}
    for what, cells, shape in asked:
        rng, told = np.random.default_rng(seed), list[Mapping[str, Said]]()
        for _ in range(EXCHANGES):
            table = cells * rng.choice([-1.0, 1.0], size=shape)
            if TwoWay.of(table).error > 1e-9 * np.abs(differences).max():
                told.append(said(table, seed))
        names = ALONE if what else LIMITS
        found |= {(name, what): _share(np.array([one[name] for one in told])) for name in names if told}
    return found


def _alone(differences: Floats, axis: int) -> Floats:
    """What the cells along ``axis`` share (1: each template, 0: each word pair), and a tenth as much of their own."""
    shared = differences.mean(axis=axis, keepdims=True)
    rest = differences - shared - differences.mean(axis=1 - axis, keepdims=True) + differences.mean()
    size = float(rest.std())
    found: Floats = shared + (rest * (float(shared.std()) / 10 / size) if size > 0 else rest)
    return found


def _share(said: Floats) -> float:
    """``said`` (tables, 2): what a test and a right one say; 0 of a test that says the same of all tables."""
    first, right = said.T
    if np.ptp(right) > 0 and not np.ptp(first) > 0:
        return 0.0
    return float(first.sum() / right.sum())


def unlike_right_ones(differences: Floats, seed: int) -> list[str]:
    """The tests that say more or less than a right one does, in sentences."""
    return [
        f"{name}{what}: says {share:.2f} of what a right test says of exchanged names ({low} to {high} would do)"
        for (name, what), share in shares(differences, seed).items()
        for low, high in [LIMITS[name]]
        if not low <= share <= high
    ]
