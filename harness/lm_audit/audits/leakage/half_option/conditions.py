"""Per-question scores of each condition, their means with intervals, and the differences between conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.averages import Floats, mean_of, of_these_files
from lm_audit.audits.leakage.half_option.single_files import SingleFiles, single_files
from lm_audit.audits.leakage.half_option.variants import ORIGINAL, SHUFFLED
from lm_audit.audits.leakage.items.item import Item
from lm_audit.audits.leakage.signs import paired_sign_flip, published_place_test
from lm_audit.stats import Estimate, power_paired_t

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.audits.leakage.items.benchmark import Benchmark

MEASURES = {"hits": "hit", "logprob": "logprob_per_byte"}
UNITS = {"hits": "share of options", "logprob": "nats a byte"}
LIMITS = {"hits": (0.0, 1.0), "logprob": None}


@dataclass(frozen=True)
class QuestionScores:
    """Question scores [items, conditions] by measure, NaN where an item lacks a condition (it cannot be shuffled)."""

    items: tuple[Item, ...]
    conditions: tuple[str, ...]
    values: dict[str, Floats]

    def of(self, measure: str, condition: str) -> Floats:
        """One condition's scores [items]; "shuffled" is the mean over an item's orders."""
        table = self.values[measure]
        if condition == SHUFFLED:
            orders = table[:, [c.startswith(SHUFFLED) for c in self.conditions]]
            counts = np.isfinite(orders).sum(axis=1)
            sums = np.where(np.isfinite(orders), orders, 0.0).sum(axis=1)
            means: Floats = np.divide(sums, counts, out=np.full(len(orders), np.nan), where=counts > 0)
            return means
        if condition not in self.conditions:
            return np.full(len(self.items), np.nan)
        column: Floats = table[:, self.conditions.index(condition)]
        return column

    def by_orders(self, measure: str, keep: Sequence[bool] | None = None) -> list[list[float]]:
        """For each item its scores in the published order and in the others."""
        columns = [c == ORIGINAL or c.startswith(SHUFFLED) for c in self.conditions]
        table = self.values[measure][:, columns]
        rows = [row[np.isfinite(row)].tolist() for row in table]
        return rows if keep is None else [row for row, kept in zip(rows, keep, strict=True) if kept]

    @property
    def files(self) -> list[str]:
        """The file of each item."""
        return [item.file for item in self.items]


def question_scores(table: pd.DataFrame, items: Sequence[Item]) -> QuestionScores:
    """Mean over a question's options of hits, and of the suffix's log-probability a byte, in every condition."""
    conditions = sorted(table["condition"].unique(), key=_place)
    filled = table.assign(
        logprob_per_byte=table["suffix_logprob"] / table["suffix_bytes"].where(table["suffix_bytes"] > 0)
    )
    values = {}
    for measure, column in MEASURES.items():
        means = filled.assign(value=filled[column].astype(float)).pivot_table(
            index="base", columns="condition", values="value", aggfunc="mean"
        )
        values[measure] = means.reindex(index=range(len(items)), columns=conditions).to_numpy(dtype=np.float64)
    return QuestionScores(tuple(items), tuple(conditions), values)


def _place(condition: str) -> tuple[int, str]:
    return (0 if condition == ORIGINAL else 1 if condition.startswith(SHUFFLED) else 2, condition)


@dataclass(frozen=True)
class Effect:
    """A paired difference over questions: its mean with interval and its one-sided p-values (None where not made).

    ``detectable``: the smallest true mean difference that this many questions, with this spread, would show with 80%
    power at 5% (two-sided t). ``these_files``: the mean with an interval for the benchmark's own files, where that of
    ``mean`` is for files in general. ``single_files``: what each file shows by itself, where two and more can.
    """

    mean: Estimate
    sign_flip: Estimate
    placed: Estimate | None
    detectable: Estimate
    these_files: Estimate | None = None
    single_files: SingleFiles | None = None

    @property
    def judged(self) -> Estimate:
        """What a verdict on the benchmark rests on: its own files where the mean speaks of files in general."""
        return self.mean if self.these_files is None else self.these_files


def order_effect(
    scores: QuestionScores,
    measure: str,
    benchmark: Benchmark | None = None,
    *,
    seed: int,
    keep: Sequence[bool] | None = None,
) -> Effect:
    """Published order minus the mean of the item's other orders; above 0 where the published order is remembered.

    ``benchmark``: the one that the items are of, for the interval of its own files.
    """
    kept = np.ones(len(scores.items), dtype=bool) if keep is None else np.asarray(keep)
    differences = (scores.of(measure, ORIGINAL) - scores.of(measure, SHUFFLED))[kept]
    placed = published_place_test(scores.by_orders(measure, kept.tolist()), seed=seed)
    files = [name for name, use in zip(scores.files, kept, strict=True) if use]
    effect = _effect(
        differences, files, _held_at_most(scores.of(measure, SHUFFLED)[kept], measure), measure, placed, seed
    )
    if benchmark is None:
        return effect
    own = of_these_files(differences, files, benchmark, **_fields(measure, seed))
    if measure != "logprob":
        return replace(effect, these_files=own)
    rows = scores.by_orders(measure, kept.tolist())

    def p_of(mask: Sequence[bool]) -> float | None:
        some = [row for row, here in zip(rows, mask, strict=True) if here]
        return published_place_test(some, n_resamples=max(9999, 100 * len(set(files))), seed=seed).value

    alone = single_files(differences, files, p_of, unit=UNITS[measure])
    return replace(effect, these_files=own, single_files=alone)


def baseline_effect(scores: QuestionScores, measure: str, baseline: str, *, seed: int) -> Effect:
    """Published item minus a baseline condition; memory and knowledge of the subject both raise it."""
    differences = scores.of(measure, ORIGINAL) - scores.of(measure, baseline)
    most = _held_at_most(scores.of(measure, baseline), measure)
    return _effect(differences, scores.files, most, measure, None, seed)


def _held_at_most(others: Floats, measure: str) -> float:
    """The effect of a file whose every suffix is certain: beyond what ``others`` (the other conditions) give it."""
    known = others[np.isfinite(others)]
    certain = 1.0 if measure == "hits" else 0.0
    return max(0.0, certain - float(known.mean())) if len(known) else 0.0


def _effect(
    differences: Floats, files: Sequence[str], most: float, measure: str, placed: Estimate | None, seed: int
) -> Effect:
    usable = differences[np.isfinite(differences)]
    mean = mean_of(differences, files, unseen=(0.0, most), **_fields(measure, seed))
    return Effect(mean, paired_sign_flip(usable, seed=seed), placed, detectable(usable, UNITS[measure]))


def _fields(measure: str, seed: int) -> dict[str, Any]:
    """How a paired difference is reported."""
    fields: dict[str, Any] = {"unit": UNITS[measure], "seed": seed, "chance": 0.0, "better": "lower"}
    return {**fields, "kind": "differences", "limits": (-1.0, 1.0) if measure == "hits" else None}


def detectable(differences: Floats, unit: str) -> Estimate:
    """The smallest mean difference that as many questions with this spread would show (power 80%, alpha 5%)."""
    method = "paired t, power 0.8, alpha 0.05, spread as observed"
    fields: dict[str, Any] = {"n": len(differences), "unit": unit, "better": "neither"}
    if len(differences) < 2:
        return Estimate.not_estimable(f"{len(differences)} question(s) have no spread", **fields)
    spread = float(differences.std(ddof=1))
    if spread == 0:
        return Estimate.not_estimable("all differences are equal: no spread", **fields)
    smallest = power_paired_t(n=len(differences))
    if smallest.value is None:
        return Estimate.not_estimable(smallest.note or "too few questions", **fields)
    return Estimate(smallest.value * spread, confidence=None, method=method, **fields)
