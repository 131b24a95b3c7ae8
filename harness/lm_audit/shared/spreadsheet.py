"""Text in a CSV that a spreadsheet would run as a formula: what a model says may be ``=HYPERLINK(...)``.

CSV has no way to say that a cell is text. A quotation mark in front makes it one in every spreadsheet; Parquet and the
ledger hold the text as it is.
"""

from __future__ import annotations

import re
from typing import Any

FORMULA = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
"""How a formula begins, in full width too; in the syntax of Arrow and of ``re``."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?")


def as_text(value: Any) -> Any:
    """``value``, with a ``'`` in front where it is a text that a spreadsheet takes for a formula; numbers are none."""
    if isinstance(value, str) and re.match(FORMULA, value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
