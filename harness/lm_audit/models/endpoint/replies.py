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
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        content = message.get("content")
        if content is None:
            content = message.get("refusal") or ""
        if isinstance(content, list):  # parts, as some servers send them
            content = "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
        if not isinstance(content, str):
            raise ModelError(f"the answer's content is {content!r:.80}; expected text")
        return content, reasoning if isinstance(reasoning, str) and reasoning.strip() else None
    text = choice.get("text")
    if not isinstance(text, str):
        raise ModelError(f"the answer holds {sorted(choice)!r:.120}; expected a text or a message")
    return text, None


def finish_of(choice: Mapping[str, object]) -> Finish:
    """Why it ends: at the token limit, or by itself. Servers do not tell a stop string from the model's own end."""
    return "length" if choice.get("finish_reason") in ("length", "max_tokens") else "eos"
