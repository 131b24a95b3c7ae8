"""Numbers of this thread on the device, without a wait for what the device is doing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def upload(values: Sequence[Any], device: torch.device) -> torch.Tensor:
    """Whole numbers (nested in lists of like length) as a tensor there.

    From ordinary memory a copy to a GPU waits for all that was launched before it; from pinned memory it does not.
    """
    made = torch.tensor(values)
    return made.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else made.to(device)
