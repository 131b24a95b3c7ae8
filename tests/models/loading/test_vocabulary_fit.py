"""A tokenizer with more tokens than the model has embeddings: another model's, or one that was extended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import ModelError
from lm_audit.models import load_model
from lm_audit.models.checks.vocabulary_fit import check_vocabulary
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.small_models import save_small_llama


@pytest.mark.parametrize("vocabulary", [200, 258])
def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path, vocabulary: int) -> None:
    folder = save_small_llama(tmp_path / "small", vocabulary=vocabulary)
    with pytest.raises(ModelError, match=rf"{259 - vocabulary} tokens beyond its {vocabulary} embeddings"):
        load_model(folder)


def test_embeddings_may_be_padded_and_a_padding_token_may_have_none(tmp_path: Path) -> None:
    assert len(load_model(save_small_llama(tmp_path / "padded", vocabulary=320)).tokenizer) == 259
    folder = save_small_llama(tmp_path / "extended")
    extended: Any = byte_tokenizer(64)
    extended.add_special_tokens({"pad_token": "[PAD]"})
    extended.save_pretrained(folder)
    model = load_model(folder)
    assert len(model.tokenizer) == 260
    with pytest.raises(Exception, match="259 is not in the vocabulary"):
        model.loglikelihood([("a", "[PAD]")])


@pytest.mark.parametrize("token", ["bos_token", "eos_token"])
def test_what_frames_every_text_must_have_an_embedding(token: str) -> None:
    tokenizer: Any = byte_tokenizer(64)
    tokenizer.add_special_tokens({token: "<|frame|>"})
    with pytest.raises(ModelError, match=r"1 tokens beyond its 259 embeddings.*frame"):
        check_vocabulary(tokenizer, 259, "named")
