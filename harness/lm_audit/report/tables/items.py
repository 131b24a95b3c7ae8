"""Item rows: read from the run store line by line, and written as tidy tables of the whole run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.errors import StoreError
from lm_audit.report.tables.arrow import booleans, floats, integers, texts
from lm_audit.report.wording.names import case_label
from lm_audit.runstore.inside import content_inside
from lm_audit.runstore.normalise import restored
from lm_audit.runstore.reader import parsed
from lm_audit.runstore.records import CaseRecord, DamagedLine, Run
from lm_audit.runstore.soundness.beside import other_rows
from lm_audit.shared.spreadsheet import FORMULA, as_text
from lm_audit.shared.visible import visible

KEYS = ("case_id", "audit", "model", "device", "case")


@dataclass(frozen=True)
class CaseRows:
    """The rows of one case's last attempt, the lines that could not be read, and files that were changed since."""

    rows: list[dict[str, Any]]
    damaged: tuple[DamagedLine, ...]


def case_rows(run: Run, case: CaseRecord) -> CaseRows:
    """All item rows of the last attempt, as they were recorded; missing files and torn lines are named, not raised."""
    rows: list[dict[str, Any]] = []
    damaged: list[DamagedLine] = []
    others: list[DamagedLine] = []
    for name in case.last.row_files:
        try:
            content = content_inside(run.folder, name)
        except (OSError, StoreError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            damaged.append(DamagedLine(name, 0, f"cannot be read: {reason}"))
            continue
        lines = content.split(b"\n")
        found = _all_at_once(lines)
        if found is None:
            found, torn = _one_by_one(name, lines)
            damaged += torn
        rows += found
        if (changed := other_rows(case.last, name, content)) and not any(one.file == name for one in damaged):
            others.append(DamagedLine(name, 0, changed))
    lost = case.last.n_rows - len(rows) - len(damaged)
    if lost > 0 and all(one.line for one in damaged):
        damaged.append(DamagedLine(case.last.row_files[-1], 0, f"{lost} of {case.last.n_rows} rows are not there"))
        others = []
    return CaseRows(rows, (*damaged, *others))


def _all_at_once(lines: list[bytes]) -> list[dict[str, Any]] | None:
    """The rows of a sound file, several times faster than line by line; ``None`` where anything is amiss."""
    text = b"[" + b",".join(line for line in lines if line.strip()) + b"]"
    try:
        rows = parsed(text)
    except ValueError:
        return None
    if not all(type(row) is dict for row in rows) or len(rows) != sum(1 for line in lines if line.strip()):
        return None
    try:
        return [restored(row) for row in rows] if b'"$float"' in text else rows
    except (ValueError, TypeError):
        return None


def _one_by_one(name: str, lines: list[bytes]) -> tuple[list[dict[str, Any]], list[DamagedLine]]:
    rows: list[dict[str, Any]] = []
    damaged: list[DamagedLine] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = restored(parsed(line))
        except (ValueError, TypeError) as error:
            damaged.append(DamagedLine(name, number, str(error)))
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            damaged.append(DamagedLine(name, number, f"a row must be a mapping, got {type(row).__name__}"))
    return rows, damaged


def write_items(tables: list[Any], *, csv: Path, parquet: Path) -> int:
    """Write the tables of all cases (:func:`items_table`) as one, as CSV and Parquet; the number of rows.

    Columns are the union over all cases; one whose types differ between cases is text; lists and mappings are JSON.
    """
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    full = [table for table in tables if table.num_rows]
    table = joined(full) if full else pa.table({name: texts([]) for name in (*KEYS, "item")})
    # Written to open files: a path that is not UTF-8 is none for Arrow.
    with parquet.open("wb") as sink:
        pq.write_table(table, sink, compression="zstd")
    with csv.open("wb") as sink:
        pa_csv.write_csv(_visible(table), sink)
    return int(table.num_rows)


HIDDEN = r"[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\x{fdd0}-\x{fdef}]|[\x{fffe}\x{ffff}]|[^\x{0}-\x{1fffd}]"
"""Finds, in the syntax of Arrow, every text that is not shown as it is, and some that are."""


UNSAFE = f"{HIDDEN}|{FORMULA}"


def _visible(table: Any) -> Any:
    """``table`` with visible text that is no formula: a CSV is read in terminals, by programs and spreadsheets."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for index, column in enumerate(table.schema):
        values = table.column(index)
        if pa.types.is_string(column.type) and pc.any(pc.match_substring_regex(values, UNSAFE)).as_py():
            seen = [value if value is None else as_text(visible(value)) for value in values.to_pylist()]
            table = table.set_column(index, column.name, texts(seen))
    return table.rename_columns([as_text(visible(name)) for name in table.column_names])


def items_table(case: CaseRecord, rows: list[dict[str, Any]]) -> Any:
    """The rows of a case as a ``pyarrow.Table``, the case's own columns (:data:`KEYS`) in front."""
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {_text(name): _column([row.get(name) for row in rows]) for name in names if name not in KEYS}
    keys = (case.case_id, case.audit, case.model, case.device, case_label(case))
    front = {name: texts([value and _text(value)] * len(rows)) for name, value in zip(KEYS, keys, strict=True)}
    return pa.table({**front, **columns})


def _column(values: list[Any]) -> Any:
    import pyarrow as pa

    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {int} and all(v is None or abs(v) < 2**63 for v in values):
        return integers(values)
    if kinds <= {int, float} and float in kinds:
        return floats([None if v is None else float(v) for v in values])
    if kinds == {bool}:
        return booleans(values)
    return texts([None if v is None else _text(v) for v in values])


def _text(value: object) -> str:
    if isinstance(value, list | Mapping):
        value = json.dumps(value, ensure_ascii=False)
    # Lone surrogates are legal in JSON but not in UTF-8.
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def joined(tables: list[Any]) -> Any:
    """The tables as one, with the union of their columns; one whose types differ is text."""
    import pyarrow as pa

    kinds: dict[str, set[Any]] = {}
    for table in tables:
        for column in table.schema:
            if not pa.types.is_null(column.type):
                kinds.setdefault(column.name, set()).add(column.type)
    mixed = {name for name, types in kinds.items() if len(types) > 1 and not types <= {pa.int64(), pa.float64()}}
    alike = [_as_text(table, mixed & set(table.column_names)) for table in tables]
    return pa.concat_tables(alike, promote_options="permissive")


def _as_text(table: Any, names: set[str]) -> Any:
    for name in sorted(names):
        index = table.column_names.index(name)
        values = [None if v is None else str(v) for v in table.column(name).to_pylist()]
        table = table.set_column(index, name, texts(values))
    return table
