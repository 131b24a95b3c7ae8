"""Whether a tokenizer's tokens are the model's: each that ordinary text is made of has an embedding."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.context import text_config
from lm_audit.models.files.json_file import listed
from lm_audit.models.text.tokenizer import Tokenizer


def check_vocabulary(tokenizer: Tokenizer, rows: int, name: str) -> None:
    """``ModelError`` naming tokens without one of the ``rows`` embeddings of model ``name``.

    Fewer tokens than embeddings are common (padding). Added tokens beyond the end (a ``[PAD]`` of fine-tuning) are let
    pass, since no text holds them unless it spells them out, which is refused where it is scored; BOS and EOS are not.
    """
    vocabulary = tokenizer.get_vocab()
    beyond = {token: number for token, number in vocabulary.items() if number >= rows}
    if not beyond:
        return
    added: dict[str, Any] = getattr(tokenizer, "get_added_vocab", dict)()
    framing = (tokenizer.bos_token_id, tokenizer.eos_token_id)
    needed = {token: number for token, number in beyond.items() if token not in added or number in framing}
    if needed:
        raise ModelError(
            f"model {name}: its tokenizer has {len(needed)} tokens beyond its {rows} embeddings, as of another model: "
            f"{listed([f'{token!r:.40} ({number})' for token, number in sorted(needed.items(), key=lambda x: x[1])])}"
        )


def tell_ends(tokenizer: Tokenizer, ends: Iterable[int], rows: int, name: str) -> None:
    """Warn of tokens that end a text of model ``name`` and cannot come, or that ordinary text is made of.

    A ``generation_config.json`` of another model has such: texts would go on to their limit, or end at a letter.
    """
    beyond = sorted(number for number in ends if not 0 <= number < rows)
    if beyond:
        warnings.warn(
            f"model {name}: its configs end texts at the tokens {listed([str(one) for one in beyond])}; its embeddings"
            f" end at {rows - 1}, so that these never come",
            stacklevel=2,
        )
    added: dict[str, Any] = getattr(tokenizer, "get_added_vocab", dict)()
    marks = {*added.values(), *getattr(tokenizer, "all_special_ids", ())}
    plain = sorted(number for number in ends if 0 <= number < rows and number not in marks)
    if plain and marks:
        tokens = [f"{number} ({tokenizer.convert_ids_to_tokens(number)!r:.40})" for number in plain]
        warnings.warn(
            f"model {name}: its configs end texts at {listed(tokens)}, which its tokenizer has for ordinary text",
            stacklevel=2,
        )


def predicted_tokens(module: CausalModule) -> int:
    """How many tokens a model reads and predicts: heads may be narrower than embeddings (Moshi, Inkling's padding)."""
    sizes: list[Any] = [int(module.get_input_embeddings().num_embeddings)]
    head: Any = getattr(module, "get_output_embeddings", lambda: None)()
    sizes += [getattr(head, "out_features", None), getattr(text_config(module.config), "unpadded_vocab_size", None)]
    return min(size for size in sizes if isinstance(size, int))
