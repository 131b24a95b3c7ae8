"""TOML files, in the encodings of all others."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError
from lm_audit.shared.textfiles.plain import text_of


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a file; ``DataError`` for what cannot be read or is no TOML, with the line where TOML names it."""
    try:
        document = tomllib.loads(text_of(path))
    except RecursionError as error:
        raise DataError("is nested too deeply to be read", file=path) from error
    except ValueError as error:  # TOMLDecodeError, and integers of more digits than Python converts
        reason = "a number has too many digits" if "integer string conversion" in str(error) else str(error)
        raise DataError(f"is not TOML: {reason}", file=path) from error
    # TOML's own integers have 64 bits; longer ones fit no float, and fail far from here.
    if (number := next((one for one in _integers(document) if not -(2**63) <= one < 2**63), None)) is not None:
        raise DataError(f"is not TOML: the integer {str(number)[:30]}... has more than 64 bits", file=path)
    return document


def _integers(value: object) -> Iterator[int]:
    """Every integer of a document, at any depth."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _integers(inner)
