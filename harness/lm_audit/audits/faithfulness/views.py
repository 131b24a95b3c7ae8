"""Views of a token attribution: normalised rows, their sum over a span, and the recursive roll-back (CAGE).

All functions are plain numerics on a matrix ``A`` of G rows (explained generation tokens) and ``features + G`` columns
(prompt features, then the generation itself). Formulas: arXiv 2512.15663.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from lm_audit.audits.faithfulness.passage.spans import Span, checked_span

Matrix = NDArray[np.float64]

ROW_GUARD = 1e-8
"""Added to each row sum, so that a row without mass stays zero instead of becoming NaN."""


def normalised(matrix: ArrayLike) -> Matrix:
    """The matrix with undefined cells as 0, negatives clamped to 0 and rows divided by their sum (+1e-8)."""
    clamped = np.clip(np.nan_to_num(np.asarray(matrix, dtype=np.float64), nan=0.0), 0.0, None)
    rows: Matrix = clamped / (clamped.sum(axis=1, keepdims=True) + ROW_GUARD)
    return rows


def row_view(matrix: ArrayLike, span: Span) -> Matrix:
    """Sum of the normalised rows of the span; its mass is about the number of tokens, it is not an average."""
    rows = normalised(matrix)
    first, last = checked_span(span, len(rows), "span")
    total: Matrix = rows[first : last + 1].sum(axis=0)
    return total


def rec_view(matrix: ArrayLike, span: Span) -> Matrix:
    """Recursive view: mass on earlier generated tokens is handed back to the prompt, token by token.

    One unit-triangular solve ``(I - L) R = N_prompt`` for all rows, ``L`` the strictly lower part of the generation
    columns. Prompt columns hold the rolled-back mass; a generation column keeps only an explained token's own diagonal.
    The diagonal of intermediate tokens is dropped, so mass may leak (methods without a diagonal do not leak).
    """
    rows = normalised(matrix)
    count = len(rows)
    first, last = checked_span(span, count, "span")
    features = rows.shape[1] - count
    within = rows[:, features:]
    system = np.eye(count) - np.tril(within, -1)
    rolled = solve_triangular(system, rows[:, :features], lower=True, unit_diagonal=True)
    own = np.zeros(count)
    # Columns at or after the row's own token are never rolled back: they stay where they are.
    for index in range(first, last + 1):
        own[index:] += within[index, index:]
    return np.concatenate([rolled[first : last + 1].sum(axis=0), own])


def block_sums(
    matrix: ArrayLike, row_groups: Sequence[Sequence[int]], column_groups: Sequence[Sequence[int]]
) -> Matrix:
    """Sums over blocks of rows and columns, undefined cells as 0: summed first, clamped later."""
    filled = np.nan_to_num(np.asarray(matrix, dtype=np.float64), nan=0.0)
    columns = np.stack([filled[:, list(group)].sum(axis=1) for group in column_groups], axis=1)
    return np.stack([columns[list(group)].sum(axis=0) for group in row_groups], axis=0)


def aggregated(
    matrix: ArrayLike, prompt_groups: Sequence[Sequence[int]], generation_groups: Sequence[Sequence[int]], features: int
) -> Matrix:
    """Block sums by units (sentences, words, chunks); a generated unit receives nothing from itself or later ones."""
    shifted = [[features + index for index in group] for group in generation_groups]
    sums = block_sums(matrix, generation_groups, [*prompt_groups, *shifted])
    units = len(prompt_groups)
    for row in range(len(generation_groups)):
        sums[row, units + row :] = 0.0
    return sums
