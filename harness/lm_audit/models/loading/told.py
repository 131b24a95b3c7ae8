"""What is told while a model loads: kept for the record of its cases, and told all the same."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hearing() -> Iterator[list[str]]:
    """The warnings on a model while the block runs; those that a library has for its programmers are not among them."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            yield told
        finally:
            told.extend(dict.fromkeys(str(one.message) for one in heard if one.category is UserWarning))
    for one in heard:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno, source=one.source)
