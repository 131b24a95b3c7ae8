"""Data for the page's scripts: JSON, compressed, as text that cannot end its script element."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

TEXT_LIMIT = 20_000
"""Characters of one value that the page holds; the rows file has all."""
SAMPLE = 50
"""Rows that every case keeps, whatever the budget."""


@dataclass(frozen=True)
class PackedRows:
    """The rows of a case as base64 of gzip of ``{"columns": [...], "data": [[...], ...]}``, column by column."""

    text: str
    shown: int
    total: int


def pack(value: Any) -> str:
    """``value`` as base64 of gzipped JSON; the same value gives the same text."""
    raw = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode("ascii")


def pack_rows(rows: Sequence[dict[str, Any]], total: int | None = None) -> PackedRows:
    """The rows, packed; ``total`` counts those that exist."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    data = [[_short(row.get(name)) for row in rows] for name in names]
    return PackedRows(pack({"columns": names, "data": data}), len(rows), len(rows) if total is None else total)


def fit(sources: Sequence[Callable[[], list[dict[str, Any]]]], budget: int) -> list[PackedRows]:
    """Each case's rows packed, all of them where they fit into ``budget`` characters, else the first share of each.

    A source is called again where its rows must be cut, so that the rows of one case are in memory at a time.
    """
    packed = [pack_rows(source()) for source in sources]
    share = budget / max(1, sum(len(case.text) for case in packed))
    return packed if share >= 1 else [_cut(source, whole, share) for source, whole in zip(sources, packed, strict=True)]


def _cut(source: Callable[[], list[dict[str, Any]]], whole: PackedRows, share: float) -> PackedRows:
    kept = min(whole.total, max(SAMPLE, int(whole.total * share * 0.95)))
    return whole if kept == whole.total else pack_rows(source()[:kept], whole.total)


def _short(value: Any) -> Any:
    if isinstance(value, float) and value - value != 0:
        return str(value)
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and len(value) > TEXT_LIMIT:
        return f"{value[:TEXT_LIMIT]}\u2026 and {len(value) - TEXT_LIMIT:,} more characters in the run's rows folder"
    return value
