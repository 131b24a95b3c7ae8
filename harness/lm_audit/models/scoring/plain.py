"""One sequence at a time through the model's own forward: slow, and the truth that faster ways are checked against."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from lm_audit.models.causal_module import CausalModule


@torch.inference_mode()
def forward_logits(module: CausalModule, ids: NDArray[np.int64]) -> torch.Tensor:
    """Logits [n, vocabulary] after each of the n tokens of one sequence."""
    inputs = torch.from_numpy(np.ascontiguousarray(ids)).to(module.device)[None]
    logits: torch.Tensor = module(input_ids=inputs, use_cache=False).logits[0]
    return logits
