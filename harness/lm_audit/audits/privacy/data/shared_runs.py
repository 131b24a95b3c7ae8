"""Long runs of words that stand among members and among held-out texts: chunks that overlap, one page saved twice."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

RUN = 20
"""A held-out text that has a member's block of so many words has been trained on in that part."""

_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_]+")
"""A word, or one character of a script that is written without spaces."""


@dataclass(frozen=True)
class SharedRuns:
    """How many of ``held_out`` texts have a run of a member's words; ``example`` is the first such run."""

    sharing: int
    held_out: int
    example: str

    def __str__(self) -> str:
        return (
            f"{self.sharing} of {self.held_out} held-out texts share a run of {RUN} words or more with members, such "
            f"as {self.example[:120]!r}: those were trained on in part, and count against what is found"
        )


def shared_runs(members: Iterable[str], held_out: Sequence[str]) -> SharedRuns | None:
    """What the two sides share, ``None`` for nothing; case, width, punctuation and white space aside.

    Members are cut into blocks of 20 words, each looked for at every place of the held-out texts: a common run of 39
    words is always found, one of 20 where it fills a block.
    """
    blocks: set[int] = set()
    for text in members:
        words = _words(text)
        blocks.update(hash(tuple(words[k : k + RUN])) for k in range(0, len(words) - RUN + 1, RUN))
    found = [run for text in held_out if (run := _first(_words(text), blocks)) is not None]
    return SharedRuns(len(found), len(held_out), found[0]) if found else None


def _first(words: Sequence[str], blocks: set[int]) -> str | None:
    for k in range(len(words) - RUN + 1):
        if hash(tuple(words[k : k + RUN])) in blocks:
            return " ".join(words[k : k + RUN])
    return None


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
