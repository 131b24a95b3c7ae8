"""Log-probabilities of a prompt's own tokens, taken from an answer only where they are the prompt's, one for one."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_audit.errors import ModelError, ServerError
from lm_audit.models.endpoint.client.questions import Reply
from lm_audit.models.endpoint.facts import PromptScores

UNKNOWN_RANK = -1


@dataclass(frozen=True)
class ScoredTokens:
    """Of every token but the first: log-probability (nats), rank (-1 where it is only known not to be 0).

    ``top`` are, at each of these places, the likeliest tokens told, best first: (id or text, log-probability).
    """

    logprobs: tuple[float, ...]
    ranks: tuple[int, ...]
    top: tuple[tuple[tuple[int | str, float], ...], ...]


def request_of(way: PromptScores, told: int = 1) -> dict[str, Any]:
    """What a request holds that asks for the log-probabilities of its prompt, and of ``told`` tokens at each place."""
    ask: dict[str, Any] = {"max_tokens": 1, "temperature": 0}
    return ask | ({"prompt_logprobs": told} if way == "prompt_logprobs" else {"echo": True, "logprobs": told})


def scored_tokens(
    reply: Reply, way: PromptScores, *, who: str, text: str | None = None, ids: Sequence[int] | None = None
) -> ScoredTokens:
    """The scores of the prompt ``text`` or ``ids``; ``ModelError`` where what came back is not its tokens."""
    if way == "prompt_logprobs":
        return _by_id(reply, who, text, ids)
    return _by_echo(reply, who, text, ids)


def _by_id(reply: Reply, who: str, text: str | None, ids: Sequence[int] | None) -> ScoredTokens:
    """vLLM: for every place a mapping from token id to log-probability, rank and text; the prompt's own comes first."""
    entries = reply.choice.get("prompt_logprobs")
    if not isinstance(entries, list) or not entries:
        raise ModelError(f"{who}: none come back")
    expected = len(ids) if ids is not None else reply.prompt_tokens
    if expected is not None and len(entries) != expected:
        raise ModelError(f"{who}: {len(entries)} prompt log-probabilities for a prompt of {expected} tokens")
    own, ranks, tops, said = [], [], [], []
    for place, entry in enumerate(entries[1:], start=1):
        if not isinstance(entry, Mapping) or not entry:
            raise ModelError(f"{who}: no log-probability for token {place} of the prompt")
        key = next(iter(entry)) if ids is None else str(ids[place])
        if key not in entry:
            raise ModelError(f"{who}: token {place} of the prompt is {key}, the answer scores {', '.join(entry)}")
        one = entry[key]
        if not isinstance(one, Mapping):
            raise ModelError(f"{who}: token {place} of the prompt has {one!r:.60} for a log-probability")
        own.append(one.get("logprob"))
        rank = one.get("rank")
        ranks.append(rank - 1 if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 1 else UNKNOWN_RANK)
        said.append(str(one.get("decoded_token", "")))
        for number, record in entry.items():
            if not _is_id(number) or not isinstance(record, Mapping):
                raise ModelError(f"{who}: {number!r:.40} at token {place} of the prompt is no token's id and score")
        pairs = [(int(number), record.get("logprob")) for number, record in entry.items()]
        values = check_finite([value for _, value in pairs], who)
        _check_together(values, who, place)
        tops.append(tuple(sorted(zip((n for n, _ in pairs), values, strict=True), key=lambda pair: -pair[1])))
    if ids is None and text is not None and not text.endswith("".join(said)):
        raise ModelError(f"{who}: the tokens that came back, {''.join(said)!r:.60}, are not those of the prompt")
    return ScoredTokens(tuple(check_finite(own, who)), tuple(ranks), tuple(tops))


def _is_id(key: object) -> bool:
    return isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 12


