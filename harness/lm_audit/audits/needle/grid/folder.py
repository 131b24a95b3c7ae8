"""The folder of a grid: names, atomic writing, and whether what lies there is this configuration's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lm_audit.audits.needle.samples.sample import Sample
from lm_audit.audits.needle.samples.sequences import basis_points
from lm_audit.errors import DataError, UsageError
from lm_audit.shared.textfiles import is_folder, is_there, json_lines, read_json_object, replacing

METADATA, SUMMARY = "metadata.json", "summary.json"


@dataclass(frozen=True)
class CellStats:
    """What a finished cell holds; ``depth_error``: how far a first needle is from its depth at worst, in percent."""

    length: int
    position: float
    file: str
    samples: int
    shortest: int
    longest: int
    depth_error: float
    sha256: str


def cell_file(length: int, depth: float) -> str:
    """``length_004096/position_05000.jsonl``: tokens, basis points. Values are read from records, never from here."""
    return f"length_{length:06d}/position_{basis_points(depth):05d}.jsonl"


def write_atomically(path: Path, lines: Iterable[str]) -> str:
    """Write lines under a temporary name, then rename; the SHA-256 of the file. A torn file never bears its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with replacing(path, synced=True) as draft, draft.open("wb") as file:
        for line in lines:
            data = line.encode("utf-8") + b"\n"
            digest.update(data)
            file.write(data)
    return digest.hexdigest()


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write one JSON object atomically."""
    write_atomically(path, [json.dumps(content, indent=2, ensure_ascii=False)])


def read_samples(path: Path) -> Iterator[Sample]:
    """The samples of one file; ``DataError`` with the row of a line that is none."""
    for row, record in json_lines(path):
        yield Sample.from_json(record, file=path, row=row)


def read_folder(folder: str | Path) -> Iterator[Sample]:
    """All samples of a grid's folder, by length and depth; ``DataError`` where there are none."""
    files = sample_files(folder)
    for path in files:
        yield from read_samples(path)


def sample_files(folder: str | Path) -> list[Path]:
    """The sample files of a grid's folder, sorted; ``DataError`` where there are none."""
    files = sorted(Path(folder).glob("length_*/position_*.jsonl")) if is_folder(Path(folder)) else []
    if not files:
        raise DataError("holds no length_*/position_*.jsonl; expected what needle build wrote", file=folder)
    return files


def finished_cell(folder: Path, length: int, depth: float, samples: int) -> CellStats | None:
    """What an earlier run wrote of this cell; ``None`` where it is absent, torn or not whole."""
    path = folder / cell_file(length, depth)
    try:
        found = list(read_samples(path))
    except (OSError, DataError, UnicodeDecodeError):
        return None
    whole = [sample.index for sample in found] == list(range(samples))
    if not whole or any(s.length != length or s.target_position != depth for s in found):
        return None
    return cell_stats(length, depth, found, hashlib.sha256(path.read_bytes()).hexdigest())


def cell_stats(length: int, depth: float, samples: list[Sample], sha256: str) -> CellStats:
    """The statistics of a cell's samples."""
    sizes = [sample.actual_length for sample in samples]
    errors = [abs(s.actual_position - s.target_position) for s in samples if s.needles]
    worst = max(errors, default=0.0)
    return CellStats(length, depth, cell_file(length, depth), len(sizes), min(sizes), max(sizes), worst, sha256)


def claim_folder(folder: Path, configuration: Mapping[str, object], config_hash: str) -> None:
    """Make the folder this configuration's. ``UsageError`` where it is another's; then nothing is touched."""
    if is_there(folder) and not is_folder(folder):
        raise UsageError(f"{folder} is a file; expected a folder for the grid")
    metadata = folder / METADATA
    if is_there(metadata):
        _check_same(metadata, configuration, config_hash)
        for torn in folder.glob("length_*/.position_*.tmp"):
            torn.unlink(missing_ok=True)
        return
    if is_there(folder) and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty and holds no {METADATA} of a needle grid; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{folder!s:.200} cannot be made: {reason}; name another folder") from error
    write_json(metadata, {"config_sha256": config_hash, "configuration": dict(configuration)})


def _check_same(metadata: Path, configuration: Mapping[str, object], config_hash: str) -> None:
    try:
        found = read_json_object(metadata)
        other = dict(found["configuration"])
    except (DataError, ValueError, KeyError, TypeError):
        raise UsageError(f"{metadata} cannot be read as a grid's metadata; name another folder") from None
    if found.get("config_sha256") == config_hash:
        return
    differing = [
        f"{name} {other.get(name)!r} instead of {value!r}"
        for name, value in configuration.items()
        if other.get(name) != value
    ]
    what = "; ".join(differing) or "another tokenizer, haystack or generator version"
    raise UsageError(
        f"{metadata.parent} holds another configuration ({what}); nothing was written, name another folder"
    )


def summary_of(cells: Iterable[CellStats], config_hash: str) -> dict[str, Any]:
    """The content of ``summary.json``: the cells in order, totals, and a hash of all sample files."""
    ordered = sorted(cells, key=lambda cell: (cell.length, cell.position))
    content = hashlib.sha256("\n".join(f"{cell.file} {cell.sha256}" for cell in ordered).encode()).hexdigest()
    return {
        "config_sha256": config_hash,
        "content_sha256": content,
        "samples": sum(cell.samples for cell in ordered),
        "most_tokens_below_target": max(cell.length - cell.shortest for cell in ordered),
        "most_tokens_above_target": max(0, max(cell.longest - cell.length for cell in ordered)),
        "worst_depth_error": max(cell.depth_error for cell in ordered),
        "cells": [asdict(cell) for cell in ordered],
    }
