"""Attention of a decoding step on a CPU: queries that share a key head are rows of one product.

One token a row leaves the fused attention of torch next to nothing to do a head; three small products of all rows and
heads at once do the same in less than half of the time.
"""

from __future__ import annotations

import torch
from torch import Tensor


class GroupedRows:
    """Stands where the kernels of a GPU do, for one step: its masks are made once for all layers."""

    def __init__(self) -> None:
        self._masks: dict[tuple[int, int | None], Tensor] = {}

    def supported(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        """Whether it takes these: one query a row in float32, whole groups of heads of one width."""
        return (
            query.dtype == torch.float32
            and query.shape[2] == 1
            and query.shape[1] % key.shape[1] == 0
            and query.shape[-1] == key.shape[-1]
        )

    def attend_rows(
        self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, scale: float, window: int | None = None
    ) -> Tensor:
        """Attention [rows, 1, heads, width]: row r sees the columns 0 to ``lengths[r]`` of ``key`` and ``value``
        [rows, key heads, columns, width], the last ``window`` of them where that is given.
        """
        rows, heads, _, _ = query.shape
        key_heads, columns = key.shape[1], key.shape[2]
        grouped = query.reshape(rows * key_heads, heads // key_heads, -1)
        mask = self._mask(lengths, columns, window).repeat_interleave(key_heads, 0)
        scores = torch.baddbmm(mask, grouped, key.flatten(0, 1).transpose(1, 2), alpha=scale)
        return torch.bmm(scores.softmax(-1), value.flatten(0, 1)).view(rows, 1, heads, -1)

    def _mask(self, lengths: Tensor, columns: int, window: int | None) -> Tensor:
        """[rows, 1, columns], additive."""
        if (columns, window) not in self._masks:
            places, last = torch.arange(columns), lengths[:, None, None]
            hidden = places > last
            if window is not None:
                hidden = hidden | (places <= last - window)
            self._masks[columns, window] = torch.zeros(hidden.shape).masked_fill_(hidden, -torch.inf)
        return self._masks[columns, window]
