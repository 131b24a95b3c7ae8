"""Which devices this machine has, found without importing torch, so that collection stays fast."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lm_audit.errors import UsageError

KINDS = ("cpu", "cuda", "mps")
_DEVICE = re.compile(r"(cpu|mps|cuda(:\d+)?)")


def kind_of(device: str) -> str:
    """``cuda`` of ``cuda:1``: the name of the marker."""
    return device.partition(":")[0]


def check_device(device: str, option: str) -> str:
    """``device`` itself; ``UsageError`` unless it is a device that exists somewhere."""
    if _DEVICE.fullmatch(device) is None:
        raise UsageError(f"{option} {device!r}: no such device; use cpu, cuda, cuda:N or mps")
    return device


@cache
def present() -> frozenset[str]:
    """The kinds of device that are here; torch has the last word when a model is loaded."""
    found = {"cpu"}
    if cuda_count() > 0 and _torch_has_cuda():
        found.add("cuda")
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        found.add("mps")
    return frozenset(found)


def absent(device: str, kinds: frozenset[str]) -> str | None:
    """Why a case cannot run on ``device`` here, where ``kinds`` are the kinds that are present; None where it can."""
    kind, _, number = device.partition(":")
    if kind not in kinds:
        return f"device {device}: none found on this machine"
    if number and int(number) >= (count := cuda_count()) and kind in present():
        return f"device {device}: this machine has {count}, numbered from 0"
    return None


def refuse_absent(named: Sequence[str], required: Sequence[str], kinds: frozenset[str]) -> None:
    """``UsageError`` where ``--device`` asks for what cannot be had, so that a run of nothing but skips is no success.

    A kind that is absent beside one that is present stays a variant that skips with its reason: one command line for
    several machines. A number beyond the machine's devices is never meant. ``required`` kinds fail case by case.
    """
    gone = {device: reason for device in named if (reason := absent(device, kinds))}
    numbered = [reason for device, reason in gone.items() if ":" in device]
    awaited = {kind_of(device) for device in required}
    if numbered or (named and len(gone) == len(named) and not all(kind_of(device) in awaited for device in gone)):
        reason = (numbered or list(gone.values()))[0]
        raise UsageError(f"--device: {reason}; here are {', '.join(sorted(_shown(kinds)))}")


def _shown(kinds: frozenset[str]) -> list[str]:
    count = cuda_count() if "cuda" in kinds else 0
    return [f"cuda (0 to {count - 1})" if kind == "cuda" and count else kind for kind in kinds]


def best(devices: frozenset[str]) -> str:
    """The fastest of the kinds that are present."""
    return "cuda" if "cuda" in devices else "mps" if "mps" in devices else "cpu"


def cuda_count() -> int:
    """Devices that the driver shows to this process, inside ``CUDA_VISIBLE_DEVICES``."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return 0
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int(0)
        ok = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    except OSError:
        return 0
    return count.value if ok else 0


def _torch_has_cuda() -> bool:
    """Whether the installed torch is a CUDA build, by its files."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    return any((Path(spec.origin).parent / "lib").glob("*torch_cuda*"))
