"""Token ids of a text that a model is to continue: what the tokenizer puts before a text, and nothing after it.

Some tokenizers end every text with EOS or a separator. A continuation asked for behind that is one of another text.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lm_audit.errors import UsageError
from lm_audit.models.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel


def prompt_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of ``text`` behind the tokenizer's BOS, if it has one; text that spells BOS out gets no second one."""
    whole = list(tokenizer(text).input_ids)
    bare = list(tokenizer(text, add_special_tokens=False).input_ids)
    if whole == bare:
        return whole
    head, _ = added(tokenizer)
    return bare if bare[: len(head)] == list(head) and head else [*head, *bare]


def added(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that the tokenizer puts before and after a text."""
    return frame(tokenizer("a", add_special_tokens=False)["input_ids"], tokenizer("a")["input_ids"])


def frame(bare: Sequence[int], full: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What stands before and after ``bare`` in ``full``; nothing where it is not in there."""
    for k in range(len(full) - len(bare) + 1):
        if list(full[k : k + len(bare)]) == list(bare):
            return tuple(full[:k]), tuple(full[k + len(bare) :])
    return (), ()


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """The token that stands for letters which the tokenizer does not know; ``None`` where it has none for them alone.

    Byte-level tokenizers name BOS or EOS, which they never read a letter as.
    """
    unknown: int | None = getattr(tokenizer, "unk_token_id", None)
    return None if unknown in (tokenizer.bos_token_id, tokenizer.eos_token_id) else unknown


def tell_unknown(model: LanguageModel, rows: Iterable[Sequence[int] | NDArray[np.int64]]) -> None:
    """Warn, once for a model, where its tokenizer did not know letters of what it is asked: texts that differ in those
    alone are the same to it.
    """
    unknown = unknown_id(model.tokenizer)
    row = None if unknown is None else next((row for row in rows if unknown in row), None)
    if row is None or any(_UNKNOWN in told for told in model.told):
        return
    at = list(row).index(unknown)
    near = model.tokenizer.decode([int(number) for number in row[max(0, at - 8) : at + 9] if number >= 0])
    told = (
        f"model {model.name}: {_UNKNOWN} of what it is asked, and reads them as its unknown token, as in {near!r:.120}:"
        " texts that differ in those alone get the same numbers"
    )
    model.told += (told,)
    warnings.warn(told, stacklevel=2)


_UNKNOWN = "its tokenizer does not know some letters"


def check_ids(ids: Sequence[int], vocabulary: int, what: str, name: str) -> None:
    """``UsageError`` for an id of which model ``name`` has no embedding, since its tokenizer knows more tokens."""
    wrong = next((number for number in ids if not 0 <= number < vocabulary), None)
    if wrong is not None:
        raise UsageError(
            f"{what} holds token id {wrong}; the embeddings of model {name} end at {vocabulary - 1} (a tokenizer with"
            " more tokens than the model, perhaps of another model)"
        )
