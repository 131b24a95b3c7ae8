"""Answering long prompts that begin alike: each distinct prefix is read once, and one pass serves answer and score.

Prompts are visited in the order of their ids, so that each one shares as much as possible with the one before it. The
cache of keys and values is cropped to what they share and read on from there; nothing is copied, and at any moment one
prompt's cache is held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from lm_audit.errors import ContextError, UsageError, beyond_context
from lm_audit.models.context import context_window
from lm_audit.models.generation.continuation import columns
from lm_audit.models.generation.in_slots.slot_decoding import decode_in_slots
from lm_audit.models.generation.in_slots.table import NotANumber, Work
from lm_audit.models.generation.kept import KeptReplies
from lm_audit.models.generation.prefix_reader import Reader, outcome, target_scores
from lm_audit.models.generation.sampling import Picker
from lm_audit.models.generation.stopping import Continuation, Room, end_ids
from lm_audit.models.scoring.results import TokenScores
from lm_audit.models.text.text_ids import check_ids, tell_unknown
from lm_audit.models.text.thinking import split_reply
from lm_audit.models.text.thought_markers import ThoughtMarkers

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

Enough = Callable[[int, str], bool]


@dataclass(frozen=True)
class Completion:
    """What a model answers to a prompt, and how likely it found a target in the answer's place.

    ``finish_reason``: "eos", "length", or "enough" where the caller had seen enough. ``scores`` are the target's,
    ``None`` where none was given. ``thought_cut``: a thought was closed at its limit.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: Literal["eos", "length", "enough"]
    scores: TokenScores | None
    thought_cut: bool = False


def complete(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    enough: Enough | None = None,
    opened: Sequence[ThoughtMarkers | None] | None = None,
    thinking_tokens: int | None = None,
) -> list[Completion]:
    """The greedy continuation of each prompt (token ids) and the log-probability of its target in its place.

    ``enough(index, answer so far)`` may end a continuation early. ``opened`` are the markers of the thought that each
    prompt has opened, ``thinking_tokens`` room for a thought, as for ``generate``. Equal to ``model.generate`` and
    ``model.loglikelihood`` prompt by prompt (float32: 1e-4). Raises ``UsageError`` for a prompt that is empty or does
    not fit the context with its target and continuation, ``ModelError`` for NaN.
    """
    _check(model, prompts, targets, max_new_tokens)
    tell_unknown(model, prompts)
    settings = ("complete", max_new_tokens, enough is None, thinking_tokens)
    kept = KeptReplies(settings, list(zip(prompts, opened or [None] * len(prompts), strict=True)), targets)
    done = {index: _put_back(reply, targets[index]) for index, reply in kept.known.items()}
    left = _in_slots(model, prompts, targets, max_new_tokens, enough, opened, thinking_tokens, done, kept)
    tokens = sum(len(prompts[index]) + len(one.token_ids) for index, one in done.items())
    reader = Reader(model) if left else None
    for index in sorted(left, key=lambda number: list(prompts[number])):
        assert reader is not None
        with torch.inference_mode():
            logits = reader.read(prompts[index])
            scores = reader.score(logits, targets[index]) if len(targets[index]) else None
            stop = (lambda text, number=index: enough(number, text)) if enough else None
            row = reader.begin(max_new_tokens, thinking_tokens, opened[index] if opened else None)
            done[index] = Completion(*reader.decode(logits, row, stop), scores, row.thought_cut)
        kept.keep(index, _plain(done[index]))
        tokens += len(prompts[index]) + len(done[index].token_ids)
        if model.on_progress is not None:
            model.on_progress(len(done), len(prompts), tokens)
    return [done[index] for index in range(len(prompts))]


def _in_slots(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    max_new_tokens: int,
    enough: Enough | None,
    opened: Sequence[ThoughtMarkers | None] | None,
    thinking_tokens: int | None,
    done: dict[int, Completion],
    kept: KeptReplies,
) -> list[int]:
    """Fills ``done`` with what the model completes in slots; the indices of the other prompts."""
    ends, context = end_ids(model), context_window(model.module.config)
    scores: dict[int, TokenScores] = {}
    seen_enough: set[int] = set()
    tokens = 0

    def begin(index: int) -> Continuation:
        left = None if context is None else context - len(prompts[index]) + 1
        room = Room(max_new_tokens, thought=thinking_tokens, context=left)
        return Continuation(model.tokenizer, ends, (), room, opened=opened[index] if opened else None)

    def is_enough(index: int, row: Continuation) -> bool:
        if enough is not None and not (row.finished or row.thinking):
            answer = split_reply(row.text_of(row.ids), opened=row.opened).answer
            if answer is not None and enough(index, answer):
                seen_enough.add(index)
        return index in seen_enough

    def score(index: int, table: torch.Tensor) -> None:
        if torch.isnan(table).any():
            raise NotANumber(index)
        scores[index] = target_scores(table, targets[index])

    def finish(index: int, row: Continuation) -> None:
        nonlocal tokens
        done[index] = Completion(*outcome(row, index in seen_enough), scores.get(index), row.thought_cut)
        kept.keep(index, _plain(done[index]))
        tokens += len(prompts[index]) + len(done[index].token_ids)
        if model.on_progress is not None:
            model.on_progress(len(done), len(prompts), tokens)

    picker = Picker(prompts, temperature=0.0, seed=0)
    new = max_new_tokens + (thinking_tokens or 0)
    needs = [
        max(columns(context, len(prompt), new, thinking_tokens), len(prompt) + len(target))
        for prompt, target in zip(prompts, targets, strict=True)
    ]
    work = Work(prompts, begin, picker, finish, is_enough if enough else None, targets, score)
    return decode_in_slots(model, work, needs, leave_out=done)


def _plain(one: Completion) -> list[Any]:
    """A completion as plain JSON; :func:`_put_back` reads it."""
    scores = None if one.scores is None else [one.scores.logprobs.tolist(), one.scores.ranks.tolist()]
    return [one.text, one.token_ids, one.finish_reason, scores, one.thought_cut]


def _put_back(reply: list[Any], target: Sequence[int]) -> Completion:
    text, token_ids, reason, scored, cut = reply
    scores = None
    if scored is not None:
        logprobs, ranks = np.array(scored[0], dtype=np.float64), np.array(scored[1], dtype=np.int64)
        scores = TokenScores(np.array(target, dtype=np.int64), logprobs, ranks, not ranks.any(), False)
    return Completion(text, tuple(token_ids), reason, scores, cut)


def _check(
    model: LanguageModel, prompts: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], max_new_tokens: int
) -> None:
    if len(prompts) != len(targets):
        raise UsageError(f"{len(prompts)} prompts but {len(targets)} targets; expected one target a prompt")
    context = context_window(model.module.config)
    vocabulary = int(model.module.get_input_embeddings().num_embeddings)
    for index, (prompt, target) in enumerate(zip(prompts, targets, strict=True)):
        if not len(prompt):
            raise UsageError(f"prompt {index} has no token; expected at least one")
        for part, what in ((prompt, "prompt"), (target, "target")):
            check_ids(part, vocabulary, f"{what} {index}", model.name)
        needed = len(prompt) + max(len(target), max_new_tokens) - 1
        if context is not None and needed > context:
            what = f"prompt {index} with its answer"
            raise ContextError(beyond_context(what, needed, model.name, context, "shorten it or lower max_new_tokens"))