def _by_echo(reply: Reply, who: str, text: str | None, ids: Sequence[int] | None) -> ScoredTokens:
    """OpenAI's older completions: the prompt's tokens and their log-probabilities stand before the generated one."""
    logprobs = reply.choice.get("logprobs")
    tokens = logprobs.get("tokens") if isinstance(logprobs, Mapping) else None
    values = logprobs.get("token_logprobs") if isinstance(logprobs, Mapping) else None
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        raise ModelError(f"{who}: echoes no token of the prompt")
    count = len(ids) if ids is not None else reply.prompt_tokens
    if count is None:
        count = len(tokens) - (reply.answer_tokens or 1)
    if not count <= len(tokens) <= count + 1:
        raise ModelError(f"{who}: echoes {len(tokens)} tokens for a prompt of {count} and at most one more")
    joined = "".join(map(str, tokens[:count]))
    if text is not None and text not in (joined, "".join(map(str, tokens[1:count]))):  # a BOS may stand before it
        raise ModelError(f"{who}: the echoed tokens, {joined!r:.60}, are not those of the prompt {text!r:.60}")
    assert isinstance(logprobs, Mapping)
    found = logprobs.get("top_logprobs")
    best = found if isinstance(found, list) and len(found) == len(tokens) else [None] * len(tokens)
    tops = tuple(_ordered(one, who) for one in best[1:count])
    own = check_finite(values[1:count], who)
    for place, (value, top) in enumerate(zip(own, tops, strict=True), start=1):
        told = [one for _, one in top]
        # Half a character may be spelt in two ways, so that the prompt's own token is known by its number.
        _check_together(told if any(abs(one - value) < 1e-6 for one in told) else [*told, value], who, place)
    ranks = tuple(
        0 if top and value >= top[0][1] - 1e-9 else UNKNOWN_RANK for value, top in zip(own, tops, strict=True)
    )
    return ScoredTokens(tuple(own), ranks, tops)


def _ordered(top: object, who: str) -> tuple[tuple[int | str, float], ...]:
    if not isinstance(top, Mapping):
        return ()
    values = check_finite(list(top.values()), who)
    return tuple(sorted(zip(map(str, top), values, strict=True), key=lambda pair: -pair[1]))


_MOST_TOGETHER = 1.1
"""What probabilities of a few tokens at one place may add up to: 1, and what rounding to two digits adds."""


def _check_together(values: Sequence[float], who: str, place: int) -> None:
    """Logarithms of another base than e, or scores of another kind, show in probabilities that exceed 1 together."""
    total = math.fsum(math.exp(value) for value in values)
    if total > _MOST_TOGETHER:
        raise ServerError(
            f"{who}: the probabilities of {len(values)} tokens at place {place} add up to {total:.3g}, so the"
            " numbers are no natural logarithms of probabilities"
        )


TOLD_ENOUGH = 5
"""So many tokens of a place show the base of the logarithms; fewer leave room for the rest whatever it is."""
_NEARLY_ALL, _PLACES = 0.7, 3


def check_base(top: Sequence[Sequence[tuple[object, float]]], who: str) -> None:
    """``ServerError`` where logarithms are of base 2 by all that they say of whole places.

    Powers of 2 of natural logarithms are too large, p^0.69 each, and exceed 1 together wherever a few tokens have most
    of the probability. Those of logarithms of base 2 are the probabilities, and never do.
    """
    places = [math.fsum(2.0**value for _, value in one) for one in top if len(one) >= TOLD_ENOUGH]
    full = [total for total in places if total >= _NEARLY_ALL]
    if len(full) >= _PLACES and max(full) <= 1.001:
        raise ServerError(
            f"{who}: the likeliest tokens of {len(full)} places add up to {min(full):.3g} to {max(full):.3g} as powers "
            "of 2 and never to more than 1, as natural logarithms would: these are logarithms of base 2"
        )


def check_finite(values: Sequence[object], who: str) -> list[float]:
    """Log-probabilities as numbers; ``ServerError`` for one that is absent, NaN, infinite or above 0."""
    found = []
    for place, value in enumerate(values):
        # An integer may be too long for a float; NaN compares as false.
        if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-6:
            raise ServerError(
                f"{who}: the log-probability of token {place} is {value!r:.60}, not a number of at most 0"
            )
        if value < -sys.float_info.max:
            raise ServerError(f"{who}: the log-probability of token {place} is -Infinity, which no softmax gives")
        found.append(min(0.0, float(value)))
    return found
