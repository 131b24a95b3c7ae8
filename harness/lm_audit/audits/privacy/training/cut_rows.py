"""Rows that ``max_length`` cuts off are told."""

from __future__ import annotations

import warnings
from collections.abc import Sequence


def tell_cut(lengths: Sequence[int], most: int, what: str, where: str) -> None:
    """Warn of the rows that are longer than ``most`` tokens."""
    longer = [number for number, length in enumerate(lengths, 1) if length > most]
    if longer:
        warnings.warn(
            f"{len(longer)} of {len(lengths)} {what} are longer than max_length={most} tokens (row {longer[0]} is the"
            f" first, the longest has {max(lengths)}) and are cut {where}",
            stacklevel=3,
        )
