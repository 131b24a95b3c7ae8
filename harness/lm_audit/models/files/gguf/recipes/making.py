"""The model folder of a GGUF file by its recipe: configuration and float32 tensors under the names of transformers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lm_audit.errors import ModelError
from lm_audit.models.files.gguf.header import GgufHeader
from lm_audit.models.files.gguf.recipes.recipe import Arrays, Recipe, common, layers
from lm_audit.models.files.gguf.settings import ROPE_TENSORS
from lm_audit.models.files.json_file import listed

_LAYER = re.compile(r"blk\.(\d+)\.(.+)")


def made_config(recipe: Recipe, header: GgufHeader) -> Any:
    """The configuration of the file's sizes, rotary positions as yet without scaling."""
    from transformers import AutoConfig

    kind = recipe.model_type(header)
    settings = {**common(header), **recipe.settings(header)}
    return AutoConfig.for_model(kind, **settings)


def write_model(recipe: Recipe, config: Any, header: GgufHeader, path: Path, folder: Path) -> None:
    """``config.json`` and ``model.safetensors`` in ``folder``; ``ModelError`` naming tensors that have no place."""
    import torch
    from safetensors.numpy import save_file
    from transformers import AutoModelForCausalLM

    tensors = dict(_tensors(recipe, config, header, path))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with torch.device("meta"):
        build: Callable[..., Any] = AutoModelForCausalLM.from_config
        name = type(build(config)).__name__
    stated = config.to_dict() | {"architectures": [name], "dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(stated, indent=1, sort_keys=True), encoding="utf-8")


def _tensors(recipe: Recipe, config: Any, header: GgufHeader, path: Path) -> Iterator[tuple[str, np.ndarray]]:
    from gguf import GGUFReader, dequantize

    at: dict[int, Arrays] = {}
    ends: Arrays = {}
    for tensor in GGUFReader(path).tensors:
        if tensor.name in ROPE_TENSORS:
            continue
        value = np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        match = _LAYER.fullmatch(tensor.name)
        if match is None:
            ends[tensor.name] = value
        elif int(match[1]) < layers(header):  # those behind draft tokens, which transformers does not
            at.setdefault(int(match[1]), {})[match[2]] = value
    tables = [("", "", recipe.ends, recipe.change(ends, config))]
    tables += [
        (f"blk.{number}.", f"model.layers.{number}.", recipe.names, recipe.change(arrays, config))
        for number, arrays in sorted(at.items())
    ]
    lost = [f"{of}{name}" for of, _, names, arrays in tables for name in arrays if _renamed(name, names) is None]
    if lost:
        raise ModelError(f"{path} holds tensors that the conversion cannot keep: {listed(sorted(lost))}")
    yield from recipe.more(header).items()
    for _, into, names, arrays in tables:
        for name, value in arrays.items():
            yield from _spread(f"{into}{_renamed(name, names)}", value)


def _renamed(name: str, names: Mapping[str, str]) -> str | None:
    """The new name of one that is known with its ending, or without it."""
    if name in names:
        return names[name]
    stem, _, ending = name.rpartition(".")
    return f"{names[stem]}.{ending}" if stem in names else None


def _spread(name: str, value: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """One tensor, or one an expert."""
    if "{}" not in name:
        yield name, np.ascontiguousarray(value)
        return
    yield from ((name.format(number), np.ascontiguousarray(one)) for number, one in enumerate(value))
