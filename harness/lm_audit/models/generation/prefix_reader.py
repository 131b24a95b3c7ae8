"""Reads prompts that begin alike one after another, keeping in the cache what the next one shares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.compat import is_stateful, key_layers
from lm_audit.models.context import attention_reach, changes_at_every_step, context_window, uniform_length
from lm_audit.models.generation.stepping import Stepping
from lm_audit.models.generation.stopping import Continuation, Room, end_ids
from lm_audit.models.scoring.results import TokenScores
from lm_audit.models.text.thinking import split_reply
from lm_audit.models.text.thought_markers import ThoughtMarkers

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


_CHUNK = 1024
"""Tokens read at once behind a cache: their mask has a column for every token before them."""


class Reader:
    """One prompt in the cache at a time; ``tokens_read`` counts what went through the model."""

    def __init__(self, model: LanguageModel):
        self._model = model
        self._module: CausalModule = model.module
        self._accepts = frozenset(inspect.signature(self._module.forward).parameters)
        self._cache_name = "cache" if "cache" in self._accepts else "past_key_values"
        self._cache: Any = None
        self._ids: list[int] = []
        self._ends = end_ids(model)
        self._turn = uniform_length(self._module.config)
        self._reach = min((n for n in (attention_reach(self._module.config), self._turn) if n), default=None)
        self._cached = model.stepping is not Stepping.WHOLE
        self.tokens_read = 0

    def read(self, ids: Sequence[int]) -> torch.Tensor:
        """Logits [vocabulary] of what follows the prompt; of its ids only those not yet in the cache are read."""
        shared = 0
        if self._may_crop(len(ids)):
            limit = min(len(ids) - 1, len(self._ids))  # the last token is read anew: its logits are asked for
            while shared < limit and ids[shared] == self._ids[shared]:
                shared += 1
        self._crop(shared)
        return self._extend(ids[shared:], keep=1)[-1]

    def score(self, logits: torch.Tensor, target: Sequence[int]) -> TokenScores:
        """The target's tokens in place of the answer; the cache is as before afterwards."""
        length = len(self._ids)
        rows = [logits[None]]
        if self._turns(length + len(target) - 1):  # all positions are rotated as in the longer text
            rows = [self._whole([*self._ids, *target[:-1]], len(target))]
        elif len(target) > 1:
            rows.append(self._aside(target[:-1]))
        return target_scores(torch.cat(rows)[: len(target)], target)

    def begin(self, max_new_tokens: int, thinking_tokens: int | None, opened: ThoughtMarkers | None) -> Continuation:
        """The empty continuation of the prompt that was read last."""
        context = context_window(self._module.config)
        left = None if context is None else context - len(self._ids) + 1
        room = Room(max_new_tokens, thought=thinking_tokens, context=left)
        return Continuation(self._model.tokenizer, self._ends, (), room, opened=opened)

    def decode(
        self, logits: torch.Tensor, row: Continuation, enough: Callable[[str], bool] | None
    ) -> tuple[str, tuple[int, ...], Literal["eos", "length", "enough"]]:
        """Greedy continuation; text, ids and why it ended."""
        length, reason = len(self._ids), None
        while not row.finished:
            forced = row.forced()
            token = int(logits.argmax()) if forced is None else forced
            row.add(token)
            if enough and not (row.finished or row.thinking) and self._answered(row, enough):
                reason = "enough"
                break
            if not row.finished:
                logits = self._extend([token], keep=1)[-1]
        self._crop(min(length, len(self._ids)) if self._may_crop(len(self._ids)) else 0)
        return outcome(row, reason == "enough")

    @staticmethod
    def _answered(row: Continuation, enough: Callable[[str], bool]) -> bool:
        answer = split_reply(row.text_of(row.ids), opened=row.opened).answer
        return answer is not None and enough(answer)

    def _aside(self, ids: Sequence[int]) -> torch.Tensor:
        """Logits behind each of these ids, which leave the cache again."""
        before = list(self._ids)
        if self._may_crop(len(before) + len(ids)):
            table = self._extend(ids, keep=len(ids))
            self._crop(len(before))
            return table
        self._crop(0)
        table = self._extend([*before, *ids], keep=len(ids))
        self._crop(0)
        self._extend(before, keep=1)
        return table

    def _may_crop(self, length: int) -> bool:
        """Whether all layers keep every key and value, and read positions alike whatever the length."""
        if self._cache is None or is_stateful(self._module):
            return False
        plain = bool(key_layers(self._cache, windows=False))  # others keep states that cannot be cropped
        return plain and (self._reach is None or length < self._reach)

    def _crop(self, length: int) -> None:
        if length == 0:
            self._cache, self._ids = None, []
        elif length < len(self._ids):
            self._cache.crop(length - len(self._ids))
            del self._ids[length:]

    def _extend(self, ids: Sequence[int], *, keep: int) -> torch.Tensor:
        """Reads ids behind the cache; logits (float32) behind the last ``keep`` of them."""
        if self._ids and self._turns(len(self._ids) + len(ids)):
            ids = [*self._ids, *ids]  # the keys in the cache are rotated as in a shorter text
            self._crop(0)
        step = _CHUNK if self._cache is not None and self._may_crop(len(self._ids)) else len(ids)
        tables = []
        for begin in range(0, len(ids), step):
            part = ids[begin : begin + step]
            wanted = min(len(part), max(0, keep - (len(ids) - begin - len(part))))
            tables.append(self._forward(part, max(1, wanted))[-wanted:] if wanted else self._forward(part, 1)[:0])
        return torch.cat(tables)

    def _forward(self, ids: Sequence[int], keep: int) -> torch.Tensor:
        arguments: dict[str, Any] = {self._cache_name: self._cache, "use_cache": True}
        if not self._cached:
            return self._without_cache(ids, keep)
        if "logits_to_keep" in self._accepts:
            arguments["logits_to_keep"] = keep
        if self._model.stepping is Stepping.EQUAL and "position_ids" in self._accepts:
            # A cache of states (MiniMax's) does not know how many tokens it has seen.
            places = torch.arange(len(self._ids), len(self._ids) + len(ids), device=self._model.device)
            arguments["position_ids"] = places[None]
        try:
            output = self._module(input_ids=torch.tensor([list(ids)], device=self._model.device), **arguments)
        except torch.OutOfMemoryError as error:
            total = len(self._ids) + len(ids)
            raise ModelError(f"model {self._model.name}: no memory for a prompt of {total} tokens") from error
        self._cache = getattr(output, self._cache_name, None)
        self._ids.extend(ids)
        self.tokens_read += len(ids)
        return self._checked(output.logits[0, -keep:].float())

    def _turns(self, length: int) -> bool:
        """Whether a text of that length is rotated otherwise than what is in the cache."""
        if self._turn is None or length <= self._turn:
            return False
        return changes_at_every_step(self._module.config) or len(self._ids) <= self._turn

    def _whole(self, ids: Sequence[int], keep: int) -> torch.Tensor:
        """Logits behind the last ``keep`` of a whole text, beside the cache."""
        self.tokens_read += len(ids)
        output = self._module(input_ids=torch.tensor([list(ids)], device=self._model.device), use_cache=False)
        return self._checked(output.logits[0, -keep:].float())

    def _without_cache(self, ids: Sequence[int], keep: int) -> torch.Tensor:
        self._ids.extend(ids)
        self.tokens_read += len(self._ids)
        output = self._module(input_ids=torch.tensor([self._ids], device=self._model.device), use_cache=False)
        return self._checked(output.logits[0, -keep:].float())

    def _checked(self, logits: torch.Tensor) -> torch.Tensor:
        if torch.isnan(logits).any():
            raise ModelError(f"model {self._model.name} answered a prompt of {len(self._ids)} tokens with NaN")
        return logits


def outcome(row: Continuation, enough: bool) -> tuple[str, tuple[int, ...], Literal["eos", "length", "enough"]]:
    if enough:
        return row.text_of(row.ids), tuple(row.ids), "enough"
    text, ids, finish = row.result()
    return text, ids, "eos" if finish == "eos" else "length"


def target_scores(table: torch.Tensor, target: Sequence[int]) -> TokenScores:
    """Scores of a target's tokens by the logits [tokens, vocabulary] in the answer's place."""
    table = table.cpu().double()
    chosen = table.gather(1, torch.tensor(list(target), dtype=torch.long)[:, None])
    logprobs = (chosen[:, 0] - table.logsumexp(dim=-1)).numpy()
    ranks = (table > chosen).sum(dim=-1).numpy().astype(np.int64)
    return TokenScores(np.array(target, dtype=np.int64), logprobs, ranks, not ranks.any(), False)
