"""The weights of a checkpoint in another dtype, written once to disk so that every process maps the same pages."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lm_audit.models.files.checkpoint import Checkpoint
from lm_audit.models.files.disk_cache import build_once, cache_dir
from lm_audit.models.files.safetensors_file import FLOATS
from lm_audit.models.loading.devices import SAFETENSORS_NAMES, torch_dtype
from lm_audit.models.loading.identity.digests import weights_digest
from lm_audit.shared.code_version import made_by

if TYPE_CHECKING:
    import torch

_SHARD_BYTES = 1 << 30

_MAKERS = (
    "models/loading/conversion.py", "models/loading/devices.py", "models/files/checkpoint.py",
    "models/files/safetensors_file.py",
)  # fmt: skip
_PACKAGES = ("torch", "safetensors")
"""The code and the packages that decide what a converted folder holds; any more would convert large models anew."""


def folder_in_dtype(checkpoint: Checkpoint, dtype: str) -> Path:
    """A folder whose floating weights have ``dtype``: the checkpoint's own where they have it, else a converted copy.

    Asking ``transformers`` for another dtype than the file's makes private copies in every process. Weights that are
    quantised in a format of their own are left to ``transformers``.
    """
    wanted = SAFETENSORS_NAMES[dtype]
    stored = {entry.dtype for entry in checkpoint.entries if entry.dtype in FLOATS}
    if checkpoint.quantised or stored <= {wanted}:
        return checkpoint.folder
    name = f"{_content(checkpoint)[:24]}-{dtype}-{made_by(*_MAKERS, packages=_PACKAGES)[:8]}"
    folder = cache_dir() / "converted" / name
    return build_once(folder, lambda scratch: _convert(checkpoint, dtype, scratch))


def _convert(checkpoint: Checkpoint, dtype: str, folder: Path) -> None:
    from safetensors.torch import save_file

    places: dict[str, str] = {}
    for number, shard in enumerate(_shards(checkpoint, dtype), start=1):
        name = f"model-{number:05d}.safetensors"
        save_file(shard, folder / name, metadata={"format": "pt"})
        places |= dict.fromkeys(shard, name)
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    _copy_small_files(checkpoint, dtype, folder)


def _shards(checkpoint: Checkpoint, dtype: str) -> Iterator[dict[str, torch.Tensor]]:
    from safetensors import safe_open

    shard: dict[str, torch.Tensor] = {}
    for path in checkpoint.weights:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a dictionary
                tensor = file.get_tensor(name)
                shard[name] = tensor.to(torch_dtype(dtype)) if tensor.is_floating_point() else tensor
                if sum(value.nbytes for value in shard.values()) >= _SHARD_BYTES:
                    yield shard
                    shard = {}
    if shard:
        yield shard


def _content(checkpoint: Checkpoint) -> str:
    """A hash of all that the converted folder holds: weights, and every file that is copied beside them."""
    lines = [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in _small_files(checkpoint)]
    return hashlib.sha256("\n".join([weights_digest(checkpoint.weights), *lines]).encode()).hexdigest()


def _small_files(checkpoint: Checkpoint) -> list[Path]:
    """What a loaded model is made of beside its weights: configurations and code; never an adapter."""
    found = [path for pattern in ("*.json", "*.py") for path in sorted(checkpoint.folder.glob(pattern))]
    return [path for path in found if "safetensors" not in path.name and not path.name.startswith("adapter_")]


def _copy_small_files(checkpoint: Checkpoint, dtype: str, folder: Path) -> None:
    for path in _small_files(checkpoint):
        shutil.copyfile(path, folder / path.name)
    gone = ("torch_dtype", "transformers_weights")
    config = {key: value for key, value in checkpoint.config.items() if key not in gone} | {"dtype": dtype}
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
