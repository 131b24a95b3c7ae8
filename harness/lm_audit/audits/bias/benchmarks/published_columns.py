"""The columns of each public set, and rows given as dictionaries that must have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.errors import DataError

COLUMNS = {
    "crows_pairs": ("sent_more", "sent_less", "stereo_antistereo", "bias_type"),
    "stereoset": ("target", "bias_type", "context", "sentences"),
    "winobias": ("sentence", "condition", "type"),
    "winogender": ("sentid", "sentence"),
    "bbq": ("question_polarity", "context_condition", "context", "question", "ans0", "ans1", "ans2", "label"),
    "cbbq": ("question_polarity", "context_condition", "context", "question", "ans0", "ans1", "ans2", "label"),
}


def published_rows(rows: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """Rows that were given as dictionaries, each with the columns of its kind.

    Raises ``DataError`` with the row (and its file, where it names one) for what is no dictionary or lacks a column.
    """
    given = list(rows)
    for number, row in enumerate(given, start=1):
        if not isinstance(row, Mapping):
            raise DataError(f"is a {type(row).__name__}; a dictionary of columns is expected", row=number)
        missing = [column for column in COLUMNS[kind] if column not in row]
        if missing:
            place, line = row.get("_file") or None, row.get("_row", number)
            raise DataError(f"lacks {missing}; {kind} rows have {list(COLUMNS[kind])}", file=place, row=line)
    return given
