"""Continuing prompts: decoding in preallocated slots, and by a plain loop what has no such cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

import torch

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.context import context_window, uniform_length
from lm_audit.models.generation.decoding import StepModel
from lm_audit.models.generation.in_slots.slot_decoding import decode_in_slots
from lm_audit.models.generation.in_slots.table import Work
from lm_audit.models.generation.kept import KeptReplies
from lm_audit.models.generation.sampling import Picker
from lm_audit.models.generation.stepping import Stepping
from lm_audit.models.generation.stopping import Continuation, Room, end_ids
from lm_audit.models.text.chat import template_source
from lm_audit.models.text.prompts import EncodedPrompt, Prompt, encode_prompts
from lm_audit.models.text.thinking import Reply, may_think, split_reply
from lm_audit.models.text.thought_markers import ThoughtMarkers

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

FinishReason = Literal["eos", "stop", "length"]
Begin = Callable[[int], Continuation]
"""The empty continuation of a prompt, by its index."""

_BATCH_TOKENS = 16_384
"""Cached positions a batch of the plain loop may hold: rows times (longest prompt + new tokens)."""
_CLOSING_TOKENS = 64
"""Tokens that opening and closing a thought may take beyond the room that it has."""


@dataclass(frozen=True)
class Generation:
    """One continuation.

    ``text`` is what the model wrote, its thought included; ``thought`` and ``answer`` are the parts of it.
    ``token_ids`` are the generated ids, without the EOS that ended them; after a stop string they run through the token
    that completed it, while ``text`` ends before it. ``finish_reason``: "eos", "stop" or "length". ``opened``: the
    markers of the thought that the prompt had opened. ``thought_cut``: the thought was closed at its limit; the marker
    that closed it is part of text and ids. ``reasoning`` is a thought that came apart from the text,
    ``prompt_tokens`` how many tokens a server counted in the prompt.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    opened: ThoughtMarkers | None = None
    thought_cut: bool = False
    reasoning: str | None = None
    prompt_tokens: int | None = None

    @cached_property
    def _reply(self) -> Reply:
        cut = self.finish_reason == "length"
        return split_reply(self.text, opened=self.opened, reasoning=self.reasoning, cut=cut)

    @property
    def thought(self) -> str | None:
        """What the model wrote for itself, ``None`` where it wrote no thought."""
        return self._reply.thought

    @property
    def answer(self) -> str | None:
        """What follows the thought (the whole text where there is none); ``None`` where the answer never came."""
        return self._reply.answer


def generate(
    model: LanguageModel,
    prompts: Sequence[Prompt],
    *,
    max_new_tokens: int,
    stop: Sequence[str] = (),
    temperature: float = 0.0,
    seed: int = 0,
    chat: bool = False,
    thinking_tokens: int | None = None,
) -> list[Generation]:
    """One continuation a prompt, in their order: greedy at temperature 0, else from softmax(logits / temperature).

    A prompt is text (the tokenizer adds its BOS, never twice), token ids (taken as they are) or, with ``chat``, text
    that becomes a user's turn or a list of messages, through the chat template with the generation prompt. A sampled
    continuation depends on ``seed``, its own prompt and how often that prompt occurred before in the list, not on the
    rest of the batch. Generation ends at the model's EOS, at a stop string, after ``max_new_tokens`` or where the
    context is full.

    ``thinking_tokens`` (with ``chat``, those of the model's ``chat_settings`` unless given here) is room for a thought
    beyond ``max_new_tokens``: a thought of so many tokens is closed by its marker and the answer follows; stop strings
    then end the answer alone. At 0 a thought is closed as soon as it opens. With ``None`` thought and answer share
    ``max_new_tokens``. Raises ``UsageError`` for arguments or a prompt that does not fit the context (its index is
    named), ``ModelError`` where the model answers with NaN or its chat template fails.
    """
    _check(max_new_tokens, stop, temperature)
    if chat and thinking_tokens is None:
        thinking_tokens = model.chat_settings.thinking_tokens
    if thinking_tokens is not None and thinking_tokens < 0:
        raise UsageError(f"thinking_tokens is {thinking_tokens}; expected 0 or more")
    encoded = encode_prompts(model, prompts, chat=chat)
    ids = [prompt.ids for prompt in encoded]
    picker = Picker(ids, temperature=temperature, seed=seed)
    context = context_window(model.module.config)
    begin = partial(_begin, model, encoded, max_new_tokens, thinking_tokens, tuple(stop), end_ids(model), context)
    longest = max_new_tokens + (_room_to_think(model, encoded, thinking_tokens) if thinking_tokens else 0)
    settings = ("generate", max_new_tokens, tuple(stop), temperature, seed, chat, thinking_tokens)
    kept = KeptReplies(settings, [(prompt.ids, prompt.opened) for prompt in encoded])
    done: dict[int, Generation] = {
        index: Generation(text, tuple(tokens), reason, encoded[index].opened, cut)
        for index, (text, tokens, reason, cut) in kept.known.items()
    }

    def keep(index: int) -> None:
        one = done[index]
        kept.keep(index, [one.text, one.token_ids, one.finish_reason, one.thought_cut])

    def finish(index: int, row: Continuation) -> None:
        done[index] = _generation(row)
        keep(index)
        _report(model, done, ids)

    needs = [columns(context, len(one), longest, thinking_tokens) for one in ids]
    left = decode_in_slots(model, Work(ids, begin, picker, finish), needs, leave_out=done)
    for batch in _batches(model, ids, left, longest):
        found = _decode_batch(model, ids, batch, begin, picker)
        done |= found
        for index in found:
            keep(index)
        _report(model, done, ids)
    return [done[index] for index in range(len(encoded))]


