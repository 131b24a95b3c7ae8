"""Ablation: how much the log-probability of generated tokens falls when a unit before them is overwritten.

Units are sentences of the user's prompt and earlier sentences of the generation (template tokens never), equal
segments, or single tokens. By causality one scored sequence for a unit serves every later target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.deletion.perturb import Perturbations, Scores
from lm_audit.audits.faithfulness.passage.spans import near_equal_ranges
from lm_audit.audits.faithfulness.passage.tokens import Passage

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Ablated:
    """One unit as columns that are overwritten together, and the generated tokens (rows) that its drop is given to."""

    columns: tuple[int, ...]
    rows: tuple[int, ...]


def sentence_plan(passage: Passage) -> list[Ablated]:
    """Every prompt sentence for all rows; every generated sentence for the rows of later sentences."""
    features = len(passage.user)
    everything = tuple(range(len(passage.generation_ids)))
    plan = [Ablated(tuple(group), everything) for group in passage.prompt_units("sentence").tokens]
    for group in passage.generation_units("sentence").tokens:
        later = tuple(row for row in everything if row > group[-1])
        plan.append(Ablated(tuple(features + index for index in group), later))
    return [unit for unit in plan if unit.rows]


def segment_plan(passage: Passage, segments: int) -> list[Ablated]:
    """Near-equal segments of user and generation tokens; for each sentence only the part of a segment before it
    counts.
    """
    features = len(passage.user)
    bounds = near_equal_ranges(features + len(passage.generation_ids), segments)
    plan: dict[tuple[int, ...], list[int]] = {}
    for sentence in passage.generation_units("sentence").tokens:
        for start, stop in bounds:
            columns = tuple(range(start, min(stop, features + sentence[0])))
            if columns:
                plan.setdefault(columns, []).extend(sentence)
    return [Ablated(columns, tuple(rows)) for columns, rows in plan.items()]


def token_plan(passage: Passage) -> list[Ablated]:
    """Every column by itself, for all rows after it."""
    features, generated = len(passage.user), len(passage.generation_ids)
    plan = [Ablated((column,), tuple(range(generated))) for column in range(features)]
    plan += [Ablated((features + t,), tuple(range(t + 1, generated))) for t in range(generated - 1)]
    return plan


def log_probability(scores: Scores) -> Matrix:
    """The score whose drop is measured: log p of each token."""
    return scores.logprobs


def concentrated_log_probability(scores: Scores, vocabulary: int) -> Matrix:
    """CLP: ``p_t * sum over v of (log p_t - log q_v)``; called KL in places, but it is none and grows with V."""
    assert scores.means is not None
    product: Matrix = np.exp(scores.logprobs) * vocabulary * (scores.logprobs - scores.means)
    return product


def ablation_matrix(
    perturbations: Perturbations,
    plan: Sequence[Ablated],
    score: Callable[[Scores], Matrix] = log_probability,
    *,
    means: bool = False,
) -> Matrix:
    """Drops G x (P_user + G): every token of a unit receives the whole drop of the unit; NaN where none was measured.

    ``means`` asks the model for what :func:`concentrated_log_probability` needs.
    """
    passage = perturbations.passage
    columns, generated = passage.columns, len(passage.generation_ids)
    changes = [([columns[index] for index in unit.columns], min(unit.rows)) for unit in plan]
    base, *ablated = perturbations.score([((), 0), *changes], means=means)
    original = score(base)
    matrix = np.full((generated, len(columns)), np.nan)
    for unit, (_, start), scores in zip(plan, changes, ablated, strict=True):
        drop = np.full(generated, np.nan)
        drop[start:] = original[start:] - score(scores)
        matrix[np.ix_(unit.rows, unit.columns)] = drop[list(unit.rows), None]
    return matrix
