"""What a prompt is in the body of a request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from lm_audit.errors import ModelError
from lm_audit.models.endpoint.facts import EndpointFacts
from lm_audit.models.text.chat import Messages
from lm_audit.models.text.prompts import Prompt
from lm_audit.models.text.text_ids import prompt_ids
from lm_audit.models.text.tokenizer import Tokenizer


def text_body(
    prompt: Prompt, facts: EndpointFacts, tokenizer: Tokenizer, name: str
) -> tuple[dict[str, Any], int | None]:
    """A prompt for plain completions, and how many tokens it has where they are counted here.

    Raises ``ModelError`` for token ids that the server does not take and that no tokenizer turns into text.
    """
    counted = facts.tokenizer is not None
    if isinstance(prompt, str):
        return {"prompt": prompt}, len(prompt_ids(tokenizer, prompt)) if counted else None
    ids = [int(one) for one in prompt]  # type: ignore[arg-type]
    if facts.takes_ids:
        return {"prompt": ids}, len(ids)
    if not counted:
        raise ModelError(f"{name}: token ids cannot be sent, and no tokenizer turns them into text")
    return {"prompt": str(tokenizer.decode(ids))}, len(ids)


def chat_body(prompt: Prompt, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A prompt for the chat route: text is a user's turn; ``arguments`` are those of the server's template."""
    messages: Messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt  # type: ignore[assignment]
    body: dict[str, Any] = {"messages": [dict(one) for one in messages]}
    if arguments:
        body["chat_template_kwargs"] = dict(arguments)
    return body


def own_seed(seed: int, number: int, key: str) -> int:
    """The seed of a sampled answer, by its prompt (``key``) and how often that occurred before (``number``)."""
    digest = hashlib.sha256(f"{seed} {number} {key}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1  # servers take 32 bits, some of them signed
