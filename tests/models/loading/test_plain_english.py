"""A model that predicts plain English worse than chance is told; toys, and models that do better, are not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lm_audit.models.checks.plain_english import TEXT, tell_nonsense

WORDS = {word: number for number, word in enumerate(dict.fromkeys(TEXT.split()), 10)}
IDS = [WORDS[word] for word in TEXT.split()]


class Words:
    """Reads a text by its words, those that it does not know as ``unknown``."""

    bos_token_id = None

    def __init__(self, known: Callable[[str], bool] = lambda _: True, unknown: int | None = 1):
        self.unk_token_id, self._known = unknown, known

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": [WORDS[word] if self._known(word) else 1 for word in text.split()]}


class Scores(torch.nn.Module):
    """Gives every next token of the text a logit of ``right`` and all others 0."""

    def __init__(self, rows: int, right: float, kind: str = "llama"):
        super().__init__()
        self.table = torch.nn.Embedding(rows, 2)
        self.config, self._right = SimpleNamespace(model_type=kind), right

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return self.table

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def forward(self, input_ids: torch.Tensor, use_cache: bool = True) -> Any:
        logits = torch.zeros(*input_ids.shape, self.table.num_embeddings)
        logits[0, :-1].scatter_(1, input_ids[0, 1:, None], self._right)
        return SimpleNamespace(logits=logits)


def told(rows: int, right: float, tokenizer: Any = None) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model: Any = Scores(rows, right)
        reader: Any = tokenizer or Words()
        tell_nonsense(model, reader, "somebody/model")
    return [str(one.message) for one in heard]


def test_a_model_that_is_surely_wrong_is_told() -> None:
    (message,) = told(32_000, -9.0)
    assert message.startswith(
        "model somebody/model predicts plain English worse than chance (19.4 nats a token, 10.4 by"
    )
    assert "over its 32,000 tokens): is it the make that its config names (llama)?" in message


@pytest.mark.parametrize(
    ("rows", "right", "tokenizer"),
    [
        (32_000, 8.0, None),  # a language model
        (32_000, 0.0, None),  # weights that say nothing
        (32_000, -0.8, None),  # weights before training
        (7_000, -9.0, None),  # a toy
        (32_000, float("nan"), None),
        (32_000, -9.0, Words(lambda word: word != "bridge")),  # words that it cannot read
    ],
)
def test_others_are_not(rows: int, right: float, tokenizer: Any) -> None:
    assert told(rows, right, tokenizer) == []


def test_a_tokenizer_of_letters_is_not_of_english_words() -> None:
    class Letters(Words):
        def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
            return {"input_ids": [ord(letter) for letter in text]}

    assert told(32_000, -9.0, Letters()) == []
