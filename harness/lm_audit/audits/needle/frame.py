"""The frame around a task: the model's chat template, a template of the user's, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lm_audit.errors import UsageError

PLACE = "{task_template}"
_MARK = "\u2042 THE TASK GOES HERE \u2042"


@dataclass(frozen=True)
class Frame:
    """What stands before and after the task; ``special``: whether the tokenizer adds its own BOS to the prompt."""

    name: str
    before: str
    after: str
    special: bool


def frame_of(template: str, tokenizer: Any) -> Frame:
    """The frame that ``template`` names for this tokenizer.

    ``base``: none, the tokenizer adds its BOS. ``chat``: the tokenizer's chat template, its generation prompt included.
    ``auto``: ``chat`` where the tokenizer has a template, else ``base``. Any other text is a template of the user's
    and holds ``{task_template}``. Raises ``UsageError`` for ``chat`` without a template and text without the place.
    """
    has_chat = bool(getattr(tokenizer, "chat_template", None))
    if template == "chat" and not has_chat:
        name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
        raise UsageError(f"template 'chat': the tokenizer {name} has no chat template; use --template base or your own")
    if template == "base" or (template == "auto" and not has_chat):
        return Frame("base", "", "", special=True)
    if template in ("auto", "chat"):
        return _chat_frame(tokenizer)
    return _own_frame(template, tokenizer)


def _chat_frame(tokenizer: Any) -> Frame:
    messages = [{"role": "user", "content": _MARK}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    before, mark, after = text.partition(_MARK)
    if not mark or _MARK in after:
        raise UsageError("the chat template does not show the user's message exactly once; use --template base")
    return Frame("chat", before, after, special=False)


def _own_frame(template: str, tokenizer: Any) -> Frame:
    if template.count(PLACE) != 1:
        raise UsageError(f"template {template!r}: expected base, chat, auto, or a text that holds {PLACE} once")
    before, _, after = template.partition(PLACE)
    return Frame("own", before, after, special=True)
