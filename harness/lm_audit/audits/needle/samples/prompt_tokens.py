"""The ids of a finished prompt and where its needles stand in them: by one tokenisation, or by its seams alone.

A prompt of 128K tokens costs 0.3 to 0.6 s to tokenise. Where a tokenizer reads every word of a haystack alike whatever
stands beside it (:func:`is_additive` proves it for that haystack), the ids between seams are the haystack's own, and
only a window round each seam has to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.haystack.token_offsets import Encoded, Encoder, Integers
from lm_audit.audits.needle.haystack.windows import Piece
from lm_audit.audits.needle.samples.drawing import derived_rng

_WINDOW = 6
"""Units read on either side of a seam: the nearest is taken from there, the outermost is not looked at."""

_CONTEXT_BEGIN, _CONTEXT_END = -1, -2
"""Names, among needles' numbers, of the spans in which the context begins and ends."""

Span = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Measured:
    """Ids of a prompt; ``context`` and ``needles`` are token ranges (first, one past the last)."""

    ids: Integers
    context: Span
    needles: tuple[Span, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def haystack_tokens(self) -> int:
        """Tokens of the context that are no needle's."""
        return self.context[1] - self.context[0] - sum(end - begin for begin, end in self.needles)

    def haystack_before(self, number: int) -> int:
        """Haystack tokens before this needle; other needles do not count."""
        begin = self.needles[number][0]
        return begin - self.context[0] - sum(e - b for b, e in self.needles if b < begin)

    def depth(self, number: int) -> float:
        """Haystack tokens before this needle in percent of all."""
        return 100 * self.haystack_before(number) / self.haystack_tokens if self.haystack_tokens else 0.0


def measure_whole(encoder: Encoder, head: str, pieces: Sequence[Piece], tail: str, *, special: bool) -> Measured:
    """One tokenisation of the whole prompt."""
    context = "".join(piece.text for piece in pieces)
    encoded = encoder.encode(head + context + tail, special=special)
    if encoded.ends is None or encoded.begins is None:
        place: Callable[[int, int], Span] = _PlaceByPrefix(encoder, head + context + tail, special)
    else:
        place = _PlaceByOffset(encoded)
    spans = {number: place(*span) for number, span in _needle_characters(pieces, len(head)).items()}
    return Measured(
        encoded.ids,
        place(len(head), len(head) + len(context)),
        tuple(spans[number] for number in sorted(spans)),
    )


def measure_seams(
    haystack: Haystack, head: str, pieces: Sequence[Piece], tail: str, *, special: bool
) -> Measured | None:
    """The same from windows round the seams; ``None`` where a window contradicts the haystack's own ids."""
    first, last = _special_ids(haystack.encoder) if special else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    if len(last):
        return None
    parts = [Piece(head), *_split_copies(haystack, pieces), Piece(tail)]
    out: list[Integers] = [first]
    spans: dict[int, Span] = {}
    done, at = len(first), 0
    while at < len(parts):
        group = _texts_from(parts, at)
        left = parts[at - 1] if at else None
        right = parts[at + len(group)] if at + len(group) < len(parts) else None
        seam = _read_seam(haystack, left, group, right)
        if seam is None:
            return None
        for number, (begin, end) in seam.spans.items():
            spans[number] = (done + begin, done + end)
        out.append(seam.ids)
        done += len(seam.ids)
        at += len(group)
        if right is not None:
            run = _inner_ids(haystack, right)
            out.append(run)
            done += len(run)
            at += 1
    context = (spans.pop(_CONTEXT_BEGIN)[0], spans.pop(_CONTEXT_END)[1])
    return Measured(np.concatenate(out), context, tuple(spans[number] for number in sorted(spans)))


def is_additive(haystack: Haystack) -> bool:
    """Whether every unit of the haystack has the same ids wherever it stands.

    Each distinct unit is compared in all its places, and once more among other neighbours. Found out once a haystack.
    """
    if haystack.additive is None:
        haystack.additive = _prove(haystack)
    return haystack.additive


def _prove(haystack: Haystack) -> bool:
    if not haystack.encoder.has_offsets or len(haystack) < 4 * _WINDOW:
        return False
    known: dict[str, bytes] = {}
    if not _consistent(haystack, known):
        return False
    pieces = sorted(known)
    derived_rng(0, "additive").shuffle(pieces)
    return _consistent(Haystack(haystack.joiner.join(["x", *pieces]), haystack.encoder, lines=haystack.lines), known)


def _consistent(haystack: Haystack, known: dict[str, bytes]) -> bool:
    """Compares with what is known of each unit (with the gap before it), and adds what is new."""
    ids, starts = haystack.encoded.ids, haystack.token_starts
    for unit in range(1, len(haystack)):
        text = haystack.text[haystack.ends[unit - 1] : haystack.ends[unit]]
        own = ids[starts[unit] : starts[unit + 1]].tobytes()
        if known.setdefault(text.lstrip(" ") if haystack.joiner == " " else text, own) != own or not own:
            return False
    return True


@dataclass(frozen=True)
class _Seam:
    ids: Integers
    spans: dict[int, Span]


def _read_seam(haystack: Haystack, left: Piece | None, group: Sequence[Piece], right: Piece | None) -> _Seam | None:
    before = haystack.slice(left.last - _WINDOW, left.last) if left else ""
    after = haystack.slice(right.first, right.first + _WINDOW) if right else ""
    middle = "".join(piece.text for piece in group)
    encoded = haystack.encoder.encode(before + middle + after)
    assert encoded.ends is not None
    begin, end = 0, len(encoded)
    if left:
        begin = _tokens_until(encoded, before, haystack, left.last - _WINDOW, left.last - 1)
        skip = _tokens_until(encoded, before, haystack, left.last - _WINDOW, left.last - _WINDOW + 1)
        if not np.array_equal(encoded.ids[skip:begin], _ids(haystack, left.last - _WINDOW + 1, left.last - 1)):
            return None
    if right:
        offset = len(before) + len(middle)
        end = _tokens_until(encoded, after, haystack, right.first, right.first + 1, offset)
        stop = _tokens_until(encoded, after, haystack, right.first, right.first + _WINDOW - 1, offset)
        if not np.array_equal(encoded.ids[end:stop], _ids(haystack, right.first + 1, right.first + _WINDOW - 1)):
            return None
    place = _PlaceByOffset(encoded)
    spans = {number: place(*span) for number, span in _needle_characters(group, len(before)).items()}
    if left is None:
        at = len(group[0].text)
        spans[_CONTEXT_BEGIN] = place(at, at + 1)
    if right is None:
        at = len(before) + len(middle) - len(group[-1].text)
        spans[_CONTEXT_END] = place(at - 1, at)
    return _Seam(encoded.ids[begin:end], {number: (a - begin, b - begin) for number, (a, b) in spans.items()})


def _tokens_until(encoded: Encoded, text: str, haystack: Haystack, first: int, last: int, offset: int = 0) -> int:
    """Tokens of a window that end within the units before ``last``; ``text`` is that of the units from ``first``."""
    assert encoded.ends is not None
    return int(np.searchsorted(encoded.ends, offset + len(haystack.slice(first, last)), side="right"))


def _ids(haystack: Haystack, first: int, last: int) -> Integers:
    copy = first // len(haystack) * len(haystack)
    starts = haystack.token_starts
    return haystack.encoded.ids[starts[first - copy] : starts[last - copy]]


def _inner_ids(haystack: Haystack, run: Piece) -> Integers:
    """Ids of a run but for its first and its last unit, which belong to the seams."""
    return _ids(haystack, run.first + 1, run.last - 1)


def _split_copies(haystack: Haystack, pieces: Sequence[Piece]) -> list[Piece]:
    """Runs that cross from one copy of the text to the next, split there; short ones are text."""
    out: list[Piece] = []
    for piece in pieces:
        if not piece.is_run:
            out.append(piece)
            continue
        size, first = len(haystack), piece.first
        while first < piece.last:
            last = min((first // size + 1) * size, piece.last)
            long = last - first > 2 * _WINDOW
            text = haystack.slice(first, last)
            out.append(Piece(text, first, last) if long else Piece(text))
            if last < piece.last:
                out.append(Piece(haystack.joiner))
            first = last
    return out


def _texts_from(parts: Sequence[Piece], at: int) -> Sequence[Piece]:
    end = at
    while end < len(parts) and not parts[end].is_run:
        end += 1
    return parts[at:end]


def _special_ids(encoder: Encoder) -> tuple[Integers, Integers]:
    """What the tokenizer puts before and after a text."""
    bare, full = encoder.encode("a").ids, encoder.encode("a", special=True).ids
    for begin in range(len(full) - len(bare) + 1):
        if np.array_equal(full[begin : begin + len(bare)], bare):
            return full[:begin], full[begin + len(bare) :]
    return full[:0], full  # Unknown: whoever asks reads the whole prompt.


def _needle_characters(pieces: Sequence[Piece], at: int) -> dict[int, Span]:
    spans: dict[int, Span] = {}
    for piece in pieces:
        if piece.needle is not None:
            spans[piece.needle] = (at, at + len(piece.text))
        at += len(piece.text)
    return spans


class _PlaceByOffset:
    """The tokens of a stretch of characters, by the tokenizer's offsets."""

    def __init__(self, encoded: Encoded):
        self._encoded: Any = encoded

    def __call__(self, begin: int, end: int) -> Span:
        first = int(np.searchsorted(self._encoded.ends, begin, side="right"))
        return first, max(first, int(np.searchsorted(self._encoded.begins, end, side="left")))


class _PlaceByPrefix:
    """The same for a tokenizer without offsets, by tokenising what stands before."""

    def __init__(self, encoder: Encoder, text: str, special: bool):
        self._encoder, self._text, self._special = encoder, text, special

    def __call__(self, begin: int, end: int) -> Span:
        return self._count(begin), self._count(end)

    def _count(self, until: int) -> int:
        return self._encoder.count(self._text[:until].rstrip(" "), special=self._special)
