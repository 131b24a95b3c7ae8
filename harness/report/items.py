"""Item rows: read from the run store line by line, and written as one tidy table of the whole run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.report.names import case_label
from harness.runstore.normalise import restored
from harness.runstore.records import CaseRecord, DamagedLine, Run

KEYS = ("case_id", "audit", "model", "device", "case")


@dataclass(frozen=True)
class CaseRows:
    """The rows of one case's last attempt, and the lines that could not be read."""

    rows: list[dict[str, Any]]
    damaged: tuple[DamagedLine, ...]


def case_rows(run: Run, case: CaseRecord) -> CaseRows:
    """All item rows of the last attempt; missing files and torn lines are named, not raised."""
    rows: list[dict[str, Any]] = []
    damaged: list[DamagedLine] = []
    for name in case.last.row_files:
        path = run.folder / name
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            damaged.append(DamagedLine(name, 0, f"cannot be read: {error.strerror or error}"))
            continue
        for number, line in enumerate(lines, 1):
            if line.strip():
                _add_row(line, DamagedLine(name, number, ""), rows, damaged)
    return CaseRows(rows, tuple(damaged))


def _add_row(line: bytes, where: DamagedLine, rows: list[dict[str, Any]], damaged: list[DamagedLine]) -> None:
    try:
        row = json.loads(line)
    except ValueError as error:
        damaged.append(DamagedLine(where.file, where.line, str(error)))
        return
    if not isinstance(row, dict):
        damaged.append(DamagedLine(where.file, where.line, f"a row must be a mapping, got {type(row).__name__}"))
        return
    rows.append(restored(row) if b'"$float"' in line else row)


def write_items(run: Run, *, csv: Path, parquet: Path) -> int:
    """Write all item rows of the run as CSV and Parquet with the case's columns in front; the number of rows.

    Columns are the union over all cases; one whose types differ between cases is text; lists and mappings are JSON.
    """
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    tables = [_table(case, case_rows(run, case).rows) for case in run.cases if case.last.n_rows or case.last.row_files]
    tables = [table for table in tables if table.num_rows]
    table = _joined(tables) if tables else pa.table({name: pa.array([], pa.string()) for name in (*KEYS, "item")})
    pq.write_table(table, parquet, compression="zstd")
    pa_csv.write_csv(table, csv)
    return int(table.num_rows)


def _table(case: CaseRecord, rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names if name not in KEYS}
    keys = (case.case_id, case.audit, case.model, case.device, case_label(case))
    front = {name: pa.array([value] * len(rows), pa.string()) for name, value in zip(KEYS, keys, strict=True)}
    return pa.table({**front, **columns})


def _column(values: list[Any]) -> Any:
    import pyarrow as pa

    flat = [_flat(value) for value in values]
    kinds = {type(value) for value in flat if value is not None}
    if kinds and kinds <= {int, float}:
        return pa.array([None if v is None else float(v) for v in flat] if float in kinds else flat)
    if len(kinds) > 1 or kinds == {str}:
        return pa.array([None if v is None else _text(v) for v in flat], pa.string())
    return pa.array(flat)


def _flat(value: Any) -> Any:
    if isinstance(value, list | Mapping):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    return value


def _text(value: Any) -> str:
    # Lone surrogates are legal in JSON but not in UTF-8.
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def _joined(tables: list[Any]) -> Any:
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
    import pyarrow as pa

    for name in sorted(names):
        index = table.column_names.index(name)
        values = [None if v is None else str(v) for v in table.column(name).to_pylist()]
        table = table.set_column(index, name, pa.array(values, pa.string()))
    return table


def iter_rows(run: Run) -> Iterator[tuple[CaseRecord, dict[str, Any]]]:
    """Every item row of the run with its case."""
    for case in run.cases:
        for row in case_rows(run, case).rows:
            yield case, row
