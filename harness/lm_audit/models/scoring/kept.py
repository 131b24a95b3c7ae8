"""Scores that are kept as they are computed (:mod:`lm_audit.shared.answers`), put back where a killed call goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.models.scoring.requests import Encoded
from lm_audit.models.scoring.runner import Output
from lm_audit.shared.answers import next_call


class KeptScores:
    """The distinct requests of one call: ``known`` ones have their scores in ``output`` already, ``unknown`` not."""

    def __init__(
        self,
        distinct: Sequence[Encoded],
        offsets: Sequence[int],
        output: Output,
        token_set: NDArray[np.int64] | None,
        top_penalty: float | None,
    ):
        self._distinct, self._offsets, self._output = distinct, offsets, output
        wanted = None if token_set is None else token_set.tobytes()
        self._call = next_call("scores", output.moments is not None, top_penalty, wanted)
        self.known: list[int] = []
        self.unknown: list[int] = []
        for r, item in enumerate(distinct):
            answer = None if self._call is None or not item.inputs else self._call.known(*_request(item))
            if answer is None:
                self.unknown.append(r)
            else:
                self._put_back(r, answer)
                self.known.append(r)

    def keep(self, requests: Iterable[int]) -> None:
        """Write the scores of requests that have just been computed."""
        if self._call is not None:
            self._call.add((_request(self._distinct[r]), self._scores(r)) for r in requests)

    def _scores(self, r: int) -> list[Any]:
        place, out = slice(self._offsets[r], self._offsets[r + 1]), self._output
        moments = None if out.moments is None else out.moments[place].tolist()
        best, at, scored = None, place.start, place.stop > place.start
        if scored and out.top_id is not None and out.top_lead is not None and out.top_margin is not None:
            best = [int(out.top_id[at]), float(out.top_lead[at]), float(out.top_margin[at])]
        return [out.logprob[place].tolist(), out.rank[place].tolist(), moments, best]

    def _put_back(self, r: int, answer: list[Any]) -> None:
        place, out = slice(self._offsets[r], self._offsets[r + 1]), self._output
        out.logprob[place], out.rank[place], moments, best = *answer[:2], *answer[2:]
        if out.moments is not None and moments:
            out.moments[place] = moments
        if best is not None and out.top_id is not None and out.top_lead is not None and out.top_margin is not None:
            at = place.start
            out.top_id[at], out.top_lead[at], out.top_margin[at] = best


def _request(item: Encoded) -> tuple[bytes, ...]:
    return item.ids.tobytes(), str(item.first_scored).encode()
