"""GGUF files, de-quantised once to a float32 model folder: reading GGUF takes tens of seconds, its copy half of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.digests import file_digest
from lm_audit.models.disk_cache import build_once, cache_dir

_CONVERSION = 1
"""Raise when a conversion gives other files than before."""

_DIGIT_BY_DIGIT = ("smollm",)
"""Values of ``tokenizer.ggml.pre`` whose tokenizers split every digit off; transformers' conversion leaves it out."""


def check_gguf(path: Path) -> None:
    """``ModelError`` where ``path`` does not begin as a GGUF file does."""
    with path.open("rb") as file:
        head = file.read(24)
    if head[:4] != b"GGUF":
        raise ModelError(f"{path} is no GGUF file: it begins with {head[:4]!r}, expected b'GGUF'")
    if len(head) < 24:
        raise ModelError(f"{path} is cut off: it ends after {len(head)} bytes, inside the GGUF header")


def converted_folder(path: Path) -> Path:
    """The model folder made from ``path``: config, float32 safetensors and tokenizer; made once per content."""
    check_gguf(path)
    folder = cache_dir() / "gguf" / f"{path.stem[:40]}-{file_digest(path)[:16]}-v{_CONVERSION}"
    return build_once(folder, lambda scratch: _convert(path, scratch))


def _convert(path: Path, folder: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    from lm_audit.models.quiet import quiet_transformers

    try:
        with quiet_transformers():
            module = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
            tokenizer = _tokenizer(path, int(module.config.max_position_embeddings))
    except Exception as error:  # whatever a parser meets in a file that is damaged or of an unknown kind
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"{path} cannot be converted by transformers: {type(error).__name__}: {reason}") from error
    tied = set(module.all_tied_weights_keys)
    tensors = {name: value.contiguous() for name, value in module.state_dict().items() if name not in tied}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    _write_config(module, folder)
    tokenizer.save_pretrained(folder)


def _write_config(module: Any, folder: Path) -> None:
    config = module.config.to_dict()
    for gone in ("quantization_config", "_name_or_path"):
        config.pop(gone, None)
    config |= {"architectures": [type(module).__name__], "dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True), encoding="utf-8")
    module.generation_config.save_pretrained(folder)


def _tokenizer(path: Path, context: int) -> Any:
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    tokenizer.model_max_length = context
    if _string_field(path, "tokenizer.ggml.pre") in _DIGIT_BY_DIGIT:
        backend = tokenizer.backend_tokenizer
        digits = pre_tokenizers.Digits(individual_digits=True)
        backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])
    return tokenizer


def _string_field(path: Path, name: str) -> str | None:
    from gguf import GGUFReader

    field = GGUFReader(path).get_field(name)
    return None if field is None else str(field.contents())
