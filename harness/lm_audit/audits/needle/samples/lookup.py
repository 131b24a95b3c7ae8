"""What the question of a prompt asks for, looked up in its text: what a perfect reader does."""

from __future__ import annotations

import re

_NEEDLE = re.compile(r"One of the special magic \w+ for (?P<key>\S+) is: (?P<value>\S+)\.")
_QUESTION = re.compile(r"What (?:is|are all) the special magic \w+ for (?P<keys>.+) mentioned in the provided text\?")


def lookup(prompt: str, visible: str) -> list[str]:
    """The values that the visible text states of the keys that the prompt's question names."""
    question = _QUESTION.search(prompt)
    keys = re.split(r", and |, ", question["keys"]) if question else []
    return [found["value"] for found in _NEEDLE.finditer(visible) if found["key"] in keys]
