"""Keeping transformers' bars and notices out of a test run's output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No progress bars and only errors while the block runs; the user's own settings come back afterwards."""
    from transformers.utils import logging as untyped

    logging: Any = untyped
    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
