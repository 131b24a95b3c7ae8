"""How families of models mark a thought, by their own chat templates and model cards."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class ThoughtMarkers:
    """How a family of models opens and closes its thought.

    ``opening`` and ``closing`` are regular expressions. ``written`` is the opening as a model or a template writes it,
    ``close`` what closes a thought from outside. ``whole``: these are words of ordinary prose, which mark a thought
    only where a text begins with the opening and the closing follows.
    """

    name: str
    opening: str
    closing: str
    written: str
    close: str
    whole: bool = False


def _tags(opening: str, closing: str) -> ThoughtMarkers:
    return ThoughtMarkers(opening, _spelt(opening), _spelt(closing), opening, f"\n{closing}\n\n")


_LESS, _GREATER = r"(?:<|&lt;|\\u003c|＜)", r"(?:>|&gt;|\\u003e|＞)"


def _spelt(tag: str) -> str:
    """The ways to spell a tag: one of XML may hold white space and attributes, and be escaped for HTML or JSON.

    One between bars may have the wide bars of DeepSeek's tokens.
    """
    if not re.fullmatch(r"</?[\w:-]+>", tag):
        return re.escape(tag).replace(r"\|", "[|｜]")
    name = re.escape(tag.strip("</>"))
    if tag[1] == "/":
        return rf"{_LESS}\s?/\s?{name}\s*{_GREATER}"
    return rf"{_LESS}\s?{name}(?:\s[^<>&＞]{{0,80}})?{_GREATER}"


_OTHER_NAMES = (
    *("rationale", "cot", "chain_of_thought", "thought_process", "thinking_process", "reasoning_process"),
    *("internal_thought", "internal_thoughts", "internal_monologue", "monologue", "reasoning_content", "deepthink"),
    *("deep_think", "deep_thinking", "mm:think", "antthinking", "planning", "judge", "思考", "思考过程"),
    *("inner_thought", "inner_thoughts", "internal_reasoning", "my_thoughts", "self_reflection", "think_faster"),
    *("thought-process", "inner-monologue", "chain-of-thought"),
)
"""What fine-tunes and system prompts call the tag of a thought beside the families below."""

_MARK = r"(?:\*\*|__)"
_THOUGHT = (
    r"(?:thinking|thoughts?|reasoning|(?:my )?(?:thought|thinking|reasoning) process|chain of thought"
    r"|思考(?:过程|過程)?|推理(?:过程|過程)?)"
)
_ANSWER = (
    r"(?:(?:my |the )?(?:final )?(?:answer|response|reply)"
    r"|(?:最终|最終)?(?:答案|回答|回复|回覆))"
)


def _titled(title: str) -> str:
    """A title over a part of a reply, or before it: bold, as a heading, or with a colon alone."""
    bold = rf"{_MARK}{title}(?:[:：]{_MARK}|{_MARK}[ ]?[:：]|{_MARK}[ \t]*(?=\n|\Z))"
    heading = rf"#{{1,6}}[ ]+{_MARK}?(?:[^\w\n]{{1,3}}[ ])?{title}[:：]?{_MARK}?[:：]?[^\w\n]{{0,6}}(?:\n|\Z)"
    return rf"(?i:{bold}|{heading}|{title}[ ]?[:：])"


MARKERS: tuple[ThoughtMarkers, ...] = (
    _tags("<think>", "</think>"),  # DeepSeek-R1, Qwen3, QwQ, Hunyuan, GLM, Granite 3.3, MiMo, Nemotron, SmolLM3
    _tags("<thinking>", "</thinking>"),
    _tags("<thought>", "</thought>"),  # EXAONE Deep
    _tags("<thoughts>", "</thoughts>"),
    _tags("<reasoning>", "</reasoning>"),
    _tags("<reason>", "</reason>"),
    _tags("<analysis>", "</analysis>"),
    _tags("<reflection>", "</reflection>"),
    _tags("<inner_monologue>", "</inner_monologue>"),
    _tags("<scratchpad>", "</scratchpad>"),
    *(_tags(f"<{name}>", f"</{name}>") for name in _OTHER_NAMES),
    _tags("<longcat_think>", "</longcat_think>"),
    _tags("<seed:think>", "</seed:think>"),  # Seed-OSS
    _tags("[THINK]", "[/THINK]"),  # Magistral
    _tags("[THINKING]", "[/THINKING]"),
    _tags("[THOUGHT]", "[/THOUGHT]"),
    _tags("[REASONING]", "[/REASONING]"),
    _tags("◁think▷", "◁/think▷"),  # Kimi
    _tags("<|begin_of_thought|>", "<|end_of_thought|>"),  # OpenThinker, Sky-T1
    _tags("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A Reasoning
    _tags("<|begin_of_think|>", "<|end_of_think|>"),
    _tags("<|begin_of_thinking|>", "<|end_of_thinking|>"),
    _tags("<|think_start|>", "<|think_end|>"),
    _tags("<|thinking_start|>", "<|thinking_end|>"),
    _tags("<|thought_start|>", "<|thought_end|>"),
    _tags("<|thinking|>", "<|/thinking|>"),
    _tags("<|thought|>", "<|/thought|>"),
    _tags("<|begin_thought|>", "<|end_thought|>"),
    _tags("<|start_of_thought|>", "<|end_of_thought|>"),
    _tags("<|start_thinking|>", "<|end_thinking|>"),
    _tags("<|begin▁of▁thinking|>", "<|end▁of▁thinking|>"),
    _tags("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    _tags("[unused16]", "[unused17]"),  # openPangu
    ThoughtMarkers(  # HyperCLOVA X SEED Think
        "assistant/think",
        r"<\|im_start\|>assistant/think\n",
        r"(?:<\|im_end\|>\s*)?<\|im_start\|>assistant\n",
        "<|im_start|>assistant/think\n",
        "<|im_end|>\n<|im_start|>assistant\n",
    ),
    ThoughtMarkers(  # gpt-oss: whatever comes before the channel "final"
        "<|channel|>",
        r"(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)(?:[^<]*<\|message\|>)?",
        r"(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final(?:(?:[^<]|<\|constrain\|>)*<\|message\|>)?",
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    ThoughtMarkers(  # Solar Open
        "<|think|>",
        r"<\|think\|>",
        r"<\|end\|>(?:<\|begin\|>assistant)?<\|content\|>",
        "<|think|>",
        "<|end|><|begin|>assistant<|content|>",
    ),
    ThoughtMarkers("<|channel>", r"<\|channel>thought\n?", r"<channel\|>", "<|channel>thought\n", "\n<channel|>"),
    ThoughtMarkers(  # MedGemma 1.5
        "<unused94>", r"<unused94>(?:thought\n)?", r"<unused95>", "<unused94>thought\n", "<unused95>"
    ),
    ThoughtMarkers(  # s1
        "<|im_start|>think",
        r"<\|im_start\|>think\n",
        r"(?:<\|im_end\|>\s*)?<\|im_start\|>answer\n",
        "<|im_start|>think\n",
        "\n<|im_start|>answer\n",
    ),
    # gpt-oss where whoever decoded its reply left the special tokens out.
    ThoughtMarkers("analysis", r"\Aanalysis", r"assistantfinal", "analysis", "assistantfinal", whole=True),
    ThoughtMarkers(  # Apriel, whose template opens it; elsewhere these words are prose unless the closing follows
        "Here are my reasoning steps:",
        r"\AHere are my reasoning steps:(?=[\s\S]*\[BEGIN FINAL RESPONSE\])",
        r"\[BEGIN FINAL RESPONSE\]",
        "Here are my reasoning steps:\n",
        "\n[BEGIN FINAL RESPONSE]\n",
    ),
    ThoughtMarkers(  # HuatuoGPT
        "## Thinking",
        r"\A## Thinking\n",
        r"^## Final Response\n",
        "## Thinking\n",
        "\n\n## Final Response\n\n",
        whole=True,
    ),
    ThoughtMarkers(  # Granite 3.2
        "Here is my thought process:",
        r"\AHere(?: is|'s) my thought process:",
        r"^Here(?: is|'s) my response:",
        "Here is my thought process:",
        "\n\nHere is my response:\n",
        whole=True,
    ),
    ThoughtMarkers(  # what Ollama's command line prints around a thought
        "Thinking...",
        r"\AThinking(?:\.\.\.|…)[ \t]*\r?\n",
        r"(?:\.\.\.|…)done thinking\.[ \t]*",
        "Thinking...\n",
        "\n...done thinking.\n\n",
        whole=True,
    ),
    ThoughtMarkers(
        "**Thinking:**",
        rf"\A{_titled(_THOUGHT)}",
        rf"^[ \t]*{_titled(_ANSWER)}",
        "**Thinking:**\n",
        "\n\n**Answer:**\n",
        whole=True,
    ),
    ThoughtMarkers(
        "【思考】",
        r"\A【(?:思考|推理)(?:过程|過程)?】",
        rf"【(?:{_ANSWER}|/(?:思考|推理)(?:过程|過程)?)】",
        "【思考】",
        "\n【回答】",
        whole=True,
    ),
    ThoughtMarkers(
        "```thinking",
        r"\A```(?:think(?:ing)?|thoughts?|reasoning)[ \t]*\n",
        r"^```[ \t]*(?:\n|\Z)",
        "```thinking\n",
        "\n```\n\n",
        whole=True,
    ),
    ThoughtMarkers(  # as chat pages fold a thought in what they export
        "<details>",
        r"\A<details(?:\s[^<>]{0,200})?>\s*<summary>[^<]{0,80}(?i:think|thought|reason|思考|推理)[^<]{0,80}</summary>",
        r"</details>",
        "<details>\n<summary>Thinking</summary>\n",
        "\n</details>\n\n",
        whole=True,
    ),
)
"""Every known way to mark a thought."""
