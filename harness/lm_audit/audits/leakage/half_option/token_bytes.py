"""The bytes that each token stands for, so that parts of a character can be compared."""

from __future__ import annotations

import re

from lm_audit.models.text.tokenizer import Tokenizer

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class TokenBytes:
    """``bytes_of(id)`` of one tokenizer: what the token adds to a text; None for a special token."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._special = frozenset(int(i) for i in tokenizer.all_special_ids)
        self._known: dict[int, bytes | None] = {}
        self._byte_level, self._metaspace = _kind(tokenizer)

    def bytes_of(self, token_id: int) -> bytes | None:
        """The token's UTF-8 bytes, possibly part of a character; None for special and unused ids."""
        if token_id not in self._known:
            self._known[token_id] = None if token_id in self._special else self._decode(token_id)
        return self._known[token_id]

    def _decode(self, token_id: int) -> bytes | None:
        name = self._tokenizer.convert_ids_to_tokens(int(token_id))
        if name is None:
            return None
        if self._byte_level and all(character in _BYTE_OF for character in name):
            return bytes(_BYTE_OF[character] for character in name)
        byte = _BYTE_TOKEN.fullmatch(name)
        if byte:
            return bytes([int(byte.group(1), 16)])
        if self._metaspace:
            return str(name).replace("\u2581", " ").encode()
        # A vocabulary of another kind: what the token adds after a letter, where no leading space is trimmed.
        head = self._tokenizer.decode(self._tokenizer("a", add_special_tokens=False)["input_ids"])
        ids = [*self._tokenizer("a", add_special_tokens=False)["input_ids"], int(token_id)]
        return str(self._tokenizer.decode(ids, clean_up_tokenization_spaces=False))[len(head) :].encode()


def _kind(tokenizer: Tokenizer) -> tuple[bool, bool]:
    """Whether token names spell bytes in byte-level BPE's alphabet, and whether a low block stands for a space."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return False, False
    settings = " ".join(repr(getattr(backend, part, None)) for part in ("pre_tokenizer", "decoder", "normalizer"))
    return "ByteLevel" in settings, "Metaspace" in settings or "\u2581" in settings


def _byte_alphabet() -> dict[str, int]:
    """Byte-level BPE's character of each byte: printable Latin-1 stands for itself, the rest for U+0100 and up."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    table, spare = {}, 0x100
    for byte in range(256):
        code = byte if byte in printable else spare
        spare += byte not in printable
        table[chr(code)] = byte
    return table


_BYTE_OF = _byte_alphabet()
