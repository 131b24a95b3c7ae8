"""How alike a completion and the truth are, for any script: exact match, ROUGE-L, edit similarity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np


def rouge_l(prediction: str, reference: str, *, unit: Literal["chars", "words"] = "chars") -> float:
    """ROUGE-L F1 in [0, 1]: the longest common subsequence of characters, or of words between white space.

    Unlike the common package's default it drops no character that is not ASCII. 0 where either text is empty.
    """
    a, b = (list(text) if unit == "chars" else text.split() for text in (prediction, reference))
    if not a or not b:
        return 0.0
    common = _common_subsequence(a, b)
    return 2 * common / (len(a) + len(b))


def edit_distance(a: str, b: str) -> int:
    """Levenshtein distance in code points."""
    row = np.arange(len(b) + 1)
    codes = np.array([ord(c) for c in b], dtype=np.int64)
    steps = np.arange(len(b) + 1)
    for i, character in enumerate(a, start=1):
        best = np.minimum(row[1:] + 1, row[:-1] + (codes != ord(character)))
        # Insertions run along the row: the smallest of all earlier entries plus the distance to them.
        row = np.minimum.accumulate(np.concatenate([[i], best]) - steps) + steps
    return int(row[-1])


def edit_similarity(prediction: str, reference: str) -> float:
    """1 - distance / length of the longer text; 1 for two empty texts."""
    longer = max(len(prediction), len(reference))
    return 1 - edit_distance(prediction, reference) / longer if longer else 1.0


def _common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    numbers: dict[str, int] = {}
    left, right = (np.array([numbers.setdefault(x, len(numbers)) for x in seq], dtype=np.int64) for seq in (a, b))
    row = np.zeros(len(right) + 1, dtype=np.int64)
    for value in left:
        row = np.maximum.accumulate(np.concatenate([[0], np.maximum(row[1:], row[:-1] + (right == value))]))
    return int(row[-1])
