"""The text to hide needles in: read once, tokenised once, cut at words (or Chinese characters) and sentences."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.needle.haystack.scripts import CJK as _CJK
from lm_audit.audits.needle.haystack.scripts import LONGEST_WORD, cuts, is_unspaced
from lm_audit.audits.needle.haystack.sentences import sentence_ends
from lm_audit.audits.needle.haystack.sources import SourceText, read_source
from lm_audit.audits.needle.haystack.token_offsets import Encoded, Encoder, Integers
from lm_audit.errors import DataError
from lm_audit.models.text.tokenizer import Tokenizer

_CJK_MARKS = "\u3000-\u3004\u3008-\u303f\uff00-\uff65—…·"
_OPENING = "“‘「『（《〈【"
_CLOSING = f"”’」』）》〉】{_CJK_MARKS}"
# A Chinese character with the marks that lean on it, or a run of anything else.
_UNIT = re.compile(
    rf"[{_OPENING}]*[{_CJK}][{_CLOSING}]*|(?:[^\s{_CJK}{_OPENING}]|[{_OPENING}](?![{_OPENING}]*[{_CJK}]))+"
)
_ANY_CJK = re.compile(f"[{_CJK}]")
_BLANK_LINES = re.compile(r"\n\s*\n")
_BLANKS = re.compile(r"\s+")
_BETWEEN_CJK = re.compile(rf"(?<=[{_CJK}{_CLOSING}{_OPENING}]) +(?=[{_CJK}{_OPENING}{_CLOSING}])")


class Haystack:
    """A text with its token counts; what a grid shares between all of its prompts.

    ``source`` is a file (a path), a folder of ``.txt`` files, one of the kinds ``essay`` (the embedded English text)
    and ``noise``, or the text itself. White space is normalised; with ``lines`` line breaks stay and end sentences.
    The text is cut at *units*: words, or single characters where a script (Chinese, Japanese, Thai, Khmer, ...) puts no
    spaces between words; a longer stretch than any word is cut too. It is repeated where a prompt needs
    more: unit i and unit i + ``len(haystack)`` are the same. Raises ``DataError`` for a source that holds no text, or
    that spells out one of the tokenizer's special tokens.
    """

    def __init__(self, source: str | Path | SourceText, tokenizer: Tokenizer | Encoder, *, lines: bool | None = None):
        found = read_source(source)
        self.name = found.name
        self.lines = found.lines if lines is None else lines
        self.text, self._paragraph_ends = _read(found.text, lines=self.lines)
        if not self.text:
            raise DataError("holds no text; expected at least one sentence", file=found.file, field="haystack")
        self.encoder = tokenizer if isinstance(tokenizer, Encoder) else Encoder(tokenizer)
        self._refuse_special_tokens(found.file)
        self.begins, self.ends = _units(self.text)
        self.joiner = "\n" if self.lines else " " if self._spaced() else ""
        self.sentence_starts = self._sentence_starts()
        self.additive: bool | None = None  # found out by measuring.is_additive
        self.window_starts = np.array([0]) if found.uniform else self.sentence_starts[:-1]

    def __len__(self) -> int:
        """Units of one copy of the text."""
        return len(self.begins)

    @cached_property
    def sha256(self) -> str:
        """Hash of the normalised text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def encoded(self) -> Encoded:
        """The one tokenisation of the text."""
        return self.encoder.encode(self.text)

    @cached_property
    def token_starts(self) -> Integers:
        """For each unit, how many tokens end before it begins, and the number of all: [units + 1]."""
        ends = self.encoded.ends if self.encoder.has_offsets else None
        if ends is None:
            return self._counts_by_unit()
        starts = np.searchsorted(ends, self.ends, side="right")
        return np.concatenate([[0], starts[:-1], [len(self.encoded)]]).astype(np.int64)

    @property
    def n_tokens(self) -> int:
        """Tokens of one copy of the text."""
        return int(self.token_starts[-1])

    def tokens_before(self, unit: int | Integers) -> Any:
        """Tokens before this unit, copies of the text counted through."""
        copies, place = np.divmod(unit, len(self))
        return copies * self.n_tokens + self.token_starts[place]

    def units_within(self, start: int, tokens: int) -> int:
        """The most units from ``start`` on that have no more than so many tokens."""
        copies, rest = divmod(int(self.tokens_before(start)) + tokens, self.n_tokens)
        return max(0, copies * len(self) + int(np.searchsorted(self.token_starts, rest, side="right")) - 1 - start)

    def slice(self, first: int, last: int) -> str:
        """The text of the units ``first`` to ``last - 1``, copies joined as its sentences are."""
        if last <= first:
            return ""
        size, pieces = len(self), []
        for copy in range(first // size, (last - 1) // size + 1):
            begin, end = max(first - copy * size, 0), min(last - copy * size, size)
            pieces.append(self.text[self.begins[begin] : self.ends[end - 1]])
        return self.joiner.join(pieces)

    def gap(self, unit: int) -> str:
        """What stands between this unit and the one before it: a space, a line break or nothing."""
        place = unit % len(self)
        return self.joiner if place == 0 else self.text[self.ends[place - 1] : self.begins[place]]

    def parting(self, unit: int) -> str:
        """What parts a needle before this unit from its neighbours: the gap there; beside Chinese characters nothing.

        Inside any other stretch without spaces it is a space: glued to letters the needle would be no word.
        """
        place = unit % len(self)
        around = self.text[int(self.ends[place - 1]) - 1] + self.text[int(self.begins[place])]
        return self.gap(unit) or ("" if _ANY_CJK.search(around) else " ")

    def boundaries(self, start: int, units: int) -> Integers:
        """Where sentences begin within a window, as units from its start, both of its ends included.

        In a text without sentences every unit is a boundary.
        """
        if len(self.sentence_starts) <= 2:
            return np.arange(units + 1, dtype=np.int64)
        size, inner = len(self), self.sentence_starts[:-1]
        copies = range(start // size, (start + units) // size + 1)
        every = np.concatenate([inner + copy * size - start for copy in copies])
        return np.unique(np.concatenate([[0, units], every[(every > 0) & (every < units)]])).astype(np.int64)

    @cached_property
    def _searched(self) -> str:
        # A needle could also be found across the seam of two copies.
        return (self.text + self.joiner + self.text[:1000]).casefold()

    def free_of(self, item: str) -> bool:
        """Whether the text, repeated or not, nowhere contains ``item``, whatever the case."""
        return item.casefold() not in self._searched

    def _spaced(self) -> bool:
        return len(self) < 2 or bool(np.mean(self.begins[1:] > self.ends[:-1]) > 0.5)

    def _sentence_starts(self) -> Integers:
        # A heading or a listing ends with its paragraph, whatever its last character.
        ends = [*sentence_ends(self.text), *self._paragraph_ends]
        after = np.searchsorted(self.ends, ends, side="right")
        return np.unique(np.concatenate([[0], after, [len(self)]])).astype(np.int64)

    def _counts_by_unit(self) -> Integers:
        """A tokenizer without offsets: each distinct unit's own count, which steers the fit but proves nothing."""
        pieces = [self.text[b:e] for b, e in zip(self.begins, self.ends, strict=True)]
        counts = {piece: max(1, self.encoder.count(piece)) for piece in set(pieces)}
        return np.concatenate([[0], np.cumsum([counts[piece] for piece in pieces])]).astype(np.int64)

    def _refuse_special_tokens(self, file: str | None) -> None:
        for token in getattr(self.encoder.tokenizer, "all_special_tokens", ()):
            if token and token in self.text:
                raise DataError(
                    f"contains {token!r}, a special token of the tokenizer, which would not be read as text; remove it",
                    file=file,
                    field="haystack",
                )


def normalise(text: str, *, lines: bool = False) -> str:
    """The text with every run of white space as one space (none between Chinese characters); ``lines`` keeps breaks."""
    if lines:
        rows = (normalise(row) for row in text.splitlines())
        return "\n".join(row for row in rows if row)
    flat = _BLANKS.sub(" ", text).strip()
    return _BETWEEN_CJK.sub("", flat) if _ANY_CJK.search(flat) else flat


def _read(text: str, *, lines: bool) -> tuple[str, list[int]]:
    """The normalised text, and where its paragraphs end in it."""
    if lines:
        return normalise(text, lines=True), []
    pieces: list[str] = []
    ends: list[int] = []
    length = 0
    for paragraph in _BLANK_LINES.split(text):
        flat = normalise(paragraph)
        if not flat:
            continue
        if pieces and not _leans(pieces[-1], flat):
            pieces.append(" ")
            length += 1
        pieces.append(flat)
        length += len(flat)
        ends.append(length)
    return "".join(pieces), ends


def _parts(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """A run between spaces as it may be cut: whole where it can be a word."""
    text, begin = match.group(), match.start()
    if len(text) <= LONGEST_WORD and not is_unspaced(text):
        yield match.span()
        return
    for first, last in cuts(text):
        yield begin + first, begin + last


def _leans(before: str, after: str) -> bool:
    """Whether nothing stands between these: both are Chinese."""
    return normalise(f"{before[-1]} {after[0]}") == before[-1] + after[0]


def _units(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    spans = np.array([span for match in _UNIT.finditer(text) for span in _parts(match)], dtype=np.int64).reshape(-1, 2)
    if not len(spans):
        spans = np.array([[0, len(text)]], dtype=np.int64)
    return spans[:, 0], spans[:, 1]
