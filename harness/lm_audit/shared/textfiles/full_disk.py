"""Whether a library failed because a disk has no room: each tells it in a class, and in words, of its own."""

from __future__ import annotations

import errno
import os
import re
from traceback import format_exception_only

_NUMBERS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
_OF_RUST = re.compile(r"\(os error (\d+)\)")
_OF_TORCH = ("PytorchStreamWriter", "inline_container")


def full_disk(error: Exception) -> str | None:
    """What the system said where a disk took no more of what was to be written, None for any other error.

    Libraries in Rust (safetensors, tokenizers) say the system's number in their text alone; torch raises what it raises
    for anything else.
    """
    said = "".join(format_exception_only(error))  # str() of an error may be an error itself
    stated = _OF_RUST.search(said)
    number = error.errno if isinstance(error, OSError) else int(stated[1]) if stated else None
    if number in _NUMBERS:
        return os.strerror(number)
    return "torch could not write a file" if any(word in said for word in _OF_TORCH) else None
