"""Prompts as token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.errors import UsageError

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]]
"""Text, token ids, or the messages of a conversation."""


def encode_prompts(model: LanguageModel, prompts: Sequence[Prompt], *, chat: bool) -> list[list[int]]:
    """The ids of each prompt; ``UsageError`` naming the index of one that is empty, malformed or too long."""
    if isinstance(prompts, str):
        raise UsageError("prompts is one string; expected a sequence of prompts")
    encoded = [_encode(model, prompt, index, chat) for index, prompt in enumerate(prompts)]
    context = getattr(model.module.config, "max_position_embeddings", None)
    for index, ids in enumerate(encoded):
        if not ids:
            raise UsageError(f"prompt {index} has no token, and the tokenizer adds no BOS; expected at least one token")
        if context is not None and len(ids) > context:
            raise UsageError(f"prompt {index} has {len(ids)} tokens; the context of model {model.name} holds {context}")
    return encoded


def _encode(model: LanguageModel, prompt: Prompt, index: int, chat: bool) -> list[int]:
    if chat:
        return _chat_ids(model, prompt, index)
    if isinstance(prompt, str):
        return _without_double_bos(list(model.tokenizer(prompt).input_ids), model.tokenizer.bos_token_id)
    try:
        return [int(token) for token in prompt]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(
            f"prompt {index} is {type(prompt).__name__}; expected text or token ids (chat=False)"
        ) from None


def _chat_ids(model: LanguageModel, prompt: Prompt, index: int) -> list[int]:
    if not getattr(model.tokenizer, "chat_template", None):
        raise UsageError(f"the tokenizer of model {model.name} has no chat template; call generate with chat=False")
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    if not messages or not all(isinstance(message, Mapping) for message in messages):
        raise UsageError(f"prompt {index}: with chat=True expected text or a list of messages with role and content")
    text = model.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return list(model.tokenizer(text, add_special_tokens=False).input_ids)


def _without_double_bos(ids: list[int], bos: int | None) -> list[int]:
    """Text that spells BOS out (a rendered template) gets no second one from the tokenizer."""
    return ids[1:] if bos is not None and ids[:2] == [bos, bos] else ids
