"""Data for the page's scripts: JSON, compressed, as text that cannot end its script element."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lm_audit.sources.content import CONTENT

TEXT_LIMIT = 20_000
"""Characters of one value that the page holds; the rows file has all."""
Rows = Sequence[dict[str, Any]]
MINIMUM = 1e-3
SAMPLE = 50
"""Rows that every case keeps, whatever the budget."""


@dataclass(frozen=True)
class PackedRows:
    """The rows of a case as base64 of gzip of ``{"columns": [...], "data": [[...], ...]}``, column by column."""

    text: str
    shown: int
    total: int


def pack(value: object) -> str:
    """``value`` as base64 of gzipped JSON; the same value gives the same text."""
    raw = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode("ascii")


def pack_rows(rows: Sequence[dict[str, Any]], total: int | None = None) -> PackedRows:
    """The rows, packed without the digests of their items; ``total`` counts those that exist."""
    names = list(dict.fromkeys(name for row in rows for name in row if name != CONTENT))
    data = [_shortened([row.get(name) for row in rows]) for name in names]
    return PackedRows(pack({"columns": names, "data": data}), len(rows), len(rows) if total is None else total)


def fit(packed: dict[str, PackedRows], again: Callable[[str], Rows], budget: int) -> dict[str, PackedRows]:
    """All rows where they fit into ``budget`` characters, else the same share of each case's rows, from the first on.

    ``again`` gives the rows of a case that must be cut, so that the rows of one case are in memory at a time.
    """
    fitted, share = packed, 1.0
    while (size := sum(len(rows.text) for rows in fitted.values())) > budget and share > MINIMUM:
        share *= 0.97 * budget / size
        fitted = {name: _cut(rows, partial(again, name), share) for name, rows in packed.items()}
    return fitted


def _cut(whole: PackedRows, again: Callable[[], Rows], share: float) -> PackedRows:
    kept = min(whole.total, max(SAMPLE, int(whole.total * share)))
    return whole if kept == whole.total else pack_rows(again()[:kept], whole.total)


def _shortened(values: list[Any]) -> list[Any]:
    kinds = set(map(type, values))
    if kinds <= {int, bool, type(None)}:
        return values
    if kinds <= {str, type(None)} and max(map(len, filter(None, values)), default=0) <= TEXT_LIMIT:
        return values
    return [_short(value) for value in values]


def _short(value: object) -> Any:
    if isinstance(value, float) and value - value != 0:
        return str(value)
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and len(value) > TEXT_LIMIT:
        return f"{value[:TEXT_LIMIT]}\u2026 and {len(value) - TEXT_LIMIT:,} more characters in the run's rows folder"
    return value
