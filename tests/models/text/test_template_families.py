"""Chat templates of many families, cut down to their turns: do they open a thought, with their arguments both ways?"""

from __future__ import annotations

from typing import Any

import pytest

from lm_audit.models.text.chat import ChatTemplate
from tests.models.text.test_chat import USER, with_template


def turns(user: str, model: str, before: str = "") -> str:
    """A template of the test's own writing: every message in ``user``'s marks, then what begins the model's turn."""
    said = user.replace("TEXT", "{{ m.content }}")
    return f"{before}{{% for m in messages %}}{said}{{% endfor %}}{{% if add_generation_prompt %}}{model}{{% endif %}}"


IM = "<|im_start|>{{ m.role }}\nTEXT<|im_end|>\n"
OFF = "{% if enable_thinking is defined and not enable_thinking %}"
FAMILIES: list[tuple[str, str, dict[str, Any], str | None, str]] = [
    ("deepseek r1", turns("<｜User｜>TEXT", "<｜Assistant｜><think>\n"), {}, "<think>", "<think>\n</think>"),
    (
        "deepseek v3.1",
        turns("<｜User｜>TEXT", "<｜Assistant｜>{% if thinking %}<think>{% else %}</think>{% endif %}"),
        {"thinking": True},
        "<think>",
        "<think>\n</think>",
    ),
    (
        "deepseek v3.1, off",
        turns("<｜User｜>TEXT", "<｜Assistant｜>{% if thinking %}<think>{% else %}</think>{% endif %}"),
        {},
        None,
        "</think>",
    ),
]


def qwen3(arguments: dict[str, Any], opened: str | None, end: str) -> tuple[str, str, dict[str, Any], str | None, str]:
    model = "<|im_start|>assistant\n" + OFF + "<think>\n\n</think>\n\n{% endif %}"
    return f"qwen3 {arguments}", turns(IM, model), arguments, opened, end


