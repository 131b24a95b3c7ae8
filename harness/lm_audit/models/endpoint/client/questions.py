"""What is asked of a server and what comes back, as plain records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lm_audit.errors import ServerError

Route = Literal["chat/completions", "completions"]


@dataclass(frozen=True)
class Question:
    """One request: its route and body (without the model). ``number`` tells equal questions apart."""

    route: Route
    body: Mapping[str, Any]
    number: int = 0

    @property
    def order(self) -> tuple[str, Any]:
        """Questions that begin alike stand next to one another by this, so that a server's prefix cache is warm."""
        prompt = self.body.get("prompt")
        text = [] if isinstance(prompt, str) else prompt
        return (prompt if isinstance(prompt, str) else json.dumps(self.body.get("messages") or ""), text)


@dataclass(frozen=True)
class Reply:
    """What came back. ``choice`` is the server's own record of the answer; ``tokens`` are None where it counts none."""

    choice: Mapping[str, Any]
    prompt_tokens: int | None
    answer_tokens: int | None
    model: str
    fingerprint: str | None
    retries: int

    @property
    def said(self) -> tuple[Any, ...]:
        """What two answers are compared by: text or message, not their counts, scores and names."""
        message = self.choice.get("message")
        parts = [message.get(name) for name in _PARTS] if isinstance(message, dict) else [message]
        return (self.choice.get("text"), *parts)


_PARTS = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls")


class NoRoute(ServerError):
    """The server has no such route."""


class RefusedRequest(ServerError):
    """The server is there and will not answer this request: it is too long, or asks for what it cannot do."""


def no_route(error: Exception) -> bool:
    """Whether an error says that the server has no such route."""
    return isinstance(error, NoRoute)
