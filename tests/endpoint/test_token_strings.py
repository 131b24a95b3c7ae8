"""A vocabulary's spelling of tokens, as vLLM returns it, gives the bytes that they stand for or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.models.endpoint.tokens.server_tokenizer import offsets_of
from lm_audit.models.endpoint.tokens.token_strings import token_bytes
from lm_audit.models.text.tokenizer_loading import load_tokenizer

TEXTS = ("Hello naïve 東京\n x", " a", "e\u0301 🙂🙂 end  ", "tabs\tand\r\nlines", "<|im_start|>user\nhi")


@pytest.mark.parametrize("text", TEXTS)
def test_byte_level_tokens_stand_where_the_tokenizer_says(text: str) -> None:
    tokenizer = load_tokenizer("smollm2")
    encoded = tokenizer(text, return_offsets_mapping=True)
    pieces = token_bytes(tokenizer.convert_ids_to_tokens(encoded.input_ids), text)
    assert pieces is not None and b"".join(pieces) == text.encode()
    assert offsets_of(text, pieces, "m") == encoded["offset_mapping"]


@pytest.mark.parametrize(
    ("strings", "text", "pieces"),
    [
        (["\u2581Hello", "\u2581w", "<0xC3>", "<0xA9>"], " Hello wé", [b" Hello", b" w", b"\xc3", b"\xa9"]),
        (["<s>", "\u2581a"], " a", [b"", b" a"]),
        (["Hello", "\u0120w"], "Hello w", [b"Hello", b" w"]),
        (["Hello", "\u0120w"], "Hello v", None),
        (["<s>"], "", [b""]),
        (None, "a", None),
        ([1, 2], "a", None),
        (["a", None], "a", None),
    ],
)
def test_what_does_not_make_up_the_text_is_nothing(strings: Any, text: str, pieces: list[bytes] | None) -> None:
    assert token_bytes(strings, text) == pieces
