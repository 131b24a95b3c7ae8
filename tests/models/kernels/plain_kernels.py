"""What the GPU kernels compute, by masks on any device: to try everything around them without a GPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Seen:
    sees: Tensor


class PlainKernels:
    """Stands where ``kernels.attention`` does; ``calls`` counts what was asked of it."""

    def __init__(self) -> None:
        self.calls = {"seen": 0, "rows": 0}
        self.wrong = 1.0

    def supported(self, query: Tensor, key: Tensor, value: Tensor) -> bool:
        return key.shape[-1] == value.shape[-1] == query.shape[-1]

    def seen(self, own: Tensor, ends: Tensor | None, keys: int, width: int) -> Seen:
        sees = torch.arange(keys) <= own[:, :, None]
        if ends is not None:
            sees = sees & (ends[:, None, :] > torch.arange(own.shape[1])[None, :, None])
        return Seen(sees)

    def attend_seen(self, query: Tensor, key: Tensor, value: Tensor, what: Seen, scale: float) -> Tensor:
        self.calls["seen"] += 1
        return self._attend(query, key, value, what.sees, scale)

    def attend_rows(
        self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, scale: float, window: int | None = None
    ) -> Tensor:
        self.calls["rows"] += 1
        columns = torch.arange(key.shape[2])
        sees = columns <= lengths[:, None]
        if window is not None:
            sees = sees & (columns > lengths[:, None] - window)
        return self._attend(query, key, value, sees[:, None], scale)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, sees: Tensor, scale: float) -> Tensor:
        groups = query.shape[1] // key.shape[1]
        key, value = (one.repeat_interleave(groups, 1).float() for one in (key, value))
        scores = (query.float() @ key.transpose(-1, -2) * scale * self.wrong).masked_fill(~sees[:, None], -torch.inf)
        return (scores.softmax(-1) @ value).transpose(1, 2).to(query.dtype)
