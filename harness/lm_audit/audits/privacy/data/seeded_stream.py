"""A random stream from SHA-256, so that the same seed gives the same canaries on every Python version and platform."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_WORD = 1 << 64


class Stream:
    """Deterministic draws named by a key: streams of different keys are independent.

    ``random.Random`` is not used because the streams of ``choice``, ``sample`` and ``shuffle`` may change between
    Python versions, and a manifest must be reproducible years later.
    """

    def __init__(self, seed: int, *key: object):
        self._prefix = "\x1f".join([str(int(seed)), *map(str, key)]).encode()
        self._count = 0

    def word(self) -> int:
        """The next 64 bits."""
        digest = hashlib.sha256(self._prefix + b"\x1f" + str(self._count).encode()).digest()
        self._count += 1
        return int.from_bytes(digest[:8], "big")

    def below(self, n: int) -> int:
        """A uniform integer in 0 .. n-1 (rejection sampling: no modulo bias); ``ValueError`` for n < 1."""
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        limit = _WORD - _WORD % n
        while (value := self.word()) >= limit:
            pass
        return value % n

    def coin(self) -> bool:
        """A fair coin."""
        return self.below(2) == 1

    def choice(self, items: Sequence[T]) -> T:
        """One item, uniformly."""
        return items[self.below(len(items))]

    def text(self, alphabet: str, length: int) -> str:
        """``length`` characters, each uniform over ``alphabet``."""
        return "".join(self.choice(alphabet) for _ in range(length))

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A uniformly random permutation (Fisher-Yates) as a new list."""
        result = list(items)
        for i in range(len(result) - 1, 0, -1):
            j = self.below(i + 1)
            result[i], result[j] = result[j], result[i]
        return result
