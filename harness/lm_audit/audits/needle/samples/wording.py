"""What the prompt says: needle sentences, the task around the haystack, the question and the start of the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lm_audit.audits.needle.samples.drawing import ITEM_TYPES
from lm_audit.errors import UsageError

Language = Literal["en", "zh"]
LANGUAGES: tuple[str, ...] = get_args(Language)
_SENTENCE = re.compile(r"One of the special magic (?P<kind>\w+) for (?P<key>.+) is: (?P<value>.+)\.")
_CHINESE_TYPES = {"words": "词语", "numbers": "数字", "uuids": "编码"}


@dataclass(frozen=True)
class Needle:
    """A fact to hide and to ask for: its sentence, the key it is asked by and the value that answers."""

    text: str
    key: str
    value: str


@dataclass(frozen=True)
class Task:
    """The wording around a haystack. The prompt is ``opening + haystack + question``, then ``answer_prefix``."""

    opening: str
    question: str
    answer_prefix: str

    def on_one_line(self) -> Task:
        """The same with line breaks and tabs as spaces."""
        return Task(*(re.sub(r"[\n\t]", " ", part) for part in (self.opening, self.question, self.answer_prefix)))


def needle_sentence(kind: str, key: str, value: str, language: str = "en") -> str:
    """The sentence that states the value of a key; in English that of RULER, always in the plural."""
    check_language(language)
    if language == "zh":
        return f"{key}的神奇{_CHINESE_TYPES[kind]}之一是：{value}。"
    return f"One of the special magic {kind} for {key} is: {value}."


def parse_needle(text: str) -> tuple[str, Needle] | None:
    """Type and needle of a sentence in the wording of :func:`needle_sentence`; ``None`` for any other."""
    found = _SENTENCE.fullmatch(text.strip())
    if found is None or found["kind"] not in ITEM_TYPES:
        return None
    return found["kind"], Needle(text.strip(), found["key"], found["value"])


def join_keys(keys: Sequence[str], language: str = "en") -> str:
    """The keys as the question names them: ``a``; ``a, and b``; ``a, b, and c``."""
    if language == "zh":
        return "、".join(keys)
    return keys[0] if len(keys) == 1 else ", ".join(keys[:-1]) + f", and {keys[-1]}"


def task_wording(kind: str, keys: Sequence[str], values_per_key: int, language: str = "en") -> Task:
    """The wording of the task that asks for these keys; in the singular where one value answers."""
    check_language(language)
    single = len(keys) * values_per_key == 1
    build = _chinese if language == "zh" else _singular if single else _plural
    return build(kind, join_keys(keys, language))


def check_language(language: str) -> None:
    """``UsageError`` for a language without wording."""
    if language not in LANGUAGES:
        raise UsageError(f"language {language!r} has no wording; expected one of {', '.join(LANGUAGES)}")


def _singular(kind: str, query: str) -> Task:
    # Written out, not rewritten from the plural: replacing "are" by "is" would reach into chat templates.
    one = kind.removesuffix("s")
    return Task(
        f"A special magic {one} is hidden within the following text. Make sure to memorize it. "
        f"I will quiz you about the {one} afterwards.\n",
        f"\nWhat is the special magic {one} for {query} mentioned in the provided text?",
        f" The special magic {one} for {query} mentioned in the provided text is",
    )


def _plural(kind: str, query: str) -> Task:
    return Task(
        f"Some special magic {kind} are hidden within the following text. Make sure to memorize it. "
        f"I will quiz you about the {kind} afterwards.\n",
        f"\nWhat are all the special magic {kind} for {query} mentioned in the provided text?",
        f" The special magic {kind} for {query} mentioned in the provided text are",
    )


def _chinese(kind: str, query: str) -> Task:
    name = _CHINESE_TYPES[kind]
    return Task(
        f"下面的文字中藏有神奇{name}，请记住它们，之后我会问你。\n",
        f"\n文中提到的{query}的神奇{name}是什么？",
        f"文中提到的{query}的神奇{name}是：",
    )
