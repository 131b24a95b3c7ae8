"""Keys: read from the environment, never shown."""

from __future__ import annotations

import base64
import json
import os
from urllib.parse import quote

from lm_audit.models.endpoint.address import KEY_VARIABLE

HIDDEN = "[key]"
_LEAST = 6
"""Characters below which a key is no secret: servers that want none are given 'x' or 'none'."""


class Key:
    """The key of a server. It shows itself nowhere, and is taken out of every text that a server sends."""

    def __init__(self, value: str | None = None):
        found = value if value is not None else os.environ.get(KEY_VARIABLE, "")
        self.__value = found.strip()

    def reveal(self) -> str:
        """The key itself, for the client alone; a server that wants none gets a word that is none."""
        return self.__value or "none"

    def hide(self, text: str) -> str:
        """``text`` without the key, however it is written there."""
        if len(self.__value) < _LEAST:
            return text
        for form in self._forms():
            text = text.replace(form, HIDDEN)
        return text

    def _forms(self) -> tuple[str, ...]:
        encoded = base64.b64encode(self.__value.encode()).decode()
        return (self.__value, json.dumps(self.__value)[1:-1], quote(self.__value, safe=""), encoded)

    def __repr__(self) -> str:
        return "Key(...)"
