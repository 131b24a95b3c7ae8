"""Tokens that a folder's files add to the vocabulary: read as what the files say, and no words of ordinary text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.files.json_file import listed, read_json
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.textfiles import is_file


def check_added(tokenizer: Tokenizer, folder: Path) -> None:
    """``ModelError`` naming tokens that are read as another number than ``folder`` states beside ``tokenizer.json``.

    The library of the tokenizer gives an added token the next free number where the one that is stated is taken.
    """
    vocabulary = tokenizer.get_vocab()
    for path, token, number in _stated(folder):
        read = vocabulary.get(token)
        if read is not None and read != number:
            owner = tokenizer.convert_ids_to_tokens(number) if number < len(tokenizer) else None
            taken = f", which is {owner!r:.40}" if owner not in (None, token) else ""
            raise ModelError(
                f"{path} has {token!r:.40} as the token {number}{taken}; it would be read as {read}: the file of"
                " another tokenizer, it seems"
            )


def _stated(folder: Path) -> Iterator[tuple[Path, str, int]]:
    """File, token and number of what is added in files that are read after the tokenizer's own."""
    path = folder / "added_tokens.json"
    if is_file(path):
        yield from ((path, token, number) for token, number in read_json(path).items() if isinstance(number, int))
    path = folder / "tokenizer_config.json"
    decoder: Any = read_json(path).get("added_tokens_decoder") if is_file(path) else None
    for number, token in decoder.items() if isinstance(decoder, dict) else ():
        content = token.get("content") if isinstance(token, dict) else token
        if isinstance(content, str) and str(number).isdigit():
            yield path, content, int(number)


def tell_words(tokenizer: Tokenizer, name: str) -> None:
    """Warn of special tokens of model ``name`` that are words: they end texts, or are left out of what it writes."""
    roles = {getattr(tokenizer, f"{kind}_token", None): f" ({kind}_token)" for kind in ("pad", "bos", "eos")}
    named = [token for token in getattr(tokenizer, "all_special_tokens", ()) if isinstance(token, str)]
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()  # those without a role are left out of texts too
    special = list(dict.fromkeys([*named, *(str(token) for token in added if getattr(token, "special", False))]))
    plain = {token: token.strip("▁Ġ ") for token in special}
    words = [
        f"{token!r:.40}{roles.get(token, '')}"
        for token in special
        if plain[token].isalnum() and plain[token].casefold() not in _NAMES
    ]
    if words:
        warnings.warn(
            f"model {name}: its tokenizer has {listed(words)} among its special tokens, a word of ordinary text; it is"
            " left out wherever the model writes it, and ends the text if it is the eos_token",
            stacklevel=2,
        )


_NAMES = ("bos", "eos", "pad", "unk", "endoftext", "padding")
