"""What a spec's files are and whether they can be loaded: every check that needs neither torch nor weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.adapter_folder import CONFIG, Adapter, read_adapter
from lm_audit.models.files.config_file import check_plausible, check_remote_code, read_config
from lm_audit.models.files.hub import find_snapshot
from lm_audit.models.files.json_file import listed
from lm_audit.models.files.quantised.fp8_scales import check_scales
from lm_audit.models.files.quantised.methods import check_packed_once, check_quantised
from lm_audit.models.files.safetensors_file import FLOATS, ITEM_BYTES, TensorEntry
from lm_audit.models.files.tokenizer_file import check_tokenizer
from lm_audit.models.files.weight_files import has_tokenizer, left_out, refuse_dead_entries, stale_shards, weight_files
from lm_audit.models.loading.spec import ModelSpec
from lm_audit.shared.textfiles import is_file

__all__ = [
    "Adapter",
    "Checkpoint",
    "check_remote_code",
    "has_tokenizer",
    "model_folder",
    "read_adapter",
    "read_checkpoint",
]

_WHOLE = ("I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL", "C64")
_FLOAT_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclass(frozen=True)
class Checkpoint:
    """A model folder that passed the checks: its configuration and its safetensors files."""

    folder: Path
    config: Mapping[str, Any]
    weights: tuple[Path, ...]
    entries: tuple[TensorEntry, ...]

    @property
    def dtype(self) -> str:
        """The checkpoint's own dtype: what its config names, else that of most of its weights."""
        named = str(self.config.get("dtype") or self.config.get("torch_dtype") or "").removeprefix("torch.")
        return named if named in _FLOAT_NAMES.values() else self.stored_dtype

    @property
    def stored_dtype(self) -> str:
        """The floating dtype that most weights have in the files."""
        sizes = dict.fromkeys(FLOATS, 0)
        for entry in self.entries:
            if entry.dtype in sizes:
                sizes[entry.dtype] += entry.numel
        return _FLOAT_NAMES[max(sizes, key=lambda dtype: sizes[dtype])]

    @property
    def left_adapter(self) -> bool:
        """Whether adapter files lie beside the whole model, as a merge into the adapter's own folder leaves them."""
        return is_file(self.folder / CONFIG)

    @property
    def left_weights(self) -> tuple[str, ...]:
        """Files beside the model that look like weights of it and are not read."""
        return left_out(self.folder, self.weights)

    @property
    def gone_shards(self) -> tuple[str, ...]:
        """Shards that an index names and that are not there, beside the weights in one file that are taken."""
        return stale_shards(self.folder, self.weights)

    @property
    def quantised(self) -> bool:
        """Whether the weights are packed in a way that only transformers' own loader can undo."""
        return bool(self.config.get("quantization_config"))

    def bytes_in(self, dtype: str) -> int:
        """What the weights take in memory when every floating tensor has ``dtype``."""
        size = {"float64": 8, "float32": 4}.get(dtype, 2)
        return sum(e.numel * (size if e.dtype in FLOATS else ITEM_BYTES.get(e.dtype, 1)) for e in self.entries)


def model_folder(spec: ModelSpec) -> Path:
    """The folder of a ``hub`` or ``folder`` spec."""
    if spec.kind == "hub":
        return find_snapshot(spec)
    assert spec.path is not None
    return spec.path


def read_checkpoint(folder: Path, *, trust_remote_code: bool = False) -> Checkpoint:
    """The model in ``folder``; ``ModelError`` where it cannot be loaded, with the reason."""
    config = read_config(folder, trust_remote_code=trust_remote_code)
    check_quantised(config, folder)
    refuse_dead_entries(folder)
    weights, entries = weight_files(folder, config.get("transformers_weights"))
    check_plausible(config, entries, folder)
    _check_floating(config, entries, folder)
    if not has_tokenizer(folder):
        raise ModelError(f"{folder} has no tokenizer files (tokenizer.json, tokenizer.model, vocab.json, ...)")
    check_tokenizer(folder, config.get("model_type"))
    return Checkpoint(folder, config, weights, entries)


def _check_floating(config: Mapping[str, object], entries: tuple[TensorEntry, ...], folder: Path) -> None:
    """``ModelError`` for weights stored as whole numbers, truth values or packed floats without a word on their scale.

    transformers would take packed or rounded numbers (FP8, FP4) for the weights themselves.
    """
    if config.get("quantization_config"):
        check_scales(config, entries, folder)
        check_packed_once(config, (entry.name for entry in entries), folder)
        return
    odd = [
        f"{e.name} ({e.dtype})"
        for e in entries
        if e.dtype not in FLOATS and (e.dtype not in _WHOLE or e.name.endswith(".weight"))
    ]
    if odd:
        raise ModelError(
            f"{folder}: weights that are no floating-point numbers of 16 bits or more, and a config without"
            f" quantization_config that says"
            f" what they stand for: {listed(odd)}"
        )
