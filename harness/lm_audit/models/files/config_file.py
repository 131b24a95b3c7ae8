"""A model folder's config.json, checked as far as that goes without transformers."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.class_names import check_causal_kind, check_class_names
from lm_audit.models.files.json_file import read_json
from lm_audit.models.files.rope_settings import check_rope
from lm_audit.models.files.safetensors_file import TensorEntry
from lm_audit.models.files.tokenizer_file import check_special_ids
from lm_audit.shared.number_checks import is_number
from lm_audit.shared.textfiles import is_file

_SIZES = (
    "vocab_size",
    "hidden_size",
    "n_embd",
    "d_model",
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "max_position_embeddings",
    "n_positions",
    "intermediate_size",
    "ffn_dim",
    "n_inner",
    "head_dim",
    "num_attention_heads",
    "num_key_value_heads",
    "decoder_attention_heads",
    "decoder_layers",
    "n_head",
    "n_heads",
    "num_heads",
    "n_head_kv",
)
_MAY_BE_MIXED = ("num_attention_heads", "num_key_value_heads", "n_heads", "intermediate_size", "num_heads")
"""Where a layer has its own number; a layer of another kind has 0 or null there."""
_UNBOUNDED = re.compile(r"limit|clip|clamp")
"""Settings of which infinity is a sensible value: no limit."""
_EPSILON = re.compile(r"(^|_)(eps|epsilon)$")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_WIDTHS = ("hidden_size", "n_embd", "d_model")
_PACKED = 64
"""How many values a stored number may stand for at most (packed low-bit weights, factorised embeddings)."""

_NOT_CAUSAL = ("ForMaskedLM", "ForPreTraining", "ForSequenceClassification", "ForTokenClassification")
_PARTS = ("text_config", "llm_config", "language_config")


def read_config(folder: Path, *, trust_remote_code: bool) -> dict[str, Any]:
    """The configuration of the causal model in ``folder``; ``ModelError`` where it is none, with the reason."""
    path = folder / "config.json"
    if not is_file(path):
        gguf = next(iter(sorted(folder.glob("*.gguf"))), None)
        hint = f"; name the file {gguf} itself" if gguf else ""
        raise ModelError(f"{folder} has no config.json: it is no model folder{hint}")
    config = read_json(path)
    check_remote_code(folder, trust_remote_code=trust_remote_code)
    if config.get("is_encoder_decoder"):
        raise ModelError(f"{path}: an encoder-decoder model; only causal language models are audited")
    if not isinstance(config.get("model_type"), str) or not config["model_type"]:
        raise ModelError(
            f"{path}: model_type is {config.get('model_type')!r:.60}; expected the config of a transformers model"
        )
    _check_heads(config, path)
    _check_numbers(config, "", path)
    check_causal_kind(config, path)
    for part in _parts(config):
        check_special_ids(part, path)
        for name in _SIZES:
            # Compressed heads (MLA) have widths of other names, and some configs state 0 in this one's place.
            if name != "head_dim" or part.get("kv_lora_rank") is None:
                _check_size(part.get(name), name, path)
        check_class_names(part, path)
        check_rope(part, path, own_code=bool(config.get("auto_map")))
    return config


def check_plausible(config: Mapping[str, object], entries: Sequence[TensorEntry], folder: Path) -> None:
    """``ModelError`` where the weights cannot be a model of that size.

    Building one, to compare the two, could fill the memory.
    """
    numbers = _PACKED * sum(entry.numel for entry in entries)
    for part in _parts(config):
        layers = max((value for value in map(part.get, _LAYERS) if isinstance(value, int)), default=0)
        width = max((value for value in map(part.get, _WIDTHS) if isinstance(value, int)), default=1)
        vocabulary = part.get("vocab_size")
        table = width * (vocabulary if isinstance(vocabulary, int) else 1)
        if layers > len(entries) or table > numbers or width * width > numbers:
            raise ModelError(
                f"{folder / 'config.json'} describes {layers} layers and embeddings of {vocabulary} x {width};"
                f" the weights have {len(entries)} tensors of {numbers // _PACKED} numbers"
            )


def embeddings_of(config: Mapping[str, object]) -> int | None:
    """How many tokens the embeddings of a config have, ``None`` where it states no number; the most of nested ones."""
    stated = [part.get("vocab_size") for part in _parts(config)]
    return max((number for number in stated if isinstance(number, int)), default=None)


def check_remote_code(folder: Path, *, trust_remote_code: bool) -> None:
    """``ModelError`` where a config in ``folder`` names code of its own and that is not allowed."""
    for name in ("config.json", "tokenizer_config.json"):
        config = read_json(folder / name) if is_file(folder / name) else {}
        if config.get("auto_map") and not trust_remote_code:
            raise ModelError(
                f"{folder / name}: auto_map names code of the checkpoint's own, which is not run; read that code, then"
                " pass trust_remote_code=True, or take auto_map out of a copy if transformers has this model built in"
            )


def _parts(config: Mapping[str, object]) -> Iterator[Mapping[str, Any]]:
    yield config
    yield from (part for part in map(config.get, _PARTS) if isinstance(part, Mapping))


def _check_numbers(value: Any, name: str, path: Path) -> None:
    """``ModelError`` for numbers that are none (NaN, infinity) and for epsilons that are negative, at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_numbers(inner, f"{name}.{key}" if name else str(key), path)
    elif isinstance(value, list):
        for inner in value:
            _check_numbers(inner, name, path)
    elif isinstance(value, int) and abs(value) > sys.float_info.max:
        raise ModelError(f"{path}: {name} is {str(value)[:30]}..., which is too large for a number")
    elif _EPSILON.search(name):
        if value is not None and not (is_number(value) and value >= 0):
            raise ModelError(f"{path}: {name} is {value!r:.60}; expected a finite number that is not negative")
    elif isinstance(value, float) and (math.isnan(value) or (math.isinf(value) and not _UNBOUNDED.search(name))):
        raise ModelError(f"{path}: {name} is {value!r}; expected a finite number")


def _check_size(value: object, name: str, path: Path) -> None:
    mixed = isinstance(value, list)
    values = value if isinstance(value, list) else [value]
    least = 0 if mixed and name in _MAY_BE_MIXED else 1
    for number in values:
        wrong = isinstance(number, bool) or not isinstance(number, int) or not least <= number < 2**40
        if number is not None and wrong:
            raise ModelError(f"{path}: {name} is {number!r:.60}; expected a whole number above 0")


def _check_heads(config: Mapping[str, object], path: Path) -> None:
    """A class of another task says what was trained: its head predicts no next token."""
    names = config.get("architectures")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ModelError(f"{path}: architectures is {names!r:.60}; expected a list of class names")
    other = [name for name in names or () if name.endswith(_NOT_CAUSAL)]
    if other and len(other) == len(names or ()) and not config.get("is_decoder"):
        raise ModelError(
            f"{path} names {other[0]}, which is no causal language model (masked models see the words that they"
            " predict, classifiers predict none); only causal language models are audited"
        )
