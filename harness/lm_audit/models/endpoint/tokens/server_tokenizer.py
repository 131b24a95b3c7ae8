"""A server's own tokenizer, with the part of a ``transformers`` tokenizer's interface that audits use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lm_audit.errors import ModelError
from lm_audit.models.endpoint.client.client import Client
from lm_audit.models.endpoint.tokens.token_strings import token_bytes

Dialect = Literal["llama.cpp", "vllm"]

_REMEMBERED = 1 << 22
"""Characters of texts whose tokens are remembered."""


class Tokens(dict[str, Any]):
    """Token ids by name, as a mapping and as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class ServerTokenizer:
    """Tokenises by asking the server. ``is_fast`` tells that offsets are known; asking for others raises
    ``NotImplementedError``, as the slow tokenizers of ``transformers`` do.
    """

    bos_token_id: int | None = None
    bos_token: str | None = None
    eos_token_id: int | None = None
    eos_token: str | None = None
    all_special_tokens: tuple[str, ...] = ()
    added_tokens_decoder: Mapping[int, Any] = {}

    def __init__(self, client: Client, dialect: Dialect, *, offsets: bool, template: str | None, name: str):
        self._client = client
        self._dialect = dialect
        self.is_fast = offsets
        self.chat_template = template
        self.name_or_path = name
        self._known: OrderedDict[tuple[str, bool], tuple[list[int], list[tuple[int, int]] | None]] = OrderedDict()
        self._size = 0

    def __call__(
        self,
        text: str | Sequence[str],
        *,
        add_special_tokens: bool = True,
        return_offsets_mapping: bool = False,
        **_ignored: object,
    ) -> Tokens:
        """Ids (and offsets) of a text, or of each text of a list."""
        if return_offsets_mapping and not self.is_fast:
            raise NotImplementedError(f"{self.name_or_path}: the server's tokenizer tells no places of its tokens")
        texts = [text] if isinstance(text, str) else list(text)
        found = [self._encode(one, add_special_tokens) for one in texts]
        ids: Any = [list(one) for one, _ in found]
        offsets: Any = [one for _, one in found]
        if isinstance(text, str):
            ids, offsets = ids[0], offsets[0]
        return Tokens(input_ids=ids, **({"offset_mapping": offsets} if return_offsets_mapping else {}))

    def decode(self, ids: Sequence[int] | int, **_ignored: object) -> str:
        """The text of token ids."""
        tokens = [ids] if isinstance(ids, int) else [int(one) for one in ids]
        said = self._client.post("/detokenize", {"tokens": tokens, "model": self._client.address.model})
        # llama.cpp, vLLM and SGLang call it by three names.
        text = said.get("content", said.get("prompt", said.get("text"))) if isinstance(said, dict) else None
        if not isinstance(text, str):
            raise ModelError(f"{self.name_or_path}: its /detokenize answers {said!r:.100}; expected a text")
        return text

    def apply_chat_template(
        self, messages: Sequence[Mapping[str, object]], *, add_generation_prompt: bool = True, **arguments: object
    ) -> str:
        """A conversation as the server renders it."""
        arguments.pop("tokenize", None)
        extra = {"chat_template_kwargs": arguments} if arguments else {}
        body = {"messages": [dict(one) for one in messages], "model": self._client.address.model, **extra}
        if self._dialect == "llama.cpp":
            said = self._client.post("/apply-template", body | {"add_generation_prompt": add_generation_prompt})
            text = said.get("prompt") if isinstance(said, dict) else None
        else:
            said = self._client.post("/tokenize", body | {"add_generation_prompt": add_generation_prompt})
            text = self.decode(said["tokens"]) if isinstance(said, dict) and "tokens" in said else None
        if not isinstance(text, str):
            raise ModelError(f"{self.name_or_path}: the server renders no conversation: {said!r:.100}")
        return text

    def get_chat_template(self) -> str:
        """The template's text, as far as the server shows it."""
        return self.chat_template or ""

    def get_added_vocab(self) -> dict[str, int]:
        """Unknown."""
        return {}

    def _encode(self, text: str, special: bool) -> tuple[list[int], list[tuple[int, int]] | None]:
        key = (text, special)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        found = self._ask(text, special) if text or special else ([], [])
        self._known[key] = found
        self._size += len(text)
        while self._size > _REMEMBERED and len(self._known) > 1:
            self._size -= len(self._known.popitem(last=False)[0][0])
        return found

    def _ask(self, text: str, special: bool) -> tuple[list[int], list[tuple[int, int]] | None]:
        ids, pieces = tokenize(self._client, self._dialect, text, special=special)
        if not self.is_fast:
            return ids, None
        return ids, offsets_of(text, pieces or [], self.name_or_path)


def tokenize(client: Client, dialect: Dialect, text: str, *, special: bool) -> tuple[list[int], list[bytes] | None]:
    """Ids of a text and, where the server tells them, the bytes of each; ``ModelError`` where it gives no ids."""
    if dialect == "llama.cpp":
        said = client.post("/tokenize", {"content": text, "add_special": special, "with_pieces": True})
        tokens = said.get("tokens") if isinstance(said, dict) else None
        if isinstance(tokens, list) and all(isinstance(one, dict) and isinstance(one.get("id"), int) for one in tokens):
            return [one["id"] for one in tokens], [_bytes(one.get("piece")) for one in tokens]
    else:
        body = {"model": client.address.model, "prompt": text, "add_special_tokens": special, "return_token_strs": True}
        said = client.post("/tokenize", body)
        tokens = said.get("tokens") if isinstance(said, dict) else None
        if isinstance(tokens, list) and all(isinstance(one, int) for one in tokens):
            return tokens, token_bytes(said.get("token_strs"), text)
    raise ModelError(
        f"openai:{client.address.model} at {client.url}: its /tokenize answers {said!r:.100}, no token ids"
    )


def offsets_of(text: str, pieces: Sequence[bytes], name: str) -> list[tuple[int, int]]:
    """Where each piece stands in the text, in characters; a special token before the text stands at 0.

    A character that is split over pieces belongs to each. ``ModelError`` where the pieces do not make up the text.
    """
    whole = text.encode("utf-8", "surrogatepass")
    places = [number for number, letter in enumerate(text) for _ in range(len(letter.encode("utf-8", "surrogatepass")))]
    skipped, joined = 0, b"".join(pieces)
    while skipped < len(pieces) and joined != whole:
        joined = joined[len(pieces[skipped]) :]
        skipped += 1
    if joined != whole:
        raise ModelError(f"model {name}: the server's tokens do not make up the text {text[:60]!r}")
    found, at = [(0, 0)] * skipped, 0
    for piece in pieces[skipped:]:
        end = at + len(piece)
        found.append((places[at], places[end - 1] + 1) if piece else (places[at - 1] + 1 if at else 0,) * 2)
        at = end
    return found


def _bytes(piece: object) -> bytes:
    return bytes(piece) if isinstance(piece, list) else str(piece).encode("utf-8", "surrogatepass")