def _begin(
    model: LanguageModel,
    encoded: Sequence[EncodedPrompt],
    max_new_tokens: int,
    thinking_tokens: int | None,
    stop: tuple[str, ...],
    ends: frozenset[int],
    context: int | None,
    index: int,
) -> Continuation:
    prompt = encoded[index]
    # The last token is never read, so it may stand one past the context.
    left = None if context is None else context - len(prompt.ids) + 1
    room = Room(max_new_tokens, thought=thinking_tokens, context=left)
    return Continuation(model.tokenizer, ends, stop, room, opened=prompt.opened)


def _room_to_think(model: LanguageModel, encoded: Sequence[EncodedPrompt], thinking_tokens: int) -> int:
    """Cached positions to plan for: none for a model that knows no thought."""
    opened = any(prompt.opened for prompt in encoded)
    return thinking_tokens if opened or may_think(model.tokenizer, template_source(model.tokenizer)) else 0


def _check(max_new_tokens: int, stop: Sequence[str], temperature: float) -> None:
    if max_new_tokens < 0:
        raise UsageError(f"max_new_tokens is {max_new_tokens}; expected 0 or more")
    if isinstance(stop, str) or any(not isinstance(text, str) or not text for text in stop):
        raise UsageError(f"stop is {stop!r}; expected a sequence of strings, none of them empty")
    if not 0 <= temperature < float("inf"):
        raise UsageError(f"temperature is {temperature}; expected 0 (greedy) or a positive number")


def columns(context: int | None, prompt: int, new: int, thinking_tokens: int | None) -> int:
    """Tokens that a prompt of so many may come to: a thought that is closed from outside takes some more."""
    most = prompt + new + (_CLOSING_TOKENS if thinking_tokens is not None else 0)
    return most if context is None else min(most, max(context, prompt))


def _generation(row: Continuation) -> Generation:
    return Generation(*row.result(), row.opened, row.thought_cut)


def _batches(
    model: LanguageModel, encoded: Sequence[Sequence[int]], indices: Sequence[int], max_new_tokens: int
) -> Iterator[list[int]]:
    """Prompts of like length together, longest first, so that memory runs out at the start if at all.

    Of equal length alone where the model cannot pass padding over; one by one where a row may grow beyond the length
    at which its rotation changes.
    """
    if not indices:
        return
    turn, padded = uniform_length(model.module.config), model.stepping is Stepping.PADDED
    batch: list[int] = []
    for index in sorted(indices, key=lambda i: -len(encoded[i])):
        longest = len(encoded[batch[0]]) if batch else 0
        full = (len(batch) + 1) * (longest + max_new_tokens) > _BATCH_TOKENS
        unequal = not padded and len(encoded[index]) != longest
        if batch and (full or unequal or (turn is not None and longest + max_new_tokens > turn)):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _decode_batch(
    model: LanguageModel,
    encoded: Sequence[Sequence[int]],
    batch: Sequence[int],
    begin: Begin,
    picker: Picker,
) -> Mapping[int, Generation]:
    try:
        return _decode(model, encoded, batch, begin, picker)
    except torch.OutOfMemoryError as error:
        if len(batch) == 1:
            raise ModelError(f"model {model.name}: no memory for prompt {batch[0]} alone") from error
    torch.cuda.empty_cache()
    half = len(batch) // 2
    first = _decode_batch(model, encoded, batch[:half], begin, picker)
    return {**first, **_decode_batch(model, encoded, batch[half:], begin, picker)}


@torch.inference_mode()
def _decode(
    model: LanguageModel, encoded: Sequence[Sequence[int]], batch: Sequence[int], begin: Begin, picker: Picker
) -> dict[int, Generation]:
    rows = {index: begin(index) for index in batch}
    prompts = [encoded[index] for index in batch]
    steps = StepModel(model.module, model.device, prompts, cached=model.stepping is not Stepping.WHOLE)
    alive = [index for index in batch if not rows[index].finished]
    while alive:
        logits = steps.next_logits()
        _check_finite(model, logits, alive)
        chosen = picker.pick(logits, alive, [len(rows[index].ids) for index in alive])
        for place, index in enumerate(alive):
            forced = rows[index].forced()
            chosen[place] = chosen[place] if forced is None else forced
            rows[index].add(chosen[place])
        kept = [place for place, index in enumerate(alive) if not rows[index].finished]
        alive = [alive[place] for place in kept]
        if alive:
            steps.feed([chosen[place] for place in kept], kept)
    return {index: _generation(row) for index, row in rows.items()}


def _check_finite(model: LanguageModel, logits: torch.Tensor, indices: Sequence[int]) -> None:
    bad = torch.isnan(logits).any(dim=-1).nonzero().flatten().tolist()
    if bad:
        raise ModelError(f"model {model.name} answered prompt {indices[bad[0]]} with NaN")


def _report(model: LanguageModel, done: Mapping[int, Generation], encoded: Sequence[Sequence[int]]) -> None:
    if model.on_progress is not None:
        tokens = sum(len(encoded[index]) + len(one.token_ids) for index, one in done.items())
        model.on_progress(len(done), len(encoded), tokens)
