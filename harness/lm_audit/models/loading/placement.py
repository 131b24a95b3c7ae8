"""Where the parts of one model lie: on one device, or as ``accelerate`` spreads them over several.

``transformers`` loads each part to its place (``device_map``), and hooks carry what a part reads to where it lies. What
this package puts between the parts goes by the parts' own devices; whether each way of computing still gives the
model's own answers is tried as for any model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lm_audit.errors import UsageError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.compat import execution_device

if TYPE_CHECKING:
    import torch

PLACEMENTS = ("auto", "balanced", "balanced_low_0", "sequential")
"""The ways of spreading that ``transformers`` knows by name."""

DeviceMap = str | Mapping[str, int | str] | None
"""One of :data:`PLACEMENTS`, or the device of each part by its name; ``None``: the whole model on one device."""


def check_device_map(device_map: DeviceMap, device: object) -> None:
    """``UsageError`` for a placement that is none, that contradicts ``device``, or that nothing here could make.

    Needs no torch.
    """
    if device_map is None:
        return
    if isinstance(device_map, str) and device_map not in PLACEMENTS:
        raise UsageError(f"device map {device_map!r}: expected one of {', '.join(PLACEMENTS)}")
    if ":" in str(device) or str(device) == "mps":
        raise UsageError(
            f"a device map ({device_map}) spreads a model over GPUs, and device {device} is one; "
            "name the device cuda, or leave the device map out"
        )
    if find_spec("accelerate") is None:
        raise UsageError("a device map needs the package accelerate: pip install 'accelerate>=1.15'")


def placement(device_map: DeviceMap, device: torch.device) -> Any:
    """What ``transformers`` is given. A named placement would look for GPUs also where the CPU was asked for."""
    if isinstance(device_map, str) and device.type == "cpu":
        return {"": "cpu"}
    return None if device_map is None else device_map if isinstance(device_map, str) else dict(device_map)


def embedding_device(module: CausalModule) -> torch.device:
    """Where the input embeddings are computed; of weights that are read from the disk only when they are needed too."""
    import torch

    embeddings = module.get_input_embeddings()
    device: torch.device = embeddings.weight.device
    if device.type != "meta":
        return device
    return torch.device(execution_device(embeddings) or "cpu")


def places(module: CausalModule) -> dict[str, int]:
    """How many parts lie on each device, by its name; empty for a model that lies on one device as a whole."""
    spread = getattr(module, "hf_device_map", None) or {}
    return dict(sorted(Counter(_named(device) for device in spread.values()).items()))


def _named(device: object) -> str:
    return f"cuda:{device}" if isinstance(device, int) else str(device)
