"""Replies as the templates of many families have them: the thought kept apart, cut inside it no answer."""

from __future__ import annotations

import pytest

from lm_audit.models.text.thinking import left_open, opened_thought, split_reply

T = "I weigh it.\nHmm."
A = "It is 42."
ANY = "*"
"""What is not held here."""

REPLIES: list[tuple[str, str, str, str | None, str | None]] = [
    ("r1 opened", "<｜Assistant｜><think>\n", f"{T}\n</think>\n\n{A}", T, A),
    ("r1 cut", "<｜Assistant｜><think>\n", T, T, None),
    ("qwen3", "<|im_start|>assistant\n", f"<think>\n{T}\n</think>\n\n{A}", T, A),
    ("qwen3 off", "<|im_start|>assistant\n<think>\n\n</think>\n\n", A, None, A),
    ("qwen3 empty", "<|im_start|>assistant\n", f"<think>\n\n</think>\n\n{A}", "", A),
    ("qwen3 cut", "<|im_start|>assistant\n", f"<think>\n{T}", T, None),
    ("qwen3 cut inside tag", "<|im_start|>assistant\n", "<thin", ANY, None),
    ("qwen3 next 2507", "<|im_start|>assistant\n<think>\n", f"{T}\n</think>\n\n{A}", T, A),
    ("gemma3", "<start_of_turn>model\n", A, None, A),
    (
        "harmony",
        "<|start|>assistant",
        f"<|channel|>analysis<|message|>{T}<|end|><|start|>assistant<|channel|>final<|message|>{A}<|return|>",
        T,
        A,
    ),
    ("harmony cut", "<|start|>assistant", f"<|channel|>analysis<|message|>{T}", T, None),
    (
        "harmony commentary",
        "<|start|>assistant",
        f"<|channel|>analysis<|message|>{T}<|end|><|start|>assistant<|channel|>commentary<|message|>I will look.<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{A}",
        ANY,
        A,
    ),
    (
        "harmony tool",
        "<|start|>assistant",
        f"<|channel|>analysis<|message|>{T}<|end|><|start|>assistant<|channel|>commentary to=functions.get "
        '<|constrain|>json<|message|>{"a":1}<|call|>',
        ANY,
        None,
    ),
    (
        "harmony two analyses",
        "<|start|>assistant",
        f"<|channel|>analysis<|message|>{T}<|end|><|start|>assistant<|channel|>analysis<|message|>More.<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{A}<|return|>",
        ANY,
        A,
    ),
    ("harmony final only", "<|start|>assistant", f"<|channel|>final<|message|>{A}<|return|>", ANY, A),
    ("harmony ended after analysis", "<|start|>assistant", f"<|channel|>analysis<|message|>{T}<|end|>", ANY, None),
    ("harmony skipped special", "<|start|>assistant", f"analysis{T}assistantfinal{A}", T, A),
    ("magistral", "[/INST]", f"[THINK]{T}[/THINK]{A}", T, A),
    ("magistral cut", "[/INST]", f"[THINK]{T}", T, None),
    ("magistral 2506", "[/INST]", f"<think>\n{T}\n</think>\n{A}", T, A),
    (
        "granite",
        "<|start_of_role|>assistant<|end_of_role|>",
        f"Here is my thought process:\n{T}\n\nHere is my response:\n{A}",
        T,
        A,
    ),
    ("granite 3.3", "<|start_of_role|>assistant<|end_of_role|>", f"<think>{T}</think><response>{A}</response>", T, A),
    (
        "granite 3.3 cut",
        "<|start_of_role|>assistant<|end_of_role|>",
        f"<think>{T}</think><response>It is",
        ANY,
        "It is",
    ),
    ("exaone deep", "[|assistant|]<thought>\n", f"{T}\n</thought>\n\n{A}", T, A),
    ("exaone4", "[|assistant|]\n<think>\n", f"{T}\n</think>\n\n{A}", T, A),
    (
        "command-a",
        "<|CHATBOT_TOKEN|>",
        f"<|START_THINKING|>{T}<|END_THINKING|><|START_RESPONSE|>{A}<|END_RESPONSE|>",
        T,
        A,
    ),
    ("command-a cut", "<|CHATBOT_TOKEN|>", f"<|START_THINKING|>{T}", T, None),
    (
        "command-a action",
        "<|CHATBOT_TOKEN|>",
        f'<|START_THINKING|>{T}<|END_THINKING|><|START_ACTION|>[{{"tool":1}}]<|END_ACTION|>',
        T,
        ANY,
    ),
    (
        "command-a opened",
        "<|CHATBOT_TOKEN|><|START_THINKING|>",
        f"{T}<|END_THINKING|><|START_TEXT|>{A}<|END_TEXT|>",
        T,
        A,
    ),
    ("hunyuan", "<｜hy_Assistant｜>", f"<think>\n{T}\n</think>\n<answer>\n{A}\n</answer>", T, A),
    ("hunyuan cut answer", "<｜hy_Assistant｜>", f"<think>\n{T}\n</think>\n<answer>\nIt is", T, "It is"),
    ("hunyuan fast", "<｜hy_Assistant｜>", f"<think>\n\n</think>\n<answer>\n{A}\n</answer>", "", A),
    ("glm45", "<|assistant|>", f"\n<think>{T}</think>\n{A}", T, A),
    ("glm45 off", "<|assistant|>\n<think></think>\n", A, None, A),
    ("glm45 box", "<|assistant|>", f"<think>{T}</think><|begin_of_box|>{A}<|end_of_box|>", T, A),
    ("kimi-dev", "<|im_assistant|>assistant<|im_middle|>", f"◁think▷{T}◁/think▷{A}", T, A),
    ("kimi cut", "<|im_assistant|>assistant<|im_middle|>", f"◁think▷{T}", T, None),
    ("kimi k2 thinking", "<|im_assistant|>assistant<|im_middle|>", f"<think>{T}</think>{A}", T, A),
    ("phi4", "<|im_start|>assistant<|im_sep|>", f"<think>{T}</think>{A}", T, A),
    ("phi4 mini", "<|assistant|>", f"<think>\n{T}\n</think>\n\n{A}", T, A),
    ("nemotron on", "assistant<|end_header_id|>\n\n", f"<think>\n{T}\n</think>\n\n{A}", T, A),
    ("nemotron nano v2", "<SPECIAL_11>Assistant\n<think>\n", f"{T}\n</think>\n\n{A}", T, A),
    ("nemotron off", "<SPECIAL_11>Assistant\n<think></think>", A, None, A),
    (
        "seed-oss",
        "<seed:bos>assistant\n",
        f"<seed:think>{T}<seed:cot_budget_reflect>I have used 9 tokens.</seed:cot_budget_reflect></seed:think>{A}",
        ANY,
        A,
    ),
    ("seed-oss cut", "<seed:bos>assistant\n", f"<seed:think>{T}", T, None),
    ("minimax m1", "<beginning_of_sentence>ai name=MiniMax\n", f"<think>\n{T}\n</think>\n\n{A}", T, A),
    ("minimax m2", "]~b]ai\n<think>\n", f"{T}\n</think>\n\n{A}", T, A),
    ("olmo think", "<|im_start|>assistant\n<think>", f"{T}</think>{A}", T, A),
    ("olmo think cut", "<|im_start|>assistant\n<think>", f"{T}", T, None),
    ("deepseek v3.1", "<｜Assistant｜></think>", A, None, A),
    ("step3", "<|BOT|>assistant\n<think>\n", f"{T}\n</think>\n{A}", T, A),
    ("ernie", "<|im_start|>assistant\n<think>\n", f"{T}\n</think>\n\n<response>\n{A}\n</response>\n", T, A),
    (
        "apriel",
        "<|assistant|>\nHere are my reasoning steps:\n",
        f"{T}\n[BEGIN FINAL RESPONSE]\n{A}\n[END FINAL RESPONSE]",
        T,
        A,
    ),
    ("apriel cut", "<|assistant|>\nHere are my reasoning steps:\n", T, T, None),
    ("solar", "<|begin|>assistant", f"<|think|>{T}<|end|><|begin|>assistant<|content|>{A}<|end|>", T, A),
    ("ring", "<role>ASSISTANT</role>", f"<think>\n{T}\n</think>\n\n{A}", T, A),
    (
        "sky",
        "<|im_start|>assistant\n",
        f"<|begin_of_thought|>{T}<|end_of_thought|><|begin_of_solution|>{A}<|end_of_solution|>",
        T,
        A,
    ),
    ("reflection", "assistant\n", f"<thinking>{T}</thinking><output>{A}</output>", T, A),
    ("dots", "<|im_start|>assistant\n", f"<think>{T}</think>\n\n{A}", T, A),
    ("mimo", "<|im_start|>assistant\n", f"<think>{T}</think>{A}", T, A),
    ("gemma4-like", "<start_of_turn>model\n", f"<|channel>thought\n{T}<channel|>{A}", T, A),
    ("longcat", "<longcat_assistant>", f"<longcat_think>{T}</longcat_think>{A}", T, A),
    ("hermes4", "<|im_start|>assistant\n", f"<think>\n{T}\n</think>\n{A}", T, A),
    ("ds prose about tag", "x", "The <think> tag opens a thought.", None, "The <think> tag opens a thought."),
    ("thought only ended", "<|im_start|>assistant\n", f"<think>{T}</think>", T, ""),
    ("nested think", "x", f"<think>a <think> b</think>{A}", ANY, A),
    ("lone close", "x", f"{T}</think>{A}", T, A),
    ("smollm3", "<|im_start|>assistant\n<think>\n\n</think>\n", A, None, A),
    ("afm", "<|im_start|>assistant\n", f"<think>{T}</think>\n<answer>{A}</answer>", T, A),
    ("jan", "x", f"<think>{T}</think>\n\n**Final Answer**: {A}", T, f"**Final Answer**: {A}"),
    ("falcon h1r", "<|im_start|>assistant\n<think>\n", f"{T}</think>\n{A}", T, A),
    ("internlm", "<|im_start|>assistant\n", f"<think>{T}</think>{A}", T, A),
    ("ling", "<role>ASSISTANT</role>", A, None, A),
    ("cogito", "x", f"<think>\n{T}\n</think>\n\n{A}", T, A),
    ("trinity nano", "x", f"<think>{T}</think>{A}", T, A),
    ("k2-think", "<|im_start|>assistant\n", f"<think>{T}</think>\n<answer>{A}</answer>", T, A),
    ("inner thoughts", "x", f"<inner_thoughts>{T}</inner_thoughts>{A}", T, A),
    ("thought-process", "x", f"<thought-process>{T}</thought-process>{A}", T, A),
    ("brackets closed", "x", f"【思考】{T}【/思考】{A}", T, A),
    ("heading with a sign", "x", f"## 🤔 Thinking\n{T}\n## Response\n{A}", T, A),
    (
        "gpt-oss refusal",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>The user wants X. Disallowed. We must refuse.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>I’m sorry, but I can’t help with that.<|return|>",
        ANY,
        "I’m sorry, but I can’t help with that.",
    ),
]
"""A family, the end of its prompt, its reply, the thought and the answer in it."""


@pytest.mark.parametrize(("name", "prompt", "text", "thought", "answer"), REPLIES, ids=[row[0] for row in REPLIES])
def test_thought_and_answer(name: str, prompt: str, text: str, thought: str | None, answer: str | None) -> None:
    opened = opened_thought(prompt) or left_open(prompt)
    reply = split_reply(text, opened=opened, cut="cut" in name)
    if answer != ANY:
        assert (reply.answer and reply.answer.strip()) == answer
    if thought != ANY:
        assert (reply.thought or "") == (thought or "")
