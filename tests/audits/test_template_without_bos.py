"""A chat template that writes no BOS, for a tokenizer that puts one before every text: what it renders is scored as it
stands, as it is continued (ChatML over Llama 2's tokenizer, for one).
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lm_audit.audits.bias import Axis, PreferenceSet, WordPair, measure_grid
from lm_audit.audits.leakage import Item, chat_opening, probe
from lm_audit.models import LanguageModel
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from lm_audit.models.text.text_ids import added
from tests.models.small_models import small_llama

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    tokenizer: Any = byte_tokenizer(512)
    tokenizer.chat_template = TEMPLATE
    assert added(tokenizer) == ((1,), ())
    return LanguageModel(small_llama(context=512, initializer_range=0.5), tokenizer, name="under-test")


def plain(model: LanguageModel, prefix: str, target: str) -> float:
    """The log-likelihood of ``target`` behind ``prefix`` and nothing else."""
    head, ids = (list(model.tokenizer(text, add_special_tokens=False).input_ids) for text in (prefix, prefix + target))
    with torch.no_grad():
        table = model.module(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double().log_softmax(-1)
    return sum(float(table[place - 1, ids[place]]) for place in range(len(head), len(ids)))


def test_words_of_the_grid(model: LanguageModel) -> None:
    grid = PreferenceSet(
        language="en",
        separator=" ",
        terminator="",
        templates=("The {group} is",),
        axes=(Axis.of("gender", ["man", "woman"]),),
        neutral="person",
        pairs=(WordPair("kind", "cruel"),),
    )
    opening = model.render_chat("Complete the sentence.", answering=True)

    found = measure_grid(model, grid, mode="chat")

    wanted = [
        [plain(model, f"{opening}The {who} is", f" {word}") for word in ("kind", "cruel")] for who in found.groups
    ]
    assert opening.startswith("user: ")
    assert found.logprobs[0, :, 0].tolist() == pytest.approx([pytest.approx(pair, abs=1e-4) for pair in wanted])


def test_halves_of_options(model: LanguageModel) -> None:
    item = Item("q", "lamps", "Which lamp is lit?", ("the green one", "the yellow one"))

    rows = probe(model, [item], cut="word", opening=chat_opening(model.tokenizer)).to_dict("records")

    for row in rows:
        assert row["suffix_logprob"] == pytest.approx(plain(model, row["prefix"], row["suffix"]), abs=1e-4)
