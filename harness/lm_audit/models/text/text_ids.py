"""Token ids of a text that a model is to continue: what the tokenizer puts before a text, and nothing after it.

Some tokenizers end every text with EOS or a separator. A continuation asked for behind that is one of another text.
"""

from __future__ import annotations

from collections.abc import Sequence

from lm_audit.errors import UsageError
from lm_audit.models.text.tokenizer import Tokenizer


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


def check_ids(ids: Sequence[int], vocabulary: int, what: str, name: str) -> None:
    """``UsageError`` for an id of which model ``name`` has no embedding, since its tokenizer knows more tokens."""
    wrong = next((number for number in ids if not 0 <= number < vocabulary), None)
    if wrong is not None:
        raise UsageError(
            f"{what} holds token id {wrong}; the embeddings of model {name} end at {vocabulary - 1} (a tokenizer with"
            " more tokens than the model, perhaps of another model)"
        )
