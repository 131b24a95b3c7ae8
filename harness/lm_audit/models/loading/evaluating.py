"""Dropout off while a model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lm_audit.models.causal_module import CausalModule


@contextmanager
def evaluating(module: CausalModule) -> Iterator[None]:
    """Dropout off, and on again afterwards where it was on."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
