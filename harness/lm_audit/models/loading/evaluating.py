"""Dropout off while a model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Dropout off, and on again afterwards where it was on."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
