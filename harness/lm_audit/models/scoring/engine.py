"""The engine behind ``LanguageModel.loglikelihood``: from requests to scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lm_audit.errors import DataError, ModelError, UsageError
from lm_audit.models.checks.proofs import Proofs
from lm_audit.models.checks.vocabulary_fit import predicted_tokens
from lm_audit.models.context import attention_reach, context_window, uniform_length
from lm_audit.models.kernels.packed_weights import packed
from lm_audit.models.loading.evaluating import evaluating
from lm_audit.models.scoring.boundary import TextSplitter
from lm_audit.models.scoring.kept import KeptScores
from lm_audit.models.scoring.limits import device_limits
from lm_audit.models.scoring.packs.tree import Rows, distinct_requests, sorted_rows
from lm_audit.models.scoring.requests import Bos, Encoded, Request, RequestEncoder, check_sizes, with_any_token
from lm_audit.models.scoring.results import TokenScores
from lm_audit.models.scoring.runner import Job, NonFinite, Output, Runner, Way
from lm_audit.models.scoring.selfcheck import Unusable, fastest_way
from lm_audit.models.text.text_ids import tell_unknown

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


class ScoringEngine:
    """Scores requests with one model, each distinct prefix once, the fastest way that is exact for the model."""

    def __init__(self, model: LanguageModel):
        self._model = model
        self._encoder = RequestEncoder(model.tokenizer)
        limits = device_limits(model.module, model.device).within(model.batch_tokens)
        self._runner = Runner(model.module, model.device, limits, model.name)
        self._way: Way | None = None

    @property
    def splitter(self) -> TextSplitter:
        """Splits texts into tokens by the rules by which requests are."""
        return self._encoder.splitter

    def score(
        self, requests: Sequence[Request], *, bos: Bos, stats: bool, top_penalty: float | None = None
    ) -> list[TokenScores]:
        """One ``TokenScores`` for each request, in order; with a penalty also the most likely first token under it."""
        encoded = self._encode(requests, bos)
        inverse, offsets, output = self._compute(encoded, stats, None, top_penalty)
        return _assemble(encoded, inverse, offsets, output)

    def log_mass(self, requests: Sequence[Request], token_ids: NDArray[np.int64], *, bos: Bos) -> NDArray[np.float64]:
        """For each request, log of the probability that one of ``token_ids`` follows its target; float64, nats."""
        if not len(token_ids):
            raise UsageError("token_ids is empty; it names the tokens whose probability is asked for")
        if token_ids.min() < 0 or token_ids.max() >= self._vocabulary:
            wrong = next(int(one) for one in token_ids if not 0 <= one < self._vocabulary)
            raise UsageError(
                f"token_ids holds {wrong}, which is not in the vocabulary of {self._model.name} (0 to"
                f" {self._vocabulary - 1})"
            )
        encoded = [with_any_token(item) for item in self._encode(requests, bos)]
        empty = [index for index, item in enumerate(encoded) if not item.inputs]
        if empty:
            raise DataError("is empty, and without a BOS nothing says what follows", field=f"request {empty[0]}")
        inverse, offsets, output = self._compute(encoded, False, np.unique(token_ids))
        return output.logprob[np.array([offsets[r] for r in inverse], dtype=np.int64)]

    def _encode(self, requests: Sequence[Request], bos: Bos) -> list[Encoded]:
        encoded = self._encoder.encode(requests, bos)
        tell_unknown(self._model, (item.ids for item in encoded))
        return encoded

    def _compute(
        self,
        encoded: Sequence[Encoded],
        stats: bool,
        token_set: NDArray[np.int64] | None,
        top_penalty: float | None = None,
    ) -> tuple[list[int], list[int], Output]:
        """For each request its place among the distinct ones, where each of those begins in the output, the output."""
        window = context_window(self._model.module.config)
        check_sizes(encoded, window=window, vocabulary=self._vocabulary, name=self._model.name)
        firsts, inverse = distinct_requests(encoded)
        distinct = [encoded[i] for i in firsts]
        offsets: list[int] = np.cumsum([0, *(len(item.ids) - item.first_scored for item in distinct)]).tolist()
        output = Output.empty(offsets[-1], stats, top=top_penalty is not None)
        progress = _Progress(self._model, distinct, inverse)
        kept = KeptScores(distinct, offsets, output, token_set, top_penalty)
        progress(kept.known, 0)
        todo = kept.unknown

        def report(requests: list[int], tokens: int) -> None:
            done = [todo[r] for r in requests]
            kept.keep(done)
            progress(done, tokens)

        job = Job(
            [distinct[r] for r in todo],
            [offsets[r] for r in todo],
            output,
            report,
            token_set,
            1.0 if top_penalty is None else top_penalty,
        )
        with evaluating(self._model.module):
            self._run(job, [firsts[r] for r in todo])
        return inverse, offsets, output

    @property
    def _vocabulary(self) -> int:
        return predicted_tokens(self._model.module)

    def _run(self, job: Job, firsts: Sequence[int]) -> None:
        rows = sorted_rows(job.encoded)
        if not rows.ids:
            return
        parts = list(self._parts(rows))  # found by the model's own products
        tokens = sum(length - shared for length, shared in zip(rows.lengths, rows.lcp, strict=True))
        try:
            with packed(self._model.module, tokens, self._model.packed_weights):
                for part, way in parts:
                    self._runner.run(part, job, way)
        except NonFinite as error:
            raise self._blame(sorted(error.requests), job, firsts) from None

    def _parts(self, rows: Rows) -> Iterator[tuple[Rows, Way]]:
        """Rows with the way they go: what is longer than the model's attention reaches goes a plainer way."""
        config, best = self._model.module.config, self._checked_way()
        reach, rotation = attention_reach(config), uniform_length(config)
        ways = {way: list[int]() for way in Way}
        for i, length in enumerate(rows.lengths):
            if rotation is not None and length > rotation:
                ways[Way.ALONE].append(i)
            elif reach is not None and length > reach and best is not Way.ALONE:
                ways[Way.PADDED].append(i)
            else:
                ways[best].append(i)
        for way, keep in ways.items():
            if keep:
                part = rows if len(keep) == len(rows.ids) else rows.subset(keep)
                # A text that begins a longer one may be rotated otherwise by itself.
                whole = way in (Way.TREE_BY_KERNEL, Way.TREE_AND_CACHE, Way.TREE) or (
                    way is Way.ALONE and rotation is not None
                )
                yield (part if whole else part.without_prefixes()), way

    def _checked_way(self) -> Way:
        """The fastest exact way, found on first use; one sequence at a time while the model answers NaN."""
        if self._way is None:
            proofs = Proofs(self._model)
            known = proofs.get("scoring")
            runs = known != Way.TREE_BY_KERNEL.name or self._runner.has_kernels
            if isinstance(known, str) and known in Way.__members__ and runs:
                self._way = Way[known]
                return self._way
            try:
                self._way = fastest_way(self._runner, self._vocabulary)
            except Unusable:
                return Way.ALONE
            proofs.put("scoring", self._way.name)
        return self._way

    def _blame(self, suspects: Sequence[int], job: Job, firsts: Sequence[int]) -> ModelError:
        """Names the first request that gives NaN or Inf by itself; in a shared pass one can spoil its neighbours."""
        name = self._model.name
        for r in suspects:
            alone = replace(job, report=lambda requests, tokens: None)
            item = job.encoded[r]
            try:
                self._runner.run(Rows([item.ids[:-1]], [0], [[r]]), alone, Way.ALONE)
            except NonFinite:
                return ModelError(
                    f"{name} returned NaN or Inf for request {firsts[r]} ({len(item.ids)} tokens, dtype "
                    f"{self._model.dtype}); a log-probability must be finite: check the weights, or load it in float32"
                )
        return ModelError(
            f"{name} returned NaN or Inf for request {firsts[suspects[0]]} when it was computed with others, "
            f"though not by itself (dtype {self._model.dtype}); load it in float32"
        )


