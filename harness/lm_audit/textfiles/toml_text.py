"""TOML files, in the encodings of all others."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError
from lm_audit.textfiles.plain import text_of


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a file; ``DataError`` for what cannot be read or is no TOML, with the line where TOML names it."""
    try:
        return tomllib.loads(text_of(path))
    except RecursionError as error:
        raise DataError("is nested too deeply to be read", file=path) from error
    except ValueError as error:  # TOMLDecodeError, and integers of more digits than Python converts
        reason = "a number has too many digits" if "integer string conversion" in str(error) else str(error)
        raise DataError(f"is not TOML: {reason}", file=path) from error
