"""Runs packs through the model and writes every score to its place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from numpy.typing import NDArray

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.context import attention_reach
from lm_audit.models.kernels import attending as kernel_attention
from lm_audit.models.scoring.body import Body, Carry, Fault
from lm_audit.models.scoring.head import Head
from lm_audit.models.scoring.limits import TRIED_WINDOW, Limits, is_out_of_memory
from lm_audit.models.scoring.normalise import Scores, score_rows
from lm_audit.models.scoring.packs.layout import Layout, lay_out
from lm_audit.models.scoring.packs.packing import Pack, batches, one_row_packs, plan
from lm_audit.models.scoring.packs.tree import Rows
from lm_audit.models.scoring.plain import forward_logits
from lm_audit.models.scoring.requests import Encoded
from lm_audit.models.scoring.top import top_tokens

Floats = NDArray[np.float64]


class Way(Enum):
    """How sequences go through the model, fastest first; each needs less of the model than the one before."""

    TREE_BY_KERNEL = "packed prefix trees in long passes, by a kernel that passes over what a token does not see"
    TREE_AND_CACHE = "packed prefix trees, long shared prefixes from a cache"
    TREE = "packed prefix trees"
    PADDED = "sequences sorted by length, padded on the right"
    ALONE = "one sequence at a time"


class NonFinite(Exception):
    """The model answered with NaN or Inf for one of these distinct requests (or for one computed beside them)."""

    def __init__(self, requests: list[int]):
        super().__init__(requests)
        self.requests = requests


@dataclass(frozen=True, slots=True)
class Output:
    """Scores of all target tokens of all distinct requests, one after the other.

    ``moments`` are mean and std of log p; ``top_id``, ``top_lead`` and ``top_margin`` are as in ``TokenScores``, set
    at each request's first place.
    """

    logprob: Floats
    rank: NDArray[np.int64]
    moments: Floats | None
    top_id: NDArray[np.int64] | None = None
    top_lead: Floats | None = None
    top_margin: Floats | None = None

    @classmethod
    def empty(cls, size: int, stats: bool, top: bool = False) -> Output:
        """Room for ``size`` scores."""
        moments = np.full((size, 2), np.nan) if stats else None
        best = (np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size)) if top else (None, None, None)
        return cls(np.full(size, np.nan), np.zeros(size, dtype=np.int64), moments, *best)


@dataclass(frozen=True, slots=True)
class Job:
    """What one call computes: distinct requests, where each one's scores go, and whom to tell (requests, tokens).

    With ``token_set`` (ids) each score is the log-probability of that set instead of the target token's. ``penalty`` is
    the repetition penalty under which the output's most likely tokens are found.
    """

    encoded: Sequence[Encoded]
    offsets: Sequence[int]
    output: Output
    report: Callable[[list[int], int], None]
    token_set: NDArray[np.int64] | None = None
    penalty: float = 1.0

    def context(self, place: int) -> NDArray[np.int64]:
        """All token ids before the target token whose score goes to ``place``."""
        r = bisect_right(self.offsets, place, hi=len(self.encoded)) - 1
        return self.encoded[r].ids[: self.encoded[r].first_scored + place - self.offsets[r]]


class Runner:
    """One model's body and head, and the limits that its device has shown so far."""

    def __init__(self, module: CausalModule, device: torch.device, limits: Limits, name: str):
        self.module = module
        self.reach = attention_reach(module.config)
        self.name = name
        self.limits = limits
        self._device = device
        self._body = Body(module)
        self._head = Head(self._body.causal, self._body.model)

    @property
    def has_kernels(self) -> bool:
        """Whether this device has kernels for attention to trees."""
        return kernel_attention.kernels(self._device) is not None

    @contextmanager
    def faulty(self, fault: Fault) -> Iterator[None]:
        """Reads trees wrongly for as long as the context lasts."""
        self._body.fault = fault
        try:
            yield
        finally:
            self._body.fault = None

    @torch.inference_mode()
    def run(self, rows: Rows, job: Job, way: Way) -> None:
        """Computes every row; when memory runs out, what is left is tried again with half as much at once."""
        while rows.ids:
            done: set[int] = set()
            failed = self._try(rows, job, way, done)
            if failed is None:
                return
            self._halve(rows, failed, job)
            rows = rows.subset([i for i in range(len(rows.ids)) if i not in done])

    def _try(self, rows: Rows, job: Job, way: Way, done: set[int]) -> Pack | None:
        """Goes through the rows as far as memory allows; the pack that did not fit, or None."""
        carry: Carry | None = None
        for batch in batches(self._plan(rows, way), self._tokens(way)):
            try:
                carry = self._pass(rows, batch, carry if batch[0].past else None, job, way)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                return batch[0]
            done.update(i for pack in batch for i in range(pack.first, pack.last))
        return None

    def _plan(self, rows: Rows, way: Way) -> list[Pack]:
        if way is Way.TREE_BY_KERNEL:
            return plan(rows, self.limits.long(), self._span)
        if way is Way.TREE_AND_CACHE:
            return plan(rows, self.limits, self._span)
        return plan(rows, self.limits.uncached(), self._span) if way is Way.TREE else one_row_packs(rows)

    @property
    def _span(self) -> int | None:
        """What bounds a pack of a model whose window the self-check did not try."""
        return self.reach if self.reach is not None and self.reach > TRIED_WINDOW else None

    def _tokens(self, way: Way) -> int:
        return 1 if way is Way.ALONE else self.limits.tokens

    def _halve(self, rows: Rows, failed: Pack, job: Job) -> None:
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        smaller = self.limits.halved()
        if smaller is None:
            tokens = len(rows.ids[failed.first])
            raise ModelError(
                f"{self.name}: out of memory on {self._device} with a single sequence of {tokens} tokens; "
                "shorten the requests, or load the model in a smaller dtype or on a larger device"
            )
        self.limits = smaller

    def _pass(self, rows: Rows, batch: list[Pack], carry: Carry | None, job: Job, way: Way) -> Carry | None:
        layouts = [lay_out(rows, pack, job.encoded, job.offsets) for pack in batch]
        if way is Way.ALONE:
            self._alone(layouts[0], job)
        else:
            carry = self._together(layouts, carry, job, way)
        job.report([r for layout in layouts for r in layout.requests], sum(len(x.ids) for x in layouts))
        return carry

    def _together(self, layouts: list[Layout], carry: Carry | None, job: Job, way: Way) -> Carry | None:
        hidden, handed_on = self._body.run(
            layouts, carry, positions=way is not Way.PADDED, by_kernel=way is Way.TREE_BY_KERNEL
        )
        keys, pairs = _needed([(len(h), x) for h, x in zip(hidden, layouts, strict=True)])
        table = hidden[0] if len(hidden) == 1 else torch.cat(hidden)
        requests = [r for layout in layouts for r in layout.requests]
        for begin in range(0, len(keys), self.limits.head_rows):
            chunk = keys[begin : begin + self.limits.head_rows]
            states = table[torch.from_numpy(chunk).to(table.device)]
            logits = self._head.logits(states, self._body.output_type)
            self._write(logits, pairs.between(begin, begin + len(chunk)), job, requests)
        return handed_on

    def _alone(self, layout: Layout, job: Job) -> None:
        keys, pairs = _needed([(len(layout.ids), layout)])
        logits = forward_logits(self.module, layout.ids)[torch.from_numpy(keys).to(self._device)]
        self._write(logits, pairs, job, layout.requests)

    def _write(self, logits: torch.Tensor, pairs: Pairs, job: Job, requests: list[int]) -> None:
        stats = job.output.moments is not None
        scores = score_rows(logits, pairs.row, pairs.target, stats=stats, token_set=job.token_set)
        _store(scores, pairs, job.output)
        self._write_top(logits, pairs, job)
        if not np.isfinite(job.output.logprob[pairs.out]).all():
            raise NonFinite(requests)

    def _write_top(self, logits: torch.Tensor, pairs: Pairs, job: Job) -> None:
        out = job.output
        if out.top_id is None or out.top_lead is None or out.top_margin is None:
            return
        first = np.isin(pairs.out, job.offsets)
        places = pairs.out[first]
        contexts = [job.context(place) for place in places.tolist()]
        best = top_tokens(logits, pairs.row[first], contexts, job.penalty)
        out.top_id[places], out.top_lead[places], out.top_margin[places] = best


