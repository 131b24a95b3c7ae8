"""A tokenizer with more tokens than the model has embeddings: another model's, or one that was extended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import ModelError
from lm_audit.models import load_model
from lm_audit.models.checks.vocabulary_fit import check_vocabulary
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.pretrained import as_causal
from tests.models.small_models import save_small_llama, small_llama


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


@pytest.mark.parametrize("narrow", ["head", "stated"])
def test_a_model_that_predicts_fewer_tokens_than_it_has_embeddings(narrow: str) -> None:
    """Moshi's head has no row for what begins a text, Inkling cuts the padding off: both ended in an IndexError."""
    import torch

    module: Any = small_llama(vocabulary=272)
    if narrow == "head":
        module.lm_head = torch.nn.Linear(16, 265, bias=False)
    else:
        module.config.unpadded_vocab_size = 265
        module.lm_head.register_forward_hook(lambda _, __, logits: logits[..., :265])
    model = LanguageModel(as_causal(module), byte_tokenizer(64), name="narrow")

    scores = model.loglikelihood([([7, 8], [9, 264])], bos="none")[0].logprobs

    with torch.no_grad():
        table = module(input_ids=torch.tensor([[7, 8, 9]])).logits[0].double().log_softmax(-1)
    assert scores == pytest.approx([float(table[1, 9]), float(table[2, 264])], abs=1e-5)
    with pytest.raises(Exception, match=r"265 is not in the vocabulary of narrow \(0 to 264\)"):
        model.loglikelihood([([7, 8], [265])], bos="none")