FAMILIES += [
    qwen3({}, None, "assistant\n"),
    qwen3({"enable_thinking": True}, None, "assistant\n"),
    qwen3({"enable_thinking": False}, None, "</think>\n\n"),
    ("qwen3 thinking", turns(IM, "<|im_start|>assistant\n<think>\n"), {}, "<think>", "</think>"),
    ("gemma 3", turns("<start_of_turn>user\nTEXT<end_of_turn>\n", "<start_of_turn>model\n"), {}, None, "model\n"),
    (
        "gpt-oss",
        turns("<|start|>user<|message|>TEXT<|end|>", "<|start|>assistant", "Reasoning: {{ reasoning_effort }}\n"),
        {"reasoning_effort": "low"},
        None,
        "<|start|>assistant",
    ),
    (
        "magistral",
        turns(
            "[INST]TEXT[/INST]", "", "[SYSTEM_PROMPT]First [THINK]your thoughts[/THINK], then answer.[/SYSTEM_PROMPT]"
        ),
        {},
        None,
        "[/INST]",
    ),
    (
        "granite",
        turns(
            "<|start_of_role|>user<|end_of_role|>TEXT<|end_of_text|>\n",
            "<|start_of_role|>assistant<|end_of_role|>",
            "{% if thinking %}Write your thoughts after 'Here is my thought process:'.{% endif %}",
        ),
        {"thinking": True},
        None,
        "<|end_of_role|>",
    ),
    ("exaone deep", turns("[|user|]TEXT\n", "[|assistant|]<thought>\n"), {}, "<thought>", "</thought>"),
    (
        "exaone 4",
        turns("[|user|]\nTEXT[|endofturn|]\n", "[|assistant|]\n{% if enable_thinking %}<think>\n{% endif %}"),
        {"enable_thinking": True},
        "<think>",
        "</think>",
    ),
    (
        "exaone 4, off",
        turns("[|user|]\nTEXT[|endofturn|]\n", "[|assistant|]\n" + OFF + "<think>\n\n</think>\n\n{% endif %}"),
        {"enable_thinking": False},
        None,
        "</think>\n\n",
    ),
    (
        "command a",
        turns(
            "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>TEXT<|END_OF_TURN_TOKEN|>",
            "<|CHATBOT_TOKEN|>{% if reasoning is defined and not reasoning %}<|START_THINKING|>"
            "<|END_THINKING|>{% endif %}",
        ),
        {"reasoning": False},
        None,
        "<|END_THINKING|>",
    ),
    (
        "command r, opened",
        turns("<|USER_TOKEN|>TEXT", "<|CHATBOT_TOKEN|><|START_THINKING|>"),
        {},
        "<|START_THINKING|>",
        "<|END_THINKING|>",
    ),
    (
        "hunyuan",
        turns("<｜hy_User｜>TEXT", "<｜hy_Assistant｜>" + OFF + "<think>\n\n</think>\n{% endif %}"),
        {"enable_thinking": False},
        None,
        "</think>\n",
    ),
    (
        "glm 4.5, off",
        turns("<|user|>\nTEXT", "<|assistant|>" + OFF + "\n<think></think>{% endif %}"),
        {"enable_thinking": False},
        None,
        "<think></think>",
    ),
    (
        "glm 4.5",
        turns("<|user|>\nTEXT", "<|assistant|>" + OFF + "\n<think></think>{% endif %}"),
        {},
        None,
        "<|assistant|>",
    ),
    (
        "kimi",
        turns("<|im_user|>user<|im_middle|>TEXT<|im_end|>", "<|im_assistant|>assistant<|im_middle|>"),
        {},
        None,
        "|>",
    ),
    (
        "phi 4",
        turns("<|im_start|>user<|im_sep|>TEXT<|im_end|>", "<|im_start|>assistant<|im_sep|>"),
        {},
        None,
        "<|im_sep|>",
    ),
    ("nemotron v2", turns("<SPECIAL_11>User\nTEXT\n", "<SPECIAL_11>Assistant\n<think>\n"), {}, "<think>", "</think>"),
    (
        "nemotron v2, off",
        turns("<SPECIAL_11>User\nTEXT\n", "<SPECIAL_11>Assistant\n<think></think>"),
        {},
        None,
        "</think>",
    ),
    (
        "seed oss, no budget",
        turns(
            "<seed:bos>user\nTEXT<seed:eos>",
            "<seed:bos>assistant\n{% if thinking_budget == 0 %}<seed:think><seed:cot_budget_reflect>No budget."
            "</seed:cot_budget_reflect></seed:think>{% endif %}",
        ),
        {"thinking_budget": 0},
        None,
        "</seed:think>",
    ),
    (
        "seed oss, opened",
        turns("<seed:bos>user\nTEXT<seed:eos>", "<seed:bos>assistant\n<seed:think>"),
        {},
        "<seed:think>",
        "</seed:think>",
    ),
    ("minimax", turns("]~b]user\nTEXT[e~[\n", "]~b]ai\n<think>\n"), {}, "<think>", "</think>"),
    ("olmo", turns(IM, "<|im_start|>assistant\n<think>"), {}, "<think>", "</think>"),
    (
        "smollm3, off",
        turns(IM, "<|im_start|>assistant\n" + OFF + "<think>\n\n</think>\n{% endif %}"),
        {"enable_thinking": False},
        None,
        "</think>\n",
    ),
    ("ernie", turns(IM, "<|im_start|>assistant\n<think>\n"), {}, "<think>", "</think>"),
    (
        "apriel",
        turns("<|user|>\nTEXT\n", "<|assistant|>\nHere are my reasoning steps:\n"),
        {},
        "Here are my reasoning steps:",
        "[BEGIN FINAL RESPONSE]",
    ),
    (
        "kimi vl",
        turns("<|im_user|>user<|im_middle|>TEXT<|im_end|>", "<|im_assistant|>assistant<|im_middle|>◁think▷"),
        {},
        "◁think▷",
        "◁/think▷",
    ),
    (
        "longcat",
        turns("[Round 0] USER:TEXT", " ASSISTANT:<longcat_think>\n"),
        {},
        "<longcat_think>",
        "</longcat_think>",
    ),
    (
        "llama 3",
        turns(
            "<|start_header_id|>user<|end_header_id|>\n\nTEXT<|eot_id|>",
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
        {},
        None,
        "\n\n",
    ),
]
"""A family, its turns, the arguments, what opens a thought, and how the prompt ends where the answer begins."""


@pytest.mark.parametrize(("name", "source", "arguments", "opened", "end"), FAMILIES, ids=[row[0] for row in FAMILIES])
def test_a_thought_that_a_template_opens(
    name: str, source: str, arguments: dict[str, Any], opened: str | None, end: str
) -> None:
    template = ChatTemplate(with_template(source), arguments)
    found = template.opened
    assert (found and found.written.strip()) == opened
    answering = template.opening(USER)
    assert answering.rstrip("\n").endswith(end.rstrip("\n")) and "Hi" not in end
    if opened is None:
        assert answering == template.render(USER)
