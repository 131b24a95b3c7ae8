"""A language model that finds needles by construction: what the way from prompt ids to scores must report of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from lm_audit.audits.needle.samples.lookup import lookup
from lm_audit.models.text.byte_tokenizer import BOS, EOS, VOCABULARY, byte_tokenizer

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

CONTEXT = 8192
SURE = 0.9
"""Probability of the next byte of the answer; the rest is spread evenly over the other tokens."""


class LookupModule(torch.nn.Module):
    """Reads its ids as bytes, looks the key that is asked for up in them, and says the value's next byte.

    ``seen`` is the part of the prompt, around its middle, in which needles are seen: 1.0 is all of it. It reads whole
    rows and keeps no cache, as a module without ``past_key_values`` does.
    """

    def __init__(self, seen: float = 1.0):
        super().__init__()
        from transformers import LlamaConfig

        self.seen = seen
        self.config = LlamaConfig(
            vocab_size=VOCABULARY, max_position_embeddings=CONTEXT, eos_token_id=EOS, bos_token_id=BOS
        )
        self.generation_config = None
        self.embedding = torch.nn.Embedding(VOCABULARY, 1)
        self._tokenizer = byte_tokenizer(CONTEXT)

    @property
    def dtype(self) -> torch.dtype:
        """That of its only weights."""
        return self.embedding.weight.dtype

    def get_input_embeddings(self) -> torch.nn.Module:
        """Where the device of a model is read from."""
        return self.embedding

    def forward(self, input_ids: torch.Tensor, *, use_cache: bool = False) -> Any:
        """Logits [1, length, vocabulary] of one row; a cache, which every model may be asked for, it never returns."""
        from types import SimpleNamespace

        ids = input_ids[0].tolist()
        logits = torch.full((1, len(ids), VOCABULARY), math.log((1 - SURE) / (VOCABULARY - 1)))
        start = self._answer_start(ids)
        for place in range(max(0, start - 1), len(ids)):
            logits[0, place, self._next(ids[: place + 1], start)] = math.log(SURE)
        return SimpleNamespace(logits=logits)

    def _answer_start(self, ids: list[int]) -> int:
        """Where the prompt ends: behind the last start of an answer."""
        text = self._tokenizer.decode(ids, skip_special_tokens=True)
        at = max(text.rfind(" is"), text.rfind(" are"))
        end = len(text[:at].encode()) + len(text[at:].split(" ")[1].encode()) + 1
        return end + sum(token < 3 for token in ids)

    def _next(self, ids: list[int], start: int) -> int:
        prompt = self._tokenizer.decode(ids[:start], skip_special_tokens=True)
        half = len(prompt) * self.seen / 2
        visible = prompt[max(0, int(len(prompt) / 2 - half)) : int(len(prompt) / 2 + half)] if self.seen < 1 else prompt
        answer = " " + ", ".join(lookup(prompt, visible)) + "."
        wanted = self._tokenizer(answer, add_special_tokens=False).input_ids
        said = len(ids) - start
        return int(wanted[said]) if said < len(wanted) else EOS


def planted_model(seen: float = 1.0) -> LanguageModel:
    """The module as the model that audits are given."""
    from lm_audit.models import LanguageModel

    module: Any = LookupModule(seen).eval()  # it has what reading a prompt asks of a module, and no more
    return LanguageModel(module, byte_tokenizer(CONTEXT), name="planted", fingerprint=f"planted {seen:g}")
