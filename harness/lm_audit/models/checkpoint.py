"""What a spec's files are and whether they can be loaded: every check that needs neither torch nor weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.hub import find_snapshot
from lm_audit.models.safetensors_file import FLOATS, ITEM_BYTES, TensorEntry, read_entries
from lm_audit.models.spec import ModelSpec

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tokenizer_config.json",
)
_ADAPTER_ORIGIN = ("base_model_name_or_path", "revision", "inference_mode", "peft_version", "auto_mapping")
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
    def quantised(self) -> bool:
        """Whether the weights are packed in a way that only transformers' own loader can undo."""
        return "quantization_config" in self.config

    def bytes_in(self, dtype: str) -> int:
        """What the weights take in memory when every floating tensor has ``dtype``."""
        size = {"float64": 8, "float32": 4}.get(dtype, 2)
        return sum(e.numel * (size if e.dtype in FLOATS else ITEM_BYTES.get(e.dtype, 1)) for e in self.entries)


@dataclass(frozen=True)
class Adapter:
    """A PEFT adapter folder: its configuration, its weights and what its base model is called."""

    folder: Path
    config: Mapping[str, Any]
    weights: Path
    base: str

    @property
    def has_tokenizer(self) -> bool:
        return has_tokenizer(self.folder)

    @property
    def settings(self) -> str:
        """What the configuration says of the weights' effect (rank, scale, targets), not of where they came from."""
        kept = {key: value for key, value in self.config.items() if key not in _ADAPTER_ORIGIN}
        plain = {key: sorted(value, key=str) if isinstance(value, list) else value for key, value in kept.items()}
        return json.dumps(plain, sort_keys=True)


def model_folder(spec: ModelSpec) -> Path:
    """The folder of a ``hub`` or ``folder`` spec."""
    if spec.kind == "hub":
        return find_snapshot(spec)
    assert spec.path is not None
    return spec.path


def read_adapter(folder: Path) -> Adapter | None:
    """The PEFT adapter in ``folder``; ``None`` where the folder holds a whole model instead."""
    if not (folder / "adapter_config.json").is_file() or (folder / "config.json").is_file():
        return None
    config = _read_json(folder / "adapter_config.json")
    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        raise _no_safetensors(folder, "adapter_model.safetensors")
    read_entries(weights)
    base = config.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise ModelError(
            f"{folder / 'adapter_config.json'}: base_model_name_or_path is {base!r}; expected a model spec"
        )
    revision = config.get("revision")
    pinned = f"{base}@{revision}" if revision and "@" not in base and not Path(base).exists() else base
    if not Path(base).exists() and (folder / base).is_dir():
        pinned = str(folder / base)
    return Adapter(folder, config, weights, pinned)


def read_checkpoint(folder: Path, *, trust_remote_code: bool = False) -> Checkpoint:
    """The model in ``folder``; ``ModelError`` where it cannot be loaded, with the reason."""
    config = _read_config(folder, trust_remote_code)
    weights = _weight_files(folder)
    entries = tuple(entry for file in weights for entry in read_entries(file))
    if not has_tokenizer(folder):
        raise ModelError(f"{folder} has no tokenizer files (tokenizer.json, tokenizer.model, vocab.json, ...)")
    return Checkpoint(folder, config, weights, entries)


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder holds a tokenizer of its own."""
    return any((folder / name).is_file() for name in _TOKENIZER_FILES)


def check_remote_code(folder: Path, *, trust_remote_code: bool) -> None:
    """``ModelError`` where a config in ``folder`` names code of its own and that is not allowed."""
    for name in ("config.json", "tokenizer_config.json"):
        config = _read_json(folder / name) if (folder / name).is_file() else {}
        if config.get("auto_map") and not trust_remote_code:
            raise ModelError(
                f"{folder / name}: auto_map names code of the checkpoint's own, which is not run; read that code, then"
                " pass trust_remote_code=True, or take auto_map out of a copy if transformers has this model built in"
            )


def _read_config(folder: Path, trust_remote_code: bool) -> dict[str, Any]:
    if not (folder / "config.json").is_file():
        gguf = next(iter(sorted(folder.glob("*.gguf"))), None)
        hint = f"; name the file {gguf} itself" if gguf else ""
        raise ModelError(f"{folder} has no config.json: it is no model folder{hint}")
    config = _read_json(folder / "config.json")
    check_remote_code(folder, trust_remote_code=trust_remote_code)
    if config.get("is_encoder_decoder"):
        raise ModelError(f"{folder / 'config.json'}: an encoder-decoder model; only causal language models are audited")
    if not config.get("model_type"):
        raise ModelError(f"{folder / 'config.json'}: no model_type; expected the config of a transformers model")
    return config


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} holds a {type(value).__name__}; expected a JSON object")
    return value


def _weight_files(folder: Path) -> tuple[Path, ...]:
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return (folder / "model.safetensors",)
    if not index.is_file():
        raise _no_safetensors(folder, "model.safetensors")
    shards = sorted(set(_read_json(index).get("weight_map", {}).values()))
    missing = [name for name in shards if not (folder / name).is_file()]
    if missing or not shards:
        raise ModelError(f"{index} names files that are not there: {', '.join(missing) or 'it names none'}")
    return tuple(folder / name for name in shards)


def _no_safetensors(folder: Path, wanted: str) -> ModelError:
    pickles = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
    if pickles:
        return ModelError(
            f"{folder} holds only pickle weights ({pickles[0]}), which can run code when read and are never loaded;"
            f" save them again as {wanted}"
        )
    other = sorted(path.name for path in folder.glob("*.safetensors"))
    return ModelError(f"{folder} has no {wanted}" + (f" (there: {', '.join(other[:3])})" if other else ""))
