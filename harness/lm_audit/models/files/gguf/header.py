"""What a GGUF file says of itself: its metadata and its tensors, without reading one of them and without torch."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import one_line, refuse_pointer

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)
_DEPTH = 4


@dataclass(frozen=True)
class GgufHeader:
    """Metadata by key (of long arrays only the length) and tensor name -> shape, the fastest dimension first."""

    metadata: Mapping[str, Any]
    tensors: Mapping[str, tuple[int, ...]]

    @property
    def architecture(self) -> str:
        return str(self.metadata["general.architecture"])

    def of_model(self, key: str) -> Any:
        """The value of ``<architecture>.<key>``, None where the file does not state it."""
        return self.metadata.get(f"{self.architecture}.{key}")


def read_header(path: Path) -> GgufHeader:
    """The header of ``path``; ``ModelError`` naming the file where it is damaged, cut off or none of GGUF."""
    try:
        with path.open("rb") as file:
            head = file.read(24)
            if head[:4] != b"GGUF":
                refuse_pointer(path)
                raise ModelError(f"{path} is no GGUF file: it begins with {head[:4]!r}, expected b'GGUF'")
            if len(head) < 24:
                raise ModelError(f"{path} is cut off: it ends after {len(head)} bytes, inside the GGUF header")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Scan(data).header()
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from error
    except (ValueError, struct.error, KeyError, OverflowError, RecursionError) as error:
        raise ModelError(f"{path} is a damaged GGUF file: {one_line(error)}") from error


class _Scan:
    def __init__(self, data: mmap.mmap):
        self._data = data
        self._at = 4

    def header(self) -> GgufHeader:
        version = self._number("I")
        if version not in _VERSIONS:
            raise ValueError(f"version {version}, expected 2 or 3")
        tensors, pairs = self._count(24), self._count(12)
        metadata: dict[str, Any] = {}
        for _ in range(pairs):
            key = self._string()
            if key in metadata:
                raise ValueError(f"it states {key!r} twice")
            metadata[key] = self._value(self._number("I"), _DEPTH)
        if "split.count" in metadata:  # parts behind the first state nothing else
            metadata.setdefault("general.architecture", "")
        if not isinstance(metadata.get("general.architecture"), str):
            raise ValueError("it names no general.architecture")
        infos = [self._tensor() for _ in range(tensors)]
        self._check_places(infos, metadata.get("general.alignment", 32))
        found = {name: shape for name, shape, _, _ in infos}
        if len(found) < len(infos):
            raise ValueError("it names a tensor twice")
        return GgufHeader(metadata, found)

    def _number(self, code: str) -> Any:
        size = struct.calcsize(f"<{code}")
        if self._at + size > len(self._data):
            raise ValueError(f"it ends after {len(self._data)} bytes, inside its header")
        (value,) = struct.unpack_from(f"<{code}", self._data, self._at)
        self._at += size
        return value

    def _count(self, least: int) -> int:
        """How many things of at least so many bytes follow."""
        count = int(self._number("Q"))
        if count > len(self._data) // least + 1:
            raise ValueError(f"it promises {count} entries in {len(self._data)} bytes")
        return count

    def _bytes(self) -> bytes:
        length = int(self._number("Q"))
        if self._at + length > len(self._data):
            raise ValueError(f"a text of {length} bytes goes beyond its end")
        self._at += length
        return self._data[self._at - length : self._at]

    def _string(self) -> str:
        return self._bytes().decode("utf-8")

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY or depth == 0:
            raise ValueError(f"a value of the unknown type {kind}")
        inner, count = self._number("I"), self._count(1)
        if inner == _STRING:
            for _ in range(count):
                self._bytes()
            return count
        values = [self._value(inner, depth - 1) for _ in range(count)]
        return values if count <= 4096 else count

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name, dimensions = self._string(), self._number("I")
        if not 0 < dimensions <= 8:
            raise ValueError(f"tensor {name!r} has {dimensions} dimensions")
        shape = tuple(int(self._number("Q")) for _ in range(dimensions))
        return name, shape, self._number("I"), self._number("Q")

    def _check_places(self, infos: list[tuple[str, tuple[int, ...], int, int]], alignment: object) -> None:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        if not isinstance(alignment, int) or alignment <= 0:
            raise ValueError(f"general.alignment is {alignment!r}")
        begin = (self._at + alignment - 1) // alignment * alignment
        for name, shape, kind, offset in infos:
            block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
            end = begin + offset + prod(shape) // block * size
            if end > len(self._data):
                raise ValueError(f"tensor {name!r} goes to byte {end}, the file has {len(self._data)}")
