"""What audits ask of a tokenizer: the part of the interface of a ``transformers`` tokenizer that is used here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, overload


class TokenizedText(Protocol):
    """The tokens of one text."""

    @property
    def input_ids(self) -> list[int]:
        """Their ids."""
        ...

    @overload
    def __getitem__(self, name: Literal["input_ids"], /) -> list[int]: ...
    @overload
    def __getitem__(self, name: Literal["offset_mapping"], /) -> list[tuple[int, int]]: ...


class TokenizedTexts(Protocol):
    """The tokens of each of several texts."""

    @property
    def input_ids(self) -> list[list[int]]:
        """Their ids."""
        ...

    @overload
    def __getitem__(self, name: Literal["input_ids"], /) -> list[list[int]]: ...
    @overload
    def __getitem__(self, name: Literal["offset_mapping"], /) -> list[list[tuple[int, int]]]: ...


class Tokenizer(Protocol):
    """A tokenizer of ``transformers``, or what answers like one.

    That of a served model has the part that is asked of texts; its vocabulary and what is saved to files are asked for
    only where the weights are. What not every tokenizer has (``is_fast``, ``chat_template``, ``backend_tokenizer``) is
    read with ``getattr``.
    """

    @property
    def bos_token(self) -> str | None:
        """What stands before a text, if anything does."""
        ...

    @property
    def bos_token_id(self) -> int | None:
        """Its id."""
        ...

    @property
    def eos_token(self) -> str | None:
        """What stands behind a text, if anything does."""
        ...

    @property
    def eos_token_id(self) -> int | None:
        """Its id."""
        ...

    @property
    def pad_token_id(self) -> int | None:
        """The id that fills up shorter rows, if there is one."""
        ...

    @property
    def all_special_ids(self) -> Sequence[int]:
        """The ids of all special tokens."""
        ...

    @property
    def added_tokens_decoder(self) -> Mapping[int, Any]:
        """Tokens that were added to the vocabulary, by their ids."""
        ...

    def __hash__(self) -> int:
        """By identity: what was made with one tokenizer is kept for it."""
        ...

    def __len__(self) -> int:
        """How many tokens it knows, added ones included."""
        ...

    @overload
    def __call__(
        self, text: str, /, *, add_special_tokens: bool = ..., return_offsets_mapping: bool = ..., **options: Any
    ) -> TokenizedText: ...
    @overload
    def __call__(
        self, text: list[str], /, *, add_special_tokens: bool = ..., return_offsets_mapping: bool = ..., **options: Any
    ) -> TokenizedTexts: ...

    def decode(self, ids: Any, /, **options: Any) -> str:
        """The text of token ids (a sequence of them, or one)."""
        ...

    @overload
    def convert_ids_to_tokens(self, ids: int, /) -> str | None: ...
    @overload
    def convert_ids_to_tokens(self, ids: list[int], /) -> list[str]: ...

    def get_vocab(self) -> dict[str, int]:
        """The id of each token."""
        ...

    def get_chat_template(self) -> str:
        """The template that conversations are rendered in; ``ValueError`` where there is none to choose."""
        ...

    def apply_chat_template(self, messages: list[dict[str, Any]], /, **options: Any) -> str | list[int]:
        """A conversation as text, or as token ids where ``tokenize`` says so."""
        ...

    def save_pretrained(self, folder: Any, /) -> object:
        """Write it as ``transformers`` reads it."""
        ...
