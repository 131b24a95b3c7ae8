"""Fields of a row that must hold a text: what a model reads is never the print of something else."""

from __future__ import annotations

from collections.abc import Mapping

from lm_audit.errors import DataError
from lm_audit.shared.visible import is_blank


def text_field(row: Mapping[str, object], field: str) -> str:
    """The text in ``field``; ``DataError`` for null, numbers, lists, records and a text of which nothing is seen."""
    value = row.get(field)
    if not isinstance(value, str) or is_blank(value):
        raise DataError(f"is {value!r:.60}; a text is expected", field=field)
    return value


def label_field(row: Mapping[str, object], field: str) -> str:
    """What a row is divided by, as text: "" where it is absent; ``DataError`` for a list or a record."""
    value = row.get(field)
    if not is_label(value):
        raise DataError(f"is {value!r:.60}; a text or a number is expected", field=field)
    return "" if value is None else str(value)


def is_label(value: object) -> bool:
    """Whether rows can be divided by a value: a text, a number, or none."""
    return value is None or isinstance(value, str | int | float)
