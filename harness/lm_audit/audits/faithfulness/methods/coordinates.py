"""Where scores go in an attribution: columns of the user and the generation, rows of a span, cells that are
undefined.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lm_audit.audits.faithfulness.methods.traced import TracedPassage
from lm_audit.audits.faithfulness.passage.spans import Span

Vector = NDArray[np.float64]


def columns_of(explainer: TracedPassage, full: Tensor) -> Vector:
    """The columns of an attribution out of scores over all positions (last axis): template tokens fall away."""
    picked: Vector = full[..., explainer.passage.columns].double().cpu().numpy()
    return picked


def copied_rows(explainer: TracedPassage, vector: Vector, span: Span) -> Vector:
    """The vector in every row of the span, NaN elsewhere."""
    matrix = np.full((len(explainer.rows), len(vector)), np.nan)
    matrix[span[0] : span[1] + 1] = vector
    return matrix


def masked_from_token(explainer: TracedPassage, matrix: Vector) -> Vector:
    """NaN from each row's own token on: what is read before a token cannot speak about it."""
    features = len(explainer.passage.user)
    columns = np.arange(matrix.shape[1]) - features
    return np.where(columns[None] >= np.arange(len(matrix))[:, None], np.nan, matrix)
