"""Messages as servers write them: thoughts in fields or parts of their own, refusals, calls of tools, no content."""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.errors import ModelError
from lm_audit.models.endpoint.replies import text_and_reasoning

THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "two and two"}]}
FOUR = {"type": "text", "text": "four"}
CALL = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]


@pytest.mark.parametrize(
    ("message", "text", "thought"),
    [
        ({"content": "four"}, "four", None),
        ({"content": "four", "reasoning_content": "two and two"}, "four", "two and two"),
        ({"content": "four", "reasoning": "two and two"}, "four", "two and two"),
        ({"content": "four", "thinking": "two and two"}, "four", "two and two"),
        ({"content": "four", "reasoning_content": None, "reasoning": "two and two"}, "four", "two and two"),
        ({"content": "four", "reasoning_content": "", "reasoning": ""}, "four", None),
        ({"content": "four", "reasoning": {"content": "two and two"}}, "four", "two and two"),
        (
            {"content": "four", "reasoning_details": [{"type": "reasoning.text", "text": "two and two"}]},
            "four",
            "two and two",
        ),
        (
            {"content": "", "thinking_blocks": [{"type": "thinking", "thinking": "two and two"}]},
            "",
            "two and two",
        ),
        ({"content": [{"type": "text", "text": {"value": "four", "annotations": []}}]}, "four", None),
        ({"content": [FOUR]}, "four", None),
        ({"content": [{"type": "output_text", "text": "fo"}, {"type": "text", "text": "ur"}]}, "four", None),
        ({"content": [THINKING, FOUR]}, "four", "two and two"),
        ({"content": [{"type": "thinking", "thinking": "two and two", "signature": "x"}, FOUR]}, "four", "two and two"),
        ({"content": [{"text": "two and two", "thought": True}, FOUR]}, "four", "two and two"),
        ({"content": [{"type": "reasoning", "text": "two and two"}, FOUR]}, "four", "two and two"),
        ({"content": [{"type": "redacted_thinking", "data": "x"}, FOUR]}, "four", None),
        ({"content": [THINKING]}, "", "two and two"),
        ({"content": [{"type": "refusal", "refusal": "I can't."}]}, "I can't.", None),
        ({"content": None, "refusal": "I can't."}, "I can't.", None),
        ({"content": "", "refusal": "I can't."}, "I can't.", None),
        ({"content": "four", "refusal": None}, "four", None),
        ({"content": None, "tool_calls": CALL}, "", None),
        ({"content": None, "reasoning_content": "two and two", "tool_calls": CALL}, "", "two and two"),
        ({"content": "four", "reasoning_text": "two and two"}, "four", "two and two"),
        ({"content": "four", "thoughts": ["two ", "and two"]}, "four", "two and two"),
        ({"content": [{"type": "THINKING", "thinking": "two and two"}, FOUR]}, "four", "two and two"),
        ({"content": [{"type": "analysis", "text": "two and two"}, FOUR]}, "four", "two and two"),
        ({"role": "assistant"}, "", None),
        ({"content": []}, "", None),
    ],
)
def test_text_and_thought_of_a_message(message: dict[str, Any], text: str, thought: str | None) -> None:
    assert text_and_reasoning({"message": message}) == (text, thought)


def test_a_thought_beside_the_text_of_a_completion() -> None:
    assert text_and_reasoning({"text": "four", "reasoning_content": "two and two"}) == ("four", "two and two")
    assert text_and_reasoning({"message": {"content": "four"}, "reasoning": "two and two"}) == ("four", "two and two")


@pytest.mark.parametrize("message", [{"content": 7}, {"content": {"text": "four"}}, ["four"], None])
def test_what_is_no_message(message: object) -> None:
    with pytest.raises(ModelError):
        text_and_reasoning({"message": message})
