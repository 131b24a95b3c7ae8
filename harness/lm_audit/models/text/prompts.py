"""Prompts as token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lm_audit.errors import ContextError, UsageError, beyond_context
from lm_audit.models.context import context_window, window_hint
from lm_audit.models.text.text_ids import check_ids, prompt_ids, tell_unknown
from lm_audit.models.text.thinking import opened_thought
from lm_audit.models.text.thought_markers import ThoughtMarkers

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.text.chat import ChatTemplate

Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]]
"""Text, token ids, or the messages of a conversation."""


@dataclass(frozen=True)
class EncodedPrompt:
    """A prompt's ids, and the markers of the thought that its end opens, if it does."""

    ids: list[int]
    opened: ThoughtMarkers | None


_TAIL = 24
"""Tokens at a prompt's end in which an opened thought is looked for."""


def encode_prompts(model: LanguageModel, prompts: Sequence[Prompt], *, chat: bool) -> list[EncodedPrompt]:
    """The ids of each prompt; ``UsageError`` naming the index of one that is empty or malformed, ``ContextError`` of
    one that is too long.

    With ``chat`` also what :class:`lm_audit.models.text.chat.ChatTemplate` raises.
    """
    if isinstance(prompts, str):
        raise UsageError("prompts is one string; expected a sequence of prompts")
    encoded = [_encode(model, prompt, index, chat) for index, prompt in enumerate(prompts)]
    context = context_window(model.module.config)
    for index, ids in enumerate(encoded):
        if not ids:
            raise UsageError(f"prompt {index} has no token, and the tokenizer adds no BOS; expected at least one token")
        if context is not None and len(ids) > context:
            hint = window_hint(model.module.config)
            raise ContextError(beyond_context(f"prompt {index}", len(ids), model.name, context, f"shorten it{hint}"))
        check_ids(ids, int(model.module.get_input_embeddings().num_embeddings), f"prompt {index}", model.name)
    tell_unknown(model, encoded)
    template = model.chat_template if chat and encoded else None
    return [
        EncodedPrompt(ids, _opened(model, prompt, ids, template)) for prompt, ids in zip(prompts, encoded, strict=True)
    ]


def _opened(
    model: LanguageModel, prompt: Prompt, ids: Sequence[int], template: ChatTemplate | None
) -> ThoughtMarkers | None:
    if template is not None:
        last: Any = {"role": "user"} if isinstance(prompt, str) else prompt[-1]
        if last.get("role") == "user":
            return template.opened
    return opened_thought(model.tokenizer.decode(list(ids[-_TAIL:]), skip_special_tokens=False))


def _encode(model: LanguageModel, prompt: Prompt, index: int, chat: bool) -> list[int]:
    if chat:
        return _chat_ids(model, prompt, index)
    if isinstance(prompt, str):
        return prompt_ids(model.tokenizer, prompt)
    try:
        return [int(token) for token in prompt]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(
            f"prompt {index} is {type(prompt).__name__}; expected text or token ids (chat=False)"
        ) from None


def _chat_ids(model: LanguageModel, prompt: Prompt, index: int) -> list[int]:
    template = model.chat_template
    messages: Any = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    if not messages or not all(isinstance(message, Mapping) for message in messages):
        raise UsageError(f"prompt {index}: with chat=True expected text or a list of messages with role and content")
    return list(model.tokenizer(template.render(messages), add_special_tokens=False).input_ids)
