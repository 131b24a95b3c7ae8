"""Devices and dtypes: always explicit, and refused before anything is loaded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lm_audit.errors import UsageError

if TYPE_CHECKING:
    import torch

DTYPES = {
    "float32": "float32",
    "fp32": "float32",
    "float": "float32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "fp16": "float16",
    "half": "float16",
    "float64": "float64",
    "fp64": "float64",
    "double": "float64",
}
SAFETENSORS_NAMES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float64": "F64"}
_DEVICE = re.compile(r"auto|cpu|mps|cuda(:[0-9]+)?")


def dtype_name(dtype: object) -> str:
    """``"auto"`` or one of float32, bfloat16, float16, float64, from a name or a ``torch.dtype``; needs no torch."""
    text = str(dtype).removeprefix("torch.").lower()
    if text == "auto" or text in DTYPES:
        return DTYPES.get(text, text)
    raise UsageError(f"unknown dtype {dtype!s}; expected auto, float32, bfloat16, float16 or float64")


def check_device_name(device: object) -> str:
    """The device as text; ``UsageError`` where it is no device at all. Needs no torch."""
    text = str(device)
    if not _DEVICE.fullmatch(text):
        raise UsageError(f"unknown device {text!r}; expected auto, cpu, cuda, cuda:N or mps")
    return text


def resolve_device(device: object) -> torch.device:
    """The device to use: ``auto`` is the best one present (cuda, mps, cpu); ``UsageError`` where it is absent."""
    import torch

    text = check_device_name(device)
    if text == "auto":
        text = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if text.startswith("cuda"):
        _check_cuda(text)
    if text == "mps" and not torch.backends.mps.is_available():
        raise UsageError("device mps: this machine or this build of torch has no Metal device")
    return torch.device(text)


def _check_cuda(text: str) -> None:
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise UsageError(f"device {text}: torch {torch.__version__} finds no CUDA device here")
    if ":" in text and int(text.split(":")[1]) >= count:
        raise UsageError(f"device {text}: torch finds {count} CUDA device(s), numbered from 0")


def resolve_dtype(dtype: object, device: torch.device, checkpoint_dtype: str) -> str:
    """The dtype's name: ``auto`` is the checkpoint's on cuda and mps and float32 on CPU.

    On CPUs without bfloat16 arithmetic, bfloat16 is 4 to 5 times slower than float32.
    """
    name = dtype_name(dtype)
    if name != "auto":
        return name
    return "float32" if device.type == "cpu" else checkpoint_dtype


def torch_dtype(name: str) -> torch.dtype:
    """The ``torch.dtype`` of a name that :func:`dtype_name` gave."""
    import torch

    found: Any = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found
