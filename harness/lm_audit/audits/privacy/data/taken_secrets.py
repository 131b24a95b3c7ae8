"""Whether a secret stands in one of many texts: by the parts of a text as long as a secret, not one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Taken:
    """Canaries that were drawn, and whether a further one would share a secret with them.

    What is looked up are hashes of parts; two parts of one hash are compared in full, so the answer is exact.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._secrets: dict[int, set[str]] = {}
        self._parts: dict[int, set[int]] = {}

    def clashes(self, text: str, secret: str) -> bool:
        """Whether an earlier text holds the secret, or the text an earlier secret."""
        parts = self._parts_of(len(secret))
        if hash(secret) in parts and any(secret in other for other in self._texts):
            return True
        return any(part in secrets for length, secrets in self._secrets.items() for part in windows(text, length))

    def add(self, text: str, secret: str) -> None:
        """Another canary is drawn."""
        self._secrets.setdefault(len(secret), set()).add(secret)
        self._texts.append(text)
        for length, parts in self._parts.items():
            parts.update(map(hash, windows(text, length)))

    def _parts_of(self, length: int) -> set[int]:
        if length not in self._parts:
            self._parts[length] = {hash(part) for text in self._texts for part in windows(text, length)}
        return self._parts[length]


def held_secret(texts: Iterable[str], secrets: Iterable[str]) -> tuple[int, str] | None:
    """The first text (from 1) that holds one of the secrets, and which; ``None`` where none does."""
    by_length: dict[int, set[str]] = {}
    for secret in secrets:
        by_length.setdefault(len(secret), set()).add(secret)
    for number, text in enumerate(texts, start=1):
        for length, known in by_length.items():
            if (found := next((part for part in windows(text, length) if part in known), None)) is not None:
                return number, found
    return None


def windows(text: str, length: int) -> Iterator[str]:
    """Every part of a text that has a length."""
    return (text[start : start + length] for start in range(len(text) - length + 1))
