"""Tokenizers that end every text with EOS, and those that know more tokens than their model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.bias.grid.minimal import minimal_probe
from lm_audit.audits.needle.haystack.token_offsets import Encoder
from lm_audit.errors import DataError, UsageError
from lm_audit.models import load_model
from lm_audit.models.generation.shared_prefix import complete
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.text.text_ids import prompt_ids
from lm_audit.models.toy.tiny import text_rows
from tests.models.pretrained import pretrained_tokenizer

BOS, EOS = 1, 2


def framed(tokenizer: Any, single: str) -> Any:
    """A copy of a tokenizer that puts BOS and EOS where ``single`` says."""
    from copy import deepcopy

    from tokenizers import processors

    copy = deepcopy(tokenizer)
    marks = [(copy.convert_ids_to_tokens(BOS), BOS), (copy.convert_ids_to_tokens(EOS), EOS)]
    pieces = single.replace("BOS", marks[0][0]).replace("EOS", marks[1][0])
    copy.backend_tokenizer.post_processor = processors.TemplateProcessing(single=pieces, special_tokens=marks)
    return copy


@pytest.fixture(scope="module")
def plain(llama_folder: Path) -> LanguageModel:
    return load_model(llama_folder, device="cpu")


@pytest.fixture
def ending(plain: LanguageModel) -> LanguageModel:
    """The same model with a tokenizer that appends EOS."""
    return LanguageModel(plain.module, framed(plain.tokenizer, "BOS $A EOS"), name="ending")


@pytest.mark.parametrize(("single", "head"), [("BOS $A EOS", [BOS]), ("$A EOS", []), ("BOS $A", [BOS]), ("$A", [])])
def test_a_prompt_ends_with_its_text(plain: LanguageModel, single: str, head: list[int]) -> None:
    tokenizer = framed(plain.tokenizer, single)
    bare = list(tokenizer("Hello", add_special_tokens=False).input_ids)

    assert prompt_ids(tokenizer, "Hello") == head + bare
    assert Encoder(tokenizer).encode("Hello", special=True).ids.tolist() == head + bare
    assert prompt_ids(tokenizer, "<s>Hello").count(BOS) <= 1
    assert text_rows(tokenizer, ["Hello"]) == [[*head, *bare, EOS]]


def test_generation_and_probes_do_not_end_in_eos(plain: LanguageModel, ending: LanguageModel) -> None:
    beginning = LanguageModel(plain.module, framed(plain.tokenizer, "BOS $A"), name="beginning")

    assert ending.generate(["Hello"], max_new_tokens=8) == beginning.generate(["Hello"], max_new_tokens=8)
    one, other = (minimal_probe(model, groups=["nurse", "doctor"]) for model in (ending, beginning))
    assert one.rows == other.rows


def test_ids_outside_the_embedding(plain: LanguageModel) -> None:
    """A prompt, a target or a request of a token that the model has no embedding of is refused by its number."""
    with pytest.raises(UsageError, match="prompt 1 holds token id 259; the embeddings of model small-llama end at 258"):
        plain.generate([[3, 4], [5, 259]], max_new_tokens=2)
    with pytest.raises(UsageError, match="target 0 holds token id 300"):
        complete(plain, [[3, 4]], [[300]], max_new_tokens=2)
    with pytest.raises(DataError, match="token id 259"):
        plain.loglikelihood([([3], [259])])

    pretrained_tokenizer(plain.tokenizer).add_tokens(["<more>"])
    with pytest.raises(UsageError, match="prompt 0 holds token id 259"):
        plain.generate(["a <more>"], max_new_tokens=2)
