"""Content digests of weight files: independent of path, sharding and order of the tensors."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from lm_audit.models.files.disk_cache import cache_dir
from lm_audit.models.files.safetensors_file import TensorEntry, read_entries
from lm_audit.shared.code_version import made_by
from lm_audit.shared.sealed import sealed, unsealed
from lm_audit.shared.textfiles import replacing

_BLOCK = 1 << 22

_EXPONENTS = {
    "F64": ("<u8", np.uint64(0x7FF0000000000000)),
    "F32": ("<u4", np.uint32(0x7F800000)),
    "F16": ("<u2", np.uint16(0x7C00)),
    "BF16": ("<u2", np.uint16(0x7F80)),
}
"""The unsigned type as which a floating dtype is read, and the bits of its exponent."""


def weights_digest(files: Sequence[Path]) -> str:
    """SHA-256 over every tensor's name, dtype, shape and bytes in all ``files``, tensors in order of their names.

    Every byte is read once; the answer is remembered by the real path and state (:func:`_stamp`) of each file.
    """
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        per_file = pool.map(tensor_digests, files)
    return combine_tensors(line for lines in per_file for line in lines)


def combine_tensors(lines: Iterable[str]) -> str:
    """One digest of lines made by :func:`tensor_line`, whatever their order."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def tensor_line(name: str, dtype: str, shape: Sequence[int], digest: str) -> str:
    """How one tensor enters the digest of the weights; ``dtype`` as safetensors spells it (F32, BF16, ...)."""
    return f"{name} {dtype} {list(shape)} {digest}"


def tensor_digests(path: Path) -> list[str]:
    """One line a tensor of a safetensors file, from the digest cache where the file is unchanged."""
    found: list[str] = json.loads(_remembered("tensors", path, lambda: json.dumps(_hash_tensors(path))))
    return found


def nonfinite_tensors(path: Path) -> list[str]:
    """Names of the tensors of a safetensors file that hold NaN or Inf; remembered."""
    return _odd_tensors(path)["nonfinite"]


def zero_tensors(path: Path) -> list[str]:
    """Names of the matrices of a safetensors file that hold nothing but zeros; remembered."""
    return _odd_tensors(path)["zero"]


def _odd_tensors(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(_remembered("odd", path, lambda: json.dumps(_find_odd(path))))
    return found


def code_digest(folder: Path) -> str:
    """SHA-256 over the Python files of a checkpoint that brings its own code."""
    lines = [f"{path.name} {_hash_file(path)}" for path in sorted(folder.glob("*.py"))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a whole file, remembered in the same way."""
    return _remembered("file", path, lambda: _hash_file(path))


def _hash_tensors(path: Path) -> list[str]:
    with path.open("rb") as file:
        return [tensor_line(e.name, e.dtype, e.shape, _hash_span(file.fileno(), e)) for e in read_entries(path)]


def _hash_span(descriptor: int, entry: TensorEntry) -> str:
    digest = hashlib.sha256()
    for start in range(entry.start, entry.stop, _BLOCK):
        digest.update(os.pread(descriptor, min(_BLOCK, entry.stop - start), start))
    return digest.hexdigest()


def _find_odd(path: Path) -> dict[str, list[str]]:
    with path.open("rb") as file:
        entries = read_entries(path)
        return {
            "nonfinite": [entry.name for entry in entries if _has_nonfinite(file.fileno(), entry)],
            "zero": [entry.name for entry in entries if _is_zero_matrix(file.fileno(), entry)],
        }


def _is_zero_matrix(descriptor: int, entry: TensorEntry) -> bool:
    """Whether a matrix holds only zeros; biases and scales often do."""
    if entry.dtype not in _EXPONENTS or len(entry.shape) < 2 or entry.numel == 0 or "bias" in entry.name:
        return False
    kind, _ = _EXPONENTS[entry.dtype]
    for start in range(entry.start, entry.stop, _BLOCK):
        values = np.frombuffer(os.pread(descriptor, min(_BLOCK, entry.stop - start), start), dtype=kind)
        if bool((values << 1).any()):  # without the sign: -0 is 0 too
            return False
    return True


def _has_nonfinite(descriptor: int, entry: TensorEntry) -> bool:
    """Whether any exponent is all ones, which is how every IEEE format and bfloat16 write NaN and Inf."""
    if entry.dtype not in _EXPONENTS:
        return False
    kind, exponent = _EXPONENTS[entry.dtype]
    for start in range(entry.start, entry.stop, _BLOCK):
        values = np.frombuffer(os.pread(descriptor, min(_BLOCK, entry.stop - start), start), dtype=kind)
        if bool((values & exponent == exponent).any()):
            return True
    return False


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(state: os.stat_result) -> str:
    """Size, times and inode of a file. Images and archives give all files one modification time; the time of the last
    change of any kind cannot be set."""
    return f"{state.st_size} {state.st_mtime_ns} {state.st_ctime_ns} {state.st_ino}"


def _remembered(kind: str, path: Path, compute: Callable[[], str]) -> str:
    real = path.resolve()
    made = made_by("models/loading/identity/digests.py", "models/files/safetensors_file.py", packages=("numpy",))
    key = hashlib.sha256(f"{kind} {real} {_stamp(real.stat())} {made}".encode()).hexdigest()[:32]
    record = cache_dir() / "digests" / key
    try:  # By its checksum: a torn record must neither end a load nor pass for what the weights are.
        answer = json.loads(unsealed(record.read_bytes(), required=True))["answer"]
        if isinstance(answer, str):
            return answer
    except (OSError, ValueError, KeyError, RecursionError):
        pass
    answer = compute()
    try:  # A cache that cannot be written costs time, not correctness.
        record.parent.mkdir(parents=True, exist_ok=True)
        with replacing(record) as draft:
            draft.write_bytes(sealed(json.dumps({"answer": answer}).encode("ascii")))
    except OSError:
        pass
    return answer
