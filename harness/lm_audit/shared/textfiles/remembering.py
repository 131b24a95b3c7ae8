"""What was read of a file is remembered by the file's content: one that changed meanwhile is read again."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from hashlib import blake2b
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from lm_audit.shared.textfiles.parts import on_disk
from lm_audit.shared.textfiles.paths import is_file

P = ParamSpec("P")
Found = TypeVar("Found")

WHOLE = 64 * 2**20
"""Bytes up to which a file counts by its content; a larger one by its size, times and place on the disk."""


def content_stamp(where: object) -> str:
    """A text that changes when the file, or a file of the folder, does; empty where there is none (sets of the hub)."""
    path = on_disk(str(where)).path
    try:
        if is_file(path):
            return _stamp(path)
        if not path.is_dir():
            return ""
        files = sorted(one for one in path.rglob("*") if is_file(one))
        return " ".join(f"{one.relative_to(path)}={_stamp(one)}" for one in files)
    except (OSError, ValueError):  # what cannot be read is told by the reader
        return ""


def _stamp(path: Path) -> str:
    known = path.stat()
    if known.st_size > WHOLE:
        return f"{known.st_size}:{known.st_mtime_ns}:{known.st_ctime_ns}:{known.st_ino}"
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


def remembered_by_content(maxsize: int) -> Callable[[Callable[P, Found]], Callable[P, Found]]:
    """A cache for functions whose first argument names a file or folder; it has ``cache_info`` and ``cache_clear``."""

    def decorate(read: Callable[P, Found]) -> Callable[P, Found]:
        def again(stamp: str, *args: Any, **kwargs: Any) -> Found:
            return read(*args, **kwargs)

        kept: Any = lru_cache(maxsize=maxsize)(again)

        @wraps(read)
        def found(*args: P.args, **kwargs: P.kwargs) -> Found:
            value: Found = kept(content_stamp(args[0]), *args, **kwargs)
            return value

        remembering: Any = found
        remembering.cache_info, remembering.cache_clear = kept.cache_info, kept.cache_clear
        return cast(Callable[P, Found], remembering)

    return decorate
