"""Continuing prompts: batched decoding with cached keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.decoding import StepModel
from lm_audit.models.prompts import Prompt, encode_prompts
from lm_audit.models.sampling import Picker
from lm_audit.models.stopping import Continuation, end_ids

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

FinishReason = Literal["eos", "stop", "length"]

_BATCH_TOKENS = 16_384
"""Cached positions a batch may hold: rows times (longest prompt + new tokens)."""


@dataclass(frozen=True)
class Generation:
    """One continuation.

    ``token_ids`` are the generated ids, without the EOS that ended them; after a stop string they run through the token
    that completed it, while ``text`` ends before it. ``finish_reason``: "eos", "stop" or "length".
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason


def generate(
    model: LanguageModel,
    prompts: Sequence[Prompt],
    *,
    max_new_tokens: int,
    stop: Sequence[str] = (),
    temperature: float = 0.0,
    seed: int = 0,
    chat: bool = False,
) -> list[Generation]:
    """One continuation a prompt, in their order: greedy at temperature 0, else from softmax(logits / temperature).

    A prompt is text (the tokenizer adds its BOS, never twice), token ids (taken as they are) or, with ``chat``, text
    that becomes a user's turn or a list of messages, through the chat template with the generation prompt. A sampled
    continuation depends on ``seed``, its own prompt and how often that prompt occurred before in the list, not on the
    rest of the batch. Generation ends at the model's EOS, at a stop string, after ``max_new_tokens`` or where the
    context is full. Raises ``UsageError`` for arguments or a prompt that does not fit the context (its index is named),
    ``ModelError`` where the model answers with NaN.
    """
    _check(max_new_tokens, stop, temperature)
    encoded = encode_prompts(model, prompts, chat=chat)
    picker = Picker(encoded, temperature=temperature, seed=seed)
    done: dict[int, Generation] = {}
    for batch in _batches(encoded, max_new_tokens):
        done |= _decode_batch(model, encoded, batch, max_new_tokens, tuple(stop), picker)
        _report(model, done, encoded)
    return [done[index] for index in range(len(encoded))]


def _check(max_new_tokens: int, stop: Sequence[str], temperature: float) -> None:
    if max_new_tokens < 0:
        raise UsageError(f"max_new_tokens is {max_new_tokens}; expected 0 or more")
    if isinstance(stop, str) or any(not isinstance(text, str) or not text for text in stop):
        raise UsageError(f"stop is {stop!r}; expected a sequence of strings, none of them empty")
    if not 0 <= temperature < float("inf"):
        raise UsageError(f"temperature is {temperature}; expected 0 (greedy) or a positive number")


def _batches(encoded: Sequence[Sequence[int]], max_new_tokens: int) -> Iterator[list[int]]:
    """Prompts of like length together, longest first, so that memory runs out at the start if at all."""
    batch: list[int] = []
    for index in sorted(range(len(encoded)), key=lambda i: -len(encoded[i])):
        longest = len(encoded[batch[0]]) if batch else 0
        if batch and (len(batch) + 1) * (longest + max_new_tokens) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _decode_batch(
    model: LanguageModel,
    encoded: Sequence[Sequence[int]],
    batch: Sequence[int],
    max_new_tokens: int,
    stop: tuple[str, ...],
    picker: Picker,
) -> Mapping[int, Generation]:
    try:
        return _decode(model, encoded, batch, max_new_tokens, stop, picker)
    except torch.OutOfMemoryError as error:
        if len(batch) == 1:
            raise ModelError(f"model {model.name}: no memory for prompt {batch[0]} alone") from error
    torch.cuda.empty_cache()
    half = len(batch) // 2
    first = _decode_batch(model, encoded, batch[:half], max_new_tokens, stop, picker)
    return {**first, **_decode_batch(model, encoded, batch[half:], max_new_tokens, stop, picker)}


@torch.inference_mode()
def _decode(
    model: LanguageModel,
    encoded: Sequence[Sequence[int]],
    batch: Sequence[int],
    max_new_tokens: int,
    stop: tuple[str, ...],
    picker: Picker,
) -> dict[int, Generation]:
    ends, context = end_ids(model), getattr(model.module.config, "max_position_embeddings", None)
    rows = {
        index: Continuation(model.tokenizer, ends, stop, _room(len(encoded[index]), max_new_tokens, context))
        for index in batch
    }
    steps = StepModel(model, [encoded[index] for index in batch])
    alive = [index for index in batch if not rows[index].finished]
    while alive:
        logits = steps.next_logits()
        _check_finite(model, logits, alive)
        chosen = picker.pick(logits, alive, [len(rows[index].ids) for index in alive])
        for index, token in zip(alive, chosen, strict=True):
            rows[index].add(token)
        kept = [place for place, index in enumerate(alive) if not rows[index].finished]
        alive = [alive[place] for place in kept]
        if alive:
            steps.feed([chosen[place] for place in kept], kept)
    return {index: Generation(*row.result()) for index, row in rows.items()}


def _room(length: int, max_new_tokens: int, context: int | None) -> int:
    """New tokens that fit: the last one is never read, so it may stand one past the context."""
    return max_new_tokens if context is None else min(max_new_tokens, context - length + 1)


def _check_finite(model: LanguageModel, logits: torch.Tensor, indices: Sequence[int]) -> None:
    bad = torch.isnan(logits).any(dim=-1).nonzero().flatten().tolist()
    if bad:
        raise ModelError(f"model {model.name} answered prompt {indices[bad[0]]} with NaN")


def _report(model: LanguageModel, done: Mapping[int, Generation], encoded: Sequence[Sequence[int]]) -> None:
    progress: Any = model.on_progress
    if progress is not None:
        tokens = sum(len(encoded[index]) + len(one.token_ids) for index, one in done.items())
        progress(len(done), len(encoded), tokens)
