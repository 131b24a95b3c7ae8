"""A tokenizer for a server that is sent messages: what its own template adds is a number, not a text."""

from __future__ import annotations

from typing import Any


class MessageTokenizer:
    """Another tokenizer in all things, which says besides that prompts are sent as messages.

    ``message_tokens`` is how many tokens the server's template adds to a user's message.
    """

    def __init__(self, inner: Any, message_tokens: int):
        self._inner = inner
        self.message_tokens = message_tokens

    def __call__(self, *arguments: object, **named: Any) -> Any:
        """What the other tokenizer answers."""
        return self._inner(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._inner, name)
