"""Reading what a safetensors file says about itself, without torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError

_MAX_HEADER = 100_000_000
"""The format's own limit in bytes."""

ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
FLOATS = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file: ``start`` and ``stop`` are byte offsets from the beginning of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    @property
    def numel(self) -> int:
        return prod(self.shape)


def read_entries(path: Path) -> list[TensorEntry]:
    """The tensors of ``path`` by name; raises ``ModelError`` where the file is damaged or shorter than it says."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(_MAX_HEADER, path.stat().st_size - 8):
                raise ValueError("the header is longer than the file")
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        entries = [_entry(name, value, 8 + length) for name, value in sorted(header.items())]
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} is no readable safetensors file: {error}") from error
    expected = max((entry.stop for entry in entries), default=8 + length)
    if path.stat().st_size != expected:
        raise ModelError(f"{path} is damaged: {path.stat().st_size} bytes, its header promises {expected}")
    return entries


def _entry(name: str, value: dict[str, Any], base: int) -> TensorEntry:
    start, stop = value["data_offsets"]
    shape = tuple(int(size) for size in value["shape"])
    return TensorEntry(name, str(value["dtype"]), shape, base + int(start), base + int(stop))
