"""The frame around a task: the model's chat template, a template of the user's, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lm_audit.audits.needle.samples.template_text import PLACE, check_template
from lm_audit.errors import UsageError
from lm_audit.models.text.chat import ChatTemplate, template_source
from lm_audit.models.text.thinking import left_open
from lm_audit.models.text.thought_markers import ThoughtMarkers
from lm_audit.models.text.tokenizer import Tokenizer

MESSAGES = "messages"
"""The name of the frame that a server puts round a message itself."""


@dataclass(frozen=True)
class Frame:
    """What stands before and after the task; ``special``: whether the tokenizer adds its own BOS to the prompt.

    ``opened``: the markers of a thought that the text after the task opens; the answer then has no prescribed start.
    ``extra``: tokens that a server's own template adds round the task, which is sent as a user's message.
    """

    name: str
    before: str
    after: str
    special: bool
    opened: ThoughtMarkers | None = None
    extra: int = 0


def frame_of(
    template: str, tokenizer: Tokenizer, chat_args: Mapping[str, object] | None = None, *, thinking: bool = True
) -> Frame:
    """The frame that ``template`` names for this tokenizer; without ``thinking`` a thought that it opens is closed.

    ``base``: none, the tokenizer adds its BOS. ``chat``: the tokenizer's chat template, its generation prompt included.
    ``auto``: ``chat`` where the tokenizer has a template, else ``base``. Any other text is a template of the user's
    and holds ``{task_template}``. ``chat_args`` are arguments of the chat template. Raises ``UsageError`` for ``chat``
    without a template and text without the place, and what :class:`lm_audit.models.text.chat.ChatTemplate` raises.
    """
    frame = _named(template, tokenizer, chat_args or {})
    if frame.opened is None or thinking:
        return frame
    return replace(frame, after=frame.after.rstrip("\n") + frame.opened.close, opened=None)


def _named(template: str, tokenizer: Tokenizer, chat_args: Mapping[str, object]) -> Frame:
    extra = getattr(tokenizer, "message_tokens", None)
    if extra is not None and template in ("auto", "chat"):
        return Frame(MESSAGES, "", "", special=False, extra=extra)
    has_chat = template_source(tokenizer) is not None
    if template == "chat" and not has_chat:
        name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
        raise UsageError(f"template 'chat': the tokenizer {name} has no chat template; use --template base or your own")
    if template == "base" or (template == "auto" and not has_chat):
        return Frame("base", "", "", special=True)
    if template in ("auto", "chat"):
        chat = ChatTemplate(tokenizer, chat_args)
        before, after = chat.around_user
        return Frame("chat", before, after, special=False, opened=chat.opened)
    return _own_frame(template, tokenizer)


def _own_frame(template: str, tokenizer: Tokenizer) -> Frame:
    check_template(template)
    before, _, after = template.partition(PLACE)
    return Frame("own", before, after, special=True, opened=left_open(after))