class _Progress:
    """Counts requests of the call and tokens that were read, and tells the model's ``on_progress``."""

    def __init__(self, model: LanguageModel, distinct: Sequence[Encoded], inverse: Sequence[int]):
        self._tell = model.on_progress
        self._times = np.bincount(inverse, minlength=len(distinct)) if len(inverse) else np.zeros(0, dtype=np.int64)
        self._total, self._tokens = len(inverse), 0
        self._done = sum(int(n) for n, item in zip(self._times, distinct, strict=True) if not item.inputs)

    def __call__(self, requests: list[int], tokens: int) -> None:
        self._done += int(self._times[requests].sum())
        self._tokens += tokens
        if self._tell is not None:
            self._tell(self._done, self._total, self._tokens)


def _assemble(
    encoded: Sequence[Encoded], inverse: Sequence[int], offsets: Sequence[int], output: Output
) -> list[TokenScores]:
    # Requests that are alike share their arrays.
    output.logprob.setflags(write=False)
    output.rank.setflags(write=False)
    return [_scores(item, slice(offsets[r], offsets[r + 1]), output) for item, r in zip(encoded, inverse, strict=True)]


def _scores(item: Encoded, place: slice, output: Output) -> TokenScores:
    rank = output.rank[place]
    if output.moments is None:
        stats = (None, None, None)
    else:
        mean, std = output.moments[place].T
        stats = (-mean, mean, std)
    targets = item.ids[item.first_scored :]
    best: tuple[int | None, float | None, float | None] = (None, None, None)
    if output.top_id is not None and output.top_lead is not None and output.top_margin is not None and len(rank):
        at = place.start
        best = (int(output.top_id[at]), float(output.top_lead[at]), float(output.top_margin[at]))
    return TokenScores(targets, output.logprob[place], rank, not rank.any(), item.merged, *stats, *best)
