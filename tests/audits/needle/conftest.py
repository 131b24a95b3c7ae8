from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def smollm2_tokenizer() -> Any:
    """The embedded model's tokenizer, without its weights."""
    from lm_audit.models import load_tokenizer

    return load_tokenizer("smollm2")
