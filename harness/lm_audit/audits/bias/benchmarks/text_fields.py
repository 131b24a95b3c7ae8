"""Fields of a row that must hold a text: what a model reads is never the print of something else."""

from __future__ import annotations

import unicodedata
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


def seen(text: str) -> str:
    """What an eye sees of a text: letters in one Unicode form, gaps as one space, no hidden characters.

    Two texts of a contrast must differ in this: by a zero width space alone one text would be held against itself.
    """
    plain = unicodedata.normalize("NFC", text)
    return " ".join("".join(c for c in plain if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf")).split())
