"""JSON objects from files that may be damaged, of another kind, or out of reach."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.shared.textfiles.encodings import LFS

_LARGEST = 1 << 28
"""In bytes; the largest tokenizers take about a seventh of it."""


def read_json(path: Path) -> dict[str, Any]:
    """The object in ``path``; ``ModelError`` naming the file where it cannot be read or holds something else."""
    refuse_huge(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error
    except RecursionError as error:
        raise ModelError(f"{path} cannot be read as JSON: it is nested too deeply") from error
    except ValueError as error:
        refuse_pointer(path)
        raise ModelError(f"{path} cannot be read as JSON: {one_line(error)}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} holds a {type(value).__name__}; expected a JSON object")
    return value


def refuse_huge(path: Path) -> None:
    """``ModelError`` for a file of settings that is larger than any: it would be read into memory whole."""
    try:
        size = path.stat().st_size
    except OSError:
        return  # whoever reads it says what is wrong
    if size > _LARGEST:
        raise ModelError(
            f"{path} has {size:,} bytes, where a model's settings and tokens take a few million: restore it"
        )


def refuse_pointer(path: Path) -> None:
    """``ModelError`` where a clone holds the pointer of Git LFS in place of the file itself."""
    with path.open("rb") as file:
        if file.read(len(LFS[0])) == LFS[0]:
            raise ModelError(f"{path} is {LFS[1]}")


def one_line(value: object, limit: int = 300) -> str:
    """A message that may hold anything as one printable line."""
    text = " ".join(str(value).split())
    safe = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    return safe if len(safe) <= limit else f"{safe[:limit]}..."


def listed(names: Sequence[str], shown: int = 4) -> str:
    """The first few of some names, as one line, and how many more there are."""
    more = len(names) - shown
    return ", ".join(one_line(name, 120) for name in names[:shown]) + (f" and {more} more" if more > 0 else "")
