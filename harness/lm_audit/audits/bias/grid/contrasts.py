"""Contrasts between the groups of an axis, and everything that must stand beside each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from lm_audit.audits.bias.grid.lexicon.parts import Axis
from lm_audit.audits.bias.grid.measurement import Floats, GridMeasurement
from lm_audit.stats import (
    CrossedContrast,
    Estimate,
    crossed_contrast,
    crossed_equivalence,
    holm,
    paired_effect,
)


@dataclass(frozen=True)
class Contrast:
    """``group`` minus ``reference`` in nats, positive where the model favours ``group``.

    ``p_two_way`` and ``p_sign_flip`` (the larger of the two clusterings) are as computed, ``holm_*`` are adjusted over
    all contrasts of the run; ``p_equivalence`` is small where the effect is shown to be within the margin. ``d_z`` is
    the mean over pairs in standard deviations over pairs; ``weat`` the difference over the pooled stimuli's deviation.
    """

    axis: str
    group: str
    reference: str
    difference: Estimate
    p_two_way: float | None
    p_sign_flip: float | None
    holm_two_way: float | None
    holm_sign_flip: float | None
    p_equivalence: float | None
    d_z: float | None
    weat: float | None
    per_template: tuple[float, ...]
    per_pair: tuple[float, ...]

    @property
    def name(self) -> str:
        """``group - reference``, as tables show it."""
        return f"{self.group} - {self.reference}"


def all_contrasts(measured: GridMeasurement, *, margin: float, confidence: float, seed: int = 0) -> list[Contrast]:
    """Every pair of groups inside every axis; Holm runs over all of them, since all were looked at.

    The axis' reference is subtracted wherever it takes part, else the group that is listed first. Intervals and tests
    are those of the two-way t, which resamples nothing; ``seed`` is that of the sign flips.
    """
    pairs = [(axis, group, other) for axis in measured.grid.axes for group, other in _ordered(axis)]
    tables = [_table(measured, group, other) for _, group, other in pairs]
    tested = [crossed_contrast(table, confidence=confidence, method="t", seed=seed) for table in tables]
    two_way = holm([test.two_way.value for test in tested])
    flips = holm([test.sign_flip.larger.value for test in tested])
    return [
        _contrast(axis, group, other, measured, table, test, adjusted, margin, seed)
        for (axis, group, other), table, test, adjusted in zip(
            pairs, tables, tested, zip(two_way, flips, strict=True), strict=True
        )
    ]


def _ordered(axis: Axis) -> list[tuple[str, str]]:
    rest = [group for group in axis.groups if group != axis.reference]
    return [(group, axis.reference) for group in rest] + [(later, first) for first, later in combinations(rest, 2)]


def _table(measured: GridMeasurement, group: str, other: str) -> Floats:
    first, second = measured.of([group, other])
    return np.asarray(first - second, dtype=np.float64)


def _contrast(
    axis: Axis,
    group: str,
    other: str,
    measured: GridMeasurement,
    table: Floats,
    test: CrossedContrast,
    adjusted: tuple[float | None, float | None],
    margin: float,
    seed: int,
) -> Contrast:
    first, second = measured.of([group, other]).mean(axis=1)
    effect = paired_effect(second, first)
    pooled = np.concatenate([first, second])
    spread = float(pooled.std(ddof=1)) if len(pooled) > 2 else 0.0
    return Contrast(
        axis=axis.name,
        group=group,
        reference=other,
        difference=test.difference,
        p_two_way=test.two_way.value,
        p_sign_flip=test.sign_flip.larger.value,
        holm_two_way=adjusted[0],
        holm_sign_flip=adjusted[1],
        p_equivalence=crossed_equivalence(table, margin, method="t", seed=seed).value,
        d_z=effect.d_z,
        weat=float(table.mean()) / spread if spread > 0 else None,
        per_template=tuple(map(float, table.mean(axis=1))),
        per_pair=tuple(map(float, table.mean(axis=0))),
    )