@dataclass(frozen=True, slots=True)
class Pairs:
    """(row of logits, target token, place of the score) for each scored token; ``row`` ascends."""

    row: NDArray[np.int64]
    target: NDArray[np.int64]
    out: NDArray[np.int64]

    def between(self, begin: int, end: int) -> Pairs:
        """The pairs of the rows ``begin`` to ``end``, rows counted from ``begin``."""
        low, high = np.searchsorted(self.row, [begin, end])
        return Pairs(self.row[low:high] - begin, self.target[low:high], self.out[low:high])


def _needed(parts: Sequence[tuple[int, Layout]]) -> tuple[NDArray[np.int64], Pairs]:
    """Which of the concatenated hidden states predict a scored token, ascending, and the pairs over them."""
    begins = np.cumsum([0, *(size for size, _ in parts[:-1])])
    keys = np.concatenate([layout.cell_key + b for b, (_, layout) in zip(begins, parts, strict=True)])
    target = np.concatenate([layout.cell_target for _, layout in parts])
    out = np.concatenate([layout.cell_out for _, layout in parts])
    order = np.argsort(keys, kind="stable")
    unique, row = np.unique(keys[order], return_inverse=True)
    return unique, Pairs(row.reshape(-1), target[order], out[order])


def _store(scores: Scores, pairs: Pairs, output: Output) -> None:
    output.logprob[pairs.out] = scores.logprob
    output.rank[pairs.out] = scores.rank
    if output.moments is not None and scores.moments is not None:
        output.moments[pairs.out] = scores.moments[pairs.row]
