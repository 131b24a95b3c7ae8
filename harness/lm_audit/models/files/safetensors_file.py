"""Reading what a safetensors file says about itself, without torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import one_line, refuse_pointer

_MAX_HEADER = 100_000_000
"""The format's own limit in bytes."""

ITEM_BYTES = {
    **{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1},
    **{"U64": 8, "U32": 4, "U16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "C64": 8},
}
_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
"""Types whose values share bytes."""
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
    """The tensors of ``path`` by name; raises ``ModelError`` where the file is damaged or shorter than it says.

    The rules are the format's: tensors lie one after the other behind the header, without gaps, and each has as many
    bytes as its shape and dtype need.
    """
    try:
        with path.open("rb") as file:
            refuse_pointer(path)
            size = path.stat().st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(_MAX_HEADER, size - 8):
                raise ValueError(f"its header should have {length} bytes, the file has {size}")
            header = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_without_repeats)
        if not isinstance(header, dict):
            raise ValueError(f"its header is a {type(header).__name__}")
        _check_metadata(header.pop("__metadata__", None))
        entries = [_entry(name, value, 8 + length) for name, value in sorted(header.items())]
        _check_layout(entries, 8 + length)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from error
    except RecursionError as error:
        raise ModelError(f"{path} is no readable safetensors file: its header is nested too deeply") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ModelError(f"{path} is no readable safetensors file: {one_line(error)}") from error
    expected = max((entry.stop for entry in entries), default=8 + length)
    if size != expected:
        raise ModelError(f"{path} is damaged: {size} bytes, its header promises {expected}")
    return entries


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"its header names {next(n for n in names if names.count(n) > 1)!r} twice")
    return found


def _check_metadata(value: object) -> None:
    if value is not None and not (isinstance(value, dict) and all(isinstance(text, str) for text in value.values())):
        raise ValueError("__metadata__ is not a mapping of texts")


def _entry(name: str, value: object, base: int) -> TensorEntry:
    if not isinstance(value, dict) or not {"dtype", "shape", "data_offsets"} <= set(value):
        raise ValueError(f"tensor {name!r} has no dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(shape, list) or not all(_is_size(number) for number in shape):
        raise ValueError(f"tensor {name!r} has the shape {shape!r:.80}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_size(number) for number in offsets):
        raise ValueError(f"tensor {name!r} has the data_offsets {offsets!r:.80}")
    entry = TensorEntry(name, str(dtype), tuple(shape), base + offsets[0], base + offsets[1])
    needed = _bytes_of(entry)
    if needed is None:
        raise ValueError(f"tensor {name!r} has the unknown dtype {dtype!r:.40}")
    if entry.stop - entry.start != needed:
        raise ValueError(f"tensor {name!r} has {entry.stop - entry.start} bytes; {dtype} {shape!r:.80} needs {needed}")
    return entry


def _bytes_of(entry: TensorEntry) -> int | None:
    if entry.dtype in _BITS:
        return (entry.numel * _BITS[entry.dtype] + 7) // 8
    return entry.numel * ITEM_BYTES[entry.dtype] if entry.dtype in ITEM_BYTES else None


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _check_layout(entries: Sequence[TensorEntry], begin: int) -> None:
    """Tensors that overlap, or bytes between them that belong to none."""
    at, before = begin, "the header"
    for entry in sorted(entries, key=lambda item: (item.start, item.stop)):
        if entry.start != at:
            what = "overlaps" if entry.start < at else "leaves a gap behind"
            raise ValueError(f"tensor {entry.name!r} {what} {before}")
        at, before = entry.stop, repr(entry.name)
