"""Memorisation: what the memorisation test measured, and the means that are told of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_audit.audits.leakage.averages import Kind, mean_of
from lm_audit.audits.leakage.half_option.conditions import LIMITS, UNITS, Effect, QuestionScores
from lm_audit.audits.leakage.half_option.variants import ORIGINAL, OTHER_ITEM
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.style import StyleShare, too_many_sorted
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Memorisation:
    """What the test measured: the probe table of all conditions, question scores, effects by measure, styles."""

    benchmark: Benchmark
    table: pd.DataFrame
    scores: QuestionScores
    excluded: dict[str, str]
    effects: dict[str, Effect]
    unsorted_effects: dict[str, Effect]
    styles: list[StyleShare]
    parameters: dict[str, Any]
    seed: int

    @property
    def by_style(self) -> bool:
        """Whether the published orders follow a style more often than by chance."""
        return bool(too_many_sorted(self.styles))

    @property
    def telling_effects(self) -> dict[str, Effect]:
        """The effects by which memory is judged: of unsorted questions alone where a style may explain the others."""
        return self.unsorted_effects if self.by_style else self.effects

    def mean(self, measure: str, condition: str) -> Estimate:
        """The mean of a condition over questions, with its interval and the chance that language alone gives."""
        chance = self._mean(measure, OTHER_ITEM).value
        return self._mean(measure, condition, chance)

    def _mean(self, measure: str, condition: str, chance: float | None = None) -> Estimate:
        values, unit = self.scores.of(measure, condition), UNITS[measure]
        # What the shuffled orders and the baselines give is no merit and no fault of the model.
        better = "lower" if condition == ORIGINAL else "neither"
        kind: Kind = "counts" if measure == "hits" else "values"
        return mean_of(
            values,
            self.scores.files,
            unit=unit,
            seed=self.seed,
            chance=chance,
            better=better,
            kind=kind,
            limits=LIMITS[measure],
            unseen=(-math.inf, 0.0) if measure == "logprob" else None,
        )
