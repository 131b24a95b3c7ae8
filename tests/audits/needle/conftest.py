from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lm_audit.models.text.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def smollm2_tokenizer() -> Tokenizer:
    """The embedded model's tokenizer, without its weights."""
    from lm_audit.models import load_tokenizer

    return load_tokenizer("smollm2")
