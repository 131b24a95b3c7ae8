"""TOML files, in the encodings of all others."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError
from lm_audit.shared.textfiles.paths import readable_file
from lm_audit.shared.textfiles.plain import text_of


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a file; ``DataError`` for what cannot be read or is no TOML, with the line where TOML names it."""
    size = readable_file(path).stat().st_size
    if size > _LARGEST:  # it would be read into memory whole, which takes half a minute and more
        raise DataError(f"has {size:,} bytes; no TOML file of the project's takes {_LARGEST:,}", file=path)
    try:
        document = tomllib.loads(text_of(path))
    except RecursionError as error:
        raise DataError("is nested too deeply to be read", file=path) from error
    except ValueError as error:  # TOMLDecodeError, and integers of more digits than Python converts
        reason = "a number has too many digits" if "integer string conversion" in str(error) else str(error)
        raise DataError(f"is not TOML: {reason}", file=path) from error
    for value, depth in _values(document):
        if depth > _DEEPEST:  # ``[a.a.a...]`` nests without recursion in the parser; whoever walks the tables recurses.
            raise DataError("is nested too deeply to be read", file=path)
        # TOML's own integers have 64 bits; longer ones fit no float, and fail far from here.
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise DataError(f"is not TOML: the integer {str(value)[:30]}... has more than 64 bits", file=path)
    return document


_DEEPEST = 100
_LARGEST = 64 * 2**20


def _values(document: object) -> Iterator[tuple[object, int]]:
    """Every value of a document with its depth, the document's own 0."""
    waiting = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        if isinstance(value, dict | list):
            waiting += [(inner, depth + 1) for inner in (value.values() if isinstance(value, dict) else value)]
