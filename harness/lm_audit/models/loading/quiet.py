"""Keeping transformers' bars and notices out of a test run's output, without losing what it says about weights."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_TOLD = re.compile(
    r"\b(weights?|tied?|tying|checkpoint|parameters? .*initiali[sz]ed|tensors?)\b"
    r"|Unrecognized keys in `rope_parameters`|`rope_parameters`'s \w+ field",
    re.IGNORECASE,
)
"""What concerns weights, and rotary settings that are passed over or make no sense."""


class Heard(logging.Handler):
    """What transformers logged while a block ran, from warnings upwards."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(re.sub(r"\x1b\[[0-9;]*m", "", record.getMessage()))

    def tell_of_numbers(self, name: str) -> None:
        """Warn of whatever concerns weights or rotation of model ``name``: a word on them is never swallowed."""
        for message in dict.fromkeys(self.messages):
            text = " ".join(message.split())
            if _TOLD.search(text) and "LOAD REPORT" not in text:
                warnings.warn(f"model {name}: transformers says: {text[:500]}", stacklevel=2)


@contextmanager
def quiet_transformers() -> Iterator[Heard]:
    """Neither progress bars nor notices while the block runs; they are heard, and the user's settings come back.

    What the user set (``TRANSFORMERS_VERBOSITY``) decides what is printed elsewhere, not what is heard here.
    """
    from transformers.utils import logging as untyped

    library: Any = untyped
    heard = Heard()
    root = library.get_logger("transformers")
    bars, level, handlers, propagate = (
        library.is_progress_bar_enabled(),
        root.level,
        list(root.handlers),
        root.propagate,
    )
    library.disable_progress_bar()
    root.handlers, root.propagate = [heard], False
    root.setLevel(logging.WARNING)
    try:
        yield heard
    finally:
        root.handlers, root.propagate = handlers, propagate
        root.setLevel(level)
        if bars:
            library.enable_progress_bar()
