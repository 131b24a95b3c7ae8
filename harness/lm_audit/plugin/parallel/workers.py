"""What ``-n auto`` means: as many workers as cores, memory, models and GPUs allow."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lm_audit.models.endpoint.address import is_endpoint
from lm_audit.plugin.options.naming import given
from lm_audit.plugin.parallel.threads import usable_cores
from lm_audit.shared.free_memory import available_memory
from lm_audit.shared.visible import visible

GIB = 1 << 30
WORKER_BYTES = 1 * GIB
"""Private memory of a worker beside the weights: torch and transformers 0.2 GiB, activations and logits the rest."""

_WEIGHT_ENDINGS = (".safetensors", ".bin", ".gguf", ".pt")
_EMBEDDED_BYTES = {"smollm2": 540_000_000, "tiny": 2_000_000}

REFUSED = "lm_audit_refused"
"""Where a worker leaves, in xdist's ``workeroutput``, what its controller is to refuse the call for."""


@dataclass(frozen=True)
class Resources:
    """What bounds the number of workers. ``None`` for what is not known, ``gpus`` None where the run uses none."""

    cores: int
    memory_bytes: int | None = None
    weights_bytes: int = 0
    gpus: int | None = None


def worker_count(resources: Resources) -> int:
    """How many workers to start, at least 1.

    On CPU the weights are memory-mapped and shared, so that they count once; on CUDA each device gets one worker.
    """
    bounds = [resources.cores]
    if resources.gpus is not None:
        bounds.append(resources.gpus)
    if resources.memory_bytes is not None:
        bounds.append((resources.memory_bytes - resources.weights_bytes) // WORKER_BYTES)
    return max(1, min(bounds))


def weights_bytes(spec: str) -> int:
    """The size on disk of a model's weights, 0 where it cannot be told without loading it."""
    if is_endpoint(spec):
        return 0
    path = Path(spec)
    if path.is_file():
        return path.stat().st_size
    if path.is_dir():
        return sum(file.stat().st_size for file in path.iterdir() if file.suffix in _WEIGHT_ENDINGS)
    if spec.partition(":")[0] in _EMBEDDED_BYTES:
        return _EMBEDDED_BYTES[spec.partition(":")[0]]
    return _cached_bytes(spec.partition("@")[0])


def _cached_bytes(repository: str) -> int:
    """The largest snapshot of a hub id in the local cache."""
    from lm_audit.models.files.hub import repo_folder

    snapshots = repo_folder(repository) / "snapshots"
    sizes = [weights_bytes(str(folder)) for folder in snapshots.iterdir()] if snapshots.is_dir() else []
    return max(sizes, default=0)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """``UsageError`` where workers would be sent a name that is no UTF-8, which ends the whole call in the middle."""
    if not getattr(config.option, "numprocesses", None):
        return
    for word in (*config.invocation_params.args, str(config.rootpath), str(config.invocation_params.dir)):
        try:
            str(word).encode("utf-8")
        except UnicodeEncodeError as error:
            raise pytest.UsageError(
                f"{visible(word)!s:.200} is no UTF-8, and workers (-n) take no such name: rename it, or run without -n"
            ) from error


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """The number of workers for ``-n auto``; None, so that xdist decides, where the user set xdist's own variable.

    Nothing is collected yet: a call counts as one of audits if it uses an option of the plugin, or its short names.
    """
    if not given(config) and not config.pluginmanager.has_plugin("lm_audit.plugin.short_options"):
        return None
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") or config.option.numprocesses != "auto":
        return None
    models = config.getoption("lm_audit_model") or ["smollm2"]
    specs = [text.rpartition("=")[2] for text in models]
    return worker_count(
        Resources(
            cores=usable_cores(),
            memory_bytes=available_memory(),
            weights_bytes=sum(weights_bytes(spec) for spec in specs),
            gpus=_gpus(config.getoption("lm_audit_device") or ()),
        )
    )


def _gpus(devices: Iterable[str]) -> int | None:
    """How many CUDA devices the run spreads over, None if it runs elsewhere. MPS is one device."""
    from lm_audit.plugin.models.devices import best, cuda_count, kind_of, present
    from lm_audit.plugin.parallel.device_slots import visible_devices

    kinds = {kind_of(device) for device in devices} or {best(present())}
    if "cuda" in kinds:
        return len(visible_devices(os.environ, cuda_count())) or None
    return 1 if "mps" in kinds else None


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_testnodedown(node: Any) -> None:
    """Refuse the call for what its first worker refused when it had collected."""
    told = (getattr(node, "workeroutput", None) or {}).get(REFUSED)
    if told:
        raise pytest.UsageError(told)
