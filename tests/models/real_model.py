"""The embedded real model, which takes seconds to read: once for all tests of a process, which leave it as it is."""

from __future__ import annotations

from functools import cache

from lm_audit.models import LanguageModel, load_model


@cache
def real_model() -> LanguageModel:
    """SmolLM2-135M-Instruct in float32 on the CPU."""
    return load_model("smollm2", device="cpu", dtype="float32")
