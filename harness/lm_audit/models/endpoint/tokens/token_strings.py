"""From a vocabulary's own spelling of tokens, as vLLM's tokenize route returns it, to the bytes that they stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def token_bytes(strings: object, text: str) -> list[bytes] | None:
    """The bytes of each token of ``text``; ``None`` where they are not told or make up another text.

    Byte-level vocabularies spell every byte as a letter (``\u0120`` for a blank), those of SentencePiece a blank as
    ``\u2581`` and single bytes as ``<0x0A>``; which of them it is shows in what the tokens make up.
    """
    if not isinstance(strings, list) or not all(isinstance(one, str) for one in strings):
        return None
    whole = text.encode("utf-8", "surrogatepass")
    spellings: Sequence[Callable[[str], bytes | None]] = (_byte_level, _sentencepiece, _plain)
    for spelling in spellings:
        pieces = [spelling(one) for one in strings]
        for skipped in (0, 1):  # a token may stand before the text (BOS)
            told = [one for one in pieces[skipped:] if one is not None]
            if len(told) == len(pieces) - skipped and b"".join(told) == whole:
                return [b""] * skipped + told
    return None


@cache
def _letters() -> dict[str, int]:
    """The letter of every byte (Radford et al. 2019, GPT-2): printable ones stand for themselves."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


def _byte_level(token: str) -> bytes | None:
    letters = _letters()
    return bytes(letters[one] for one in token) if all(one in letters for one in token) else None


def _sentencepiece(token: str) -> bytes | None:
    single = _BYTE.fullmatch(token)
    return bytes([int(single[1], 16)]) if single else token.replace("\u2581", " ").encode("utf-8", "surrogatepass")


def _plain(token: str) -> bytes | None:
    return token.encode("utf-8", "surrogatepass")
