"""From a server's record of an answer to text, thought and reason of its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from lm_audit.errors import ModelError

Finish = Literal["eos", "stop", "length"]


def text_and_reasoning(choice: Mapping[str, object]) -> tuple[str, str | None]:
    """What a choice says, and the thought that the server kept apart from it (``None`` where there is none).

    ``ModelError`` for a choice that holds neither a text nor a message.
    """
    if "message" in choice:
        message = choice["message"]
        if not isinstance(message, Mapping):
            raise ModelError(f"the answer's message is {message!r:.80}; expected one with content")
        reasoning = _thought_beside(message) or _thought_beside(choice)
        content = message.get("content")
        if isinstance(content, list):  # parts, as some servers send them
            thoughts = [part for part in content if isinstance(part, Mapping) and _is_thought(part)]
            reasoning = "\n".join(filter(None, [reasoning, *map(_text_in, thoughts)])) or None
            content = _text_in([part for part in content if part not in thoughts])
        if content is None or content == "":
            content = message.get("refusal") or ""
        if not isinstance(content, str):
            raise ModelError(f"the answer's content is {content!r:.80}; expected text")
        return content, reasoning
    text = choice.get("text")
    if not isinstance(text, str):
        raise ModelError(f"the answer holds {sorted(choice)!r:.120}; expected a text or a message")
    return text, _thought_beside(choice)


_REASONING = (
    *("reasoning_content", "reasoning", "thinking", "thinking_content", "reasoning_text", "thought", "thoughts"),
    *("reasoning_details", "thinking_blocks"),
)
_TEXTS = ("text", "thinking", "think", "thought", "reasoning", "summary", "content", "refusal", "value")
_THINKING = ("think", "thought", "reason", "redacted_thinking", "summary", "analysis")
"""How the types of parts begin that hold a thought."""


def _thought_beside(message: Mapping[str, object]) -> str | None:
    """The thought in a field of its own beside the text, whatever a server calls it; ``None`` where there is none."""
    return next((thought for name in _REASONING if (thought := _text_in(message.get(name))).strip()), None)


def _is_thought(part: Mapping[str, object]) -> bool:
    """Whether a part of a message is a thought: by its type ("thinking", "reasoning.text"), or by a mark of its own."""
    named = str(part.get("type", "")).lower().startswith(_THINKING)
    return named or part.get("thought") is True


def _text_in(value: object) -> str:
    """The text of a part, or of parts within parts, at most a few deep; "" for what holds none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_text_in, value)) if len(value) < _MOST else ""
    if isinstance(value, Mapping):
        return next((text for name in _TEXTS if (text := _text_in(value.get(name)))), "")
    return ""


_MOST = 100_000
"""Parts of one message; more are no answer."""


def finish_of(choice: Mapping[str, object]) -> Finish:
    """Why it ends: at the token limit, or by itself. Servers do not tell a stop string from the model's own end."""
    return "length" if choice.get("finish_reason") in ("length", "max_tokens") else "eos"
