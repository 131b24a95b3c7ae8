"""One sequence at a time through the model's own forward: slow, and the truth that faster ways are checked against."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


@torch.inference_mode()
def forward_logits(module: Any, ids: NDArray[np.int64]) -> torch.Tensor:
    """Logits [n, vocabulary] after each of the n tokens of one sequence."""
    inputs = torch.from_numpy(np.ascontiguousarray(ids)).to(module.device)[None]
    logits: torch.Tensor = module(input_ids=inputs, use_cache=False).logits[0]
    return logits
