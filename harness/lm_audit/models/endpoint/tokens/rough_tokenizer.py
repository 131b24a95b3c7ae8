"""A stand-in for a tokenizer that nobody knows: pieces of words, so that lengths come out roughly right."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any

from lm_audit.models.endpoint.tokens.server_tokenizer import Tokens

_PIECE = re.compile(r"\s?[A-Za-z]{1,6}|\s?\d{1,3}|.", re.DOTALL)


class RoughTokenizer:
    """Cuts a text into pieces about as long as tokens are. Its ids tell pieces apart and mean nothing to any model."""

    is_fast = True
    bos_token_id: int | None = None
    bos_token: str | None = None
    eos_token_id: int | None = None
    eos_token: str | None = None
    all_special_tokens: tuple[str, ...] = ()

    def __init__(self, name: str, template: str | None = None):
        self.name_or_path = name
        self.chat_template = template

    def __call__(
        self, text: str | Sequence[str], *, return_offsets_mapping: bool = False, **_ignored: object
    ) -> Tokens:
        """Ids (and offsets) of the pieces of a text, or of each text of a list."""
        found = [list(_PIECE.finditer(one)) for one in ([text] if isinstance(text, str) else text)]
        ids: Any = [[zlib.crc32(piece.group().encode("utf-8", "surrogatepass")) for piece in one] for one in found]
        offsets: Any = [[piece.span() for piece in one] for one in found]
        if isinstance(text, str):
            ids, offsets = ids[0], offsets[0]
        return Tokens(input_ids=ids, **({"offset_mapping": offsets} if return_offsets_mapping else {}))

    def get_chat_template(self) -> str:
        """A word that says that the server has one."""
        return self.chat_template or ""
