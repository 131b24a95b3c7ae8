"""Where the target begins in a text that was tokenised as one string.

Offsets are read from a copy of the fast tokenizer without its post-processor: byte-level post-processors trim white
space from the offsets they report, so that the token ".\\n" would seem to end before the line break that it contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.models.text.tokenizer import Tokenizer

Split = tuple[NDArray[np.int64], int, bool]  # token ids, index of the first target token, whether it spans the boundary

_PROBES = ("The quick brown fox. ", " naïve 東京\n\n  x")


class TextSplitter:
    """Tokenises ``prefix + target`` once and splits the tokens at a character position.

    A token belongs to the target where it covers any character of it.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._backend = _bare_backend(tokenizer)

    def split(self, texts: Sequence[str], boundaries: Sequence[int]) -> list[Split]:
        """One split for each text; ``boundaries`` are character positions where the targets begin."""
        if self._backend is None:
            return [_split_slow(self._tokenizer, text, at) for text, at in zip(texts, boundaries, strict=True)]
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [
            _split_encoding(self._backend, encoding, text, at)
            for encoding, text, at in zip(encodings, texts, boundaries, strict=True)
        ]

    def ids(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Token ids of each text without any special token added."""
        return [ids for ids, _, _ in self.split(texts, [0] * len(texts))]


def _bare_backend(tokenizer: Tokenizer) -> Any | None:
    """A private copy of the Rust tokenizer that reports untrimmed offsets, or None where there is none to trust."""
    from tokenizers import Tokenizer

    original = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(original, Tokenizer):
        return None
    backend = Tokenizer.from_str(original.to_str())
    backend.post_processor = None
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = original.encode_special_tokens
    # Some tokenizer classes change the text in Python; they take the slow way.
    same = all(backend.encode(t, add_special_tokens=False).ids == _plain_ids(tokenizer, t) for t in _PROBES)
    return backend if same else None


def _plain_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _split_encoding(backend: Any, encoding: Any, text: str, at: int) -> Split:
    ids = np.array(encoding.ids, dtype=np.int64)
    if at == 0:
        return ids, 0, False
    first = encoding.char_to_token(at)
    if first is None:  # a character that the normaliser dropped or put into another, or the end of the text
        first = next((i for i, (_, end) in enumerate(encoding.offsets) if end > at), len(ids))
        if text[at : at + 1].strip():
            before = backend.encode(text[:at], add_special_tokens=False).ids
            joined = next((i for i in range(first) if before[i : i + 1] != encoding.ids[i : i + 1]), first)
            if joined < first:  # "e" and an accent are one letter in NFC
                return ids, joined, True
    if first == len(ids):
        return ids, first, False
    return ids, first, encoding.token_to_chars(first)[0] < at


def _split_slow(tokenizer: Tokenizer, text: str, at: int) -> Split:
    """Without offsets: the longest run of leading tokens whose text is a prefix of the prefix.

    Where tokens do not spell it ("@@" for an open word, unknown letters), the tokens that the prefix has by itself.
    """
    ids = _plain_ids(tokenizer, text)
    prefix_ids = _plain_ids(tokenizer, text[:at])
    alike = next((i for i, pair in enumerate(zip(ids, prefix_ids, strict=False)) if pair[0] != pair[1]), None)
    if alike is None:
        first, merged = min(len(ids), len(prefix_ids)), len(prefix_ids) > len(ids)
        if not merged and first and _holds_more(tokenizer, prefix_ids, text, at):
            first, merged = first - 1, True
        return np.array(ids, dtype=np.int64), first, merged
    first = 0
    while first < len(ids) and len(_decoded(tokenizer, ids[: first + 1])) <= at:
        first += 1
    before = _decoded(tokenizer, ids[:first])
    if first < alike or not text[:at].startswith(before):
        return np.array(ids, dtype=np.int64), alike, True
    return np.array(ids, dtype=np.int64), first, first < len(ids) and len(before) < at


def _holds_more(tokenizer: Tokenizer, prefix_ids: list[int], text: str, at: int) -> bool:
    """Whether the prefix's last token covers what follows too: unknown letters in a row are one token of some."""
    rest = text[at:].lstrip()
    end = len(text) - len(rest) + 1
    return bool(rest) and _plain_ids(tokenizer, text[:end]) == prefix_ids


def _decoded(tokenizer: Tokenizer, ids: list[int]) -> str:
    return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))
