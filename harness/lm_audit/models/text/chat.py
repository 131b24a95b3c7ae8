"""The chat template of a model: rendering a conversation with the user's arguments, errors in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from lm_audit.errors import DataError, ModelError, UsageError
from lm_audit.models.files.json_file import one_line
from lm_audit.models.text.bounded import BoundsError, bounded
from lm_audit.models.text.thinking import left_open
from lm_audit.models.text.thought_markers import ThoughtMarkers
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.textfiles import is_file
from lm_audit.shared.textfiles.json_text import NotJsonError, parse_json

ChatMode = Literal["auto", "on", "off"]
"""Prompts in the model's chat template: as each audit has it by default, always, or never."""
CHAT_MODES: tuple[str, ...] = get_args(ChatMode)

Messages = Sequence[Mapping[str, Any]]

_OWN = frozenset(
    [
        "conversation",
        "messages",
        "tools",
        "documents",
        "chat_template",
        "tokenize",
        "add_generation_prompt",
        "continue_final_message",
        "padding",
        "truncation",
        "max_length",
        "return_tensors",
        "return_dict",
        "return_assistant_tokens_mask",
        "tokenizer_kwargs",
    ]
)
_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_TIMES = 5
"""How often a template is tried again: a choice between two is found out 31 of 32 times."""
_LONGEST, _TIMES_LONGER = 1_000_000, 20
"""Characters of its own that a template adds at most, and how often it says what it was given."""
_SPENT: dict[tuple[str | None, str], str] = {}
"""Templates of this process, with their arguments, that went beyond a limit: they are not rendered again."""
_PLACEHOLDER = "\u2042 what the user says \u2042"


@dataclass(frozen=True)
class ChatSettings:
    """How a model is talked to: arguments of its chat template, and how many tokens its thought may have.

    ``thinking_tokens``: a thought that reaches so many tokens is closed and the answer asked for; ``None``: thought and
    answer share one limit, and a reply cut inside its thought has no answer.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    thinking_tokens: int | None = None

    @property
    def key(self) -> str:
        """A text by which remembered replies tell settings apart."""
        return json.dumps([dict(self.arguments), self.thinking_tokens], sort_keys=True)


def parse_chat_arguments(entries: Iterable[str]) -> dict[str, Any]:
    """``KEY=VALUE`` entries as template arguments: VALUE is JSON where it reads as JSON, else text.

    ``True``, ``False`` and ``None`` count as written in Python, since the text "False" would be true to a template.
    Raises ``UsageError`` for an entry without ``=``, a key that no template could name, or one given twice.
    """
    found: dict[str, Any] = {}
    for entry in entries:
        key, separator, text = entry.partition("=")
        if not _is_text(entry):
            raise UsageError(
                f"--chat-args {entry!r:.80}: is no text (half of a surrogate pair, or bytes that are not UTF-8)"
            )
        if not separator or not key.isidentifier():
            raise UsageError(
                f"--chat-args {entry!r:.80}: write KEY=VALUE, for example --chat-args enable_thinking=false"
            )
        if key in _OWN:
            raise UsageError(f"--chat-args {entry!r:.80}: {key:.60} is what the audit itself gives the template")
        if key in found:
            raise UsageError(f"--chat-args {entry!r:.80}: {key:.60} is given twice")
        found[key] = _value(text, entry)
    return found


def _is_text(entry: str) -> bool:
    try:
        entry.encode()
    except UnicodeEncodeError:
        return False
    return True


def _value(text: str, entry: str) -> Any:
    if text in _PYTHON_WORDS:
        return _PYTHON_WORDS[text]
    try:
        return parse_json(text, None, None)
    except NotJsonError:
        return text
    except DataError as error:
        raise UsageError(f"--chat-args {entry!r:.80}: the value {error}") from error


class ChatTemplate:
    """A tokenizer's chat template.

    Raises ``UsageError`` for a tokenizer without one, an argument it never reads, or one that it takes for another.
    """

    def __init__(self, tokenizer: Tokenizer, arguments: Mapping[str, object] | None = None, *, name: str | None = None):
        self._tokenizer = tokenizer
        self._arguments = dict(arguments or {})
        self._name = name or str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)
        self._in_parts = False
        self.source = template_source(tokenizer)
        if not self.source:
            raise UsageError(f"the tokenizer of model {self._name} has no chat template; use --chat off")
        from lm_audit.models.text.template_variables import reads  # jinja2, only where somebody gives arguments

        unknown = [key for key in self._arguments if not reads(self.source, key)]
        if unknown:
            raise UsageError(
                f"--chat-args {unknown[0]}: the chat template of model {self._name} reads no such argument, "
                "so it would change nothing"
            )
        for key, value in self._arguments.items():
            self._check_switch(key, value)

    def _check_switch(self, key: str, value: object) -> None:
        """Refuse what a template only takes for yes or no, and may take for the other: the text "off" is true to it."""
        if isinstance(value, bool) or value is None:
            return
        said, on, off = (self._tried({**self._arguments, key: tried}) for tried in (value, True, False))
        if said is None or on == off or said not in (on, off):
            return
        if isinstance(value, str) or bool(value) != (said == on):
            raise UsageError(
                f"--chat-args {key}={value!r:.80}: the chat template of model {self._name} takes that for "
                f"{'true' if said == on else 'false'}, whatever it says; write {key}=true or {key}=false"
            )

    def _tried(self, arguments: dict[str, object]) -> str | None:
        """A turn of the user under other arguments, ``None`` where the template fails on them."""
        template = copy(self)
        template._arguments = arguments
        try:
            return template._shown([{"role": "user", "content": _PLACEHOLDER}])
        except ModelError:
            return None

    def render(self, messages: Messages, *, generation_prompt: bool = True) -> str:
        """The conversation as text; ``ModelError`` where the template fails or leaves the user's turn out."""
        if any(message.get("role") == "user" for message in messages):
            _ = self.around_user
        return self._apply(messages, generation_prompt)

    @cached_property
    def around_user(self) -> tuple[str, str]:
        """The template's text before and after what a user says as the only turn, generation prompt included.

        ``ModelError`` where the template does not show the user's turn exactly once, or does so otherwise each time.
        """
        turn = [{"role": "user", "content": _PLACEHOLDER}]
        text = self._shown(turn)
        before, found, after = text.partition(_PLACEHOLDER)
        if not found or _PLACEHOLDER in after:
            raise ModelError(
                f"the chat template of model {self._name} does not show the user's turn exactly once, so nothing can "
                "be asked with it; use --chat off"
            )
        if any(self._apply(turn, True) != text for _ in range(_TIMES)):
            raise ModelError(
                f"the chat template of model {self._name} gives another prompt each time (chance, or the clock), so"
                " that no answer could be had twice; use --chat off"
            )
        return before, after

    def _shown(self, turn: Messages) -> str:
        """A conversation of one turn; what is said is given in parts where the template takes nothing else.

        Templates of models that see pictures often go through parts, and show nothing of a text that is one piece.
        """
        try:
            text, failure = self._apply(turn, True), None
        except ModelError as error:
            if self._key in _SPENT:
                raise
            text, failure = "", error
        if _PLACEHOLDER not in text:
            self._in_parts = True
            try:
                parted = self._apply(turn, True)
            except ModelError:
                parted = ""
            if _PLACEHOLDER in parted:
                return parted
            self._in_parts = False
        if failure is not None:
            raise failure
        return text

    @property
    def opened(self) -> ThoughtMarkers | None:
        """The markers of the thought that the template opens at the start of the model's turn, if it does."""
        return left_open(self.around_user[1])

    def opening(self, messages: Messages) -> str:
        """The conversation up to where the model's answer begins: a thought that the template opens is closed."""
        text = self.render(messages)
        return text if self.opened is None else text.rstrip("\n") + self.opened.close

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        content = message.get("content")
        if self._in_parts and isinstance(content, str):
            return {**message, "content": [{"type": "text", "text": content}]}
        return dict(message)

    def _apply(self, messages: Messages, generation_prompt: bool) -> str:
        if self._key in _SPENT:
            raise ModelError(_SPENT[self._key])
        try:
            with bounded():
                text = str(
                    self._tokenizer.apply_chat_template(
                        [self._message(message) for message in messages],
                        tokenize=False,
                        add_generation_prompt=generation_prompt,
                        **self._arguments,
                    )
                )
        except BoundsError as error:
            _SPENT[self._key] = f"{self._named} {error} when it renders a conversation; repair it, or use --chat off"
            raise ModelError(_SPENT[self._key]) from error
        except Exception as error:  # A template is a program of the model's author, and may fail in any way.
            roles = ", ".join(str(message.get("role")) for message in messages)
            raise ModelError(
                f"{self._named} fails on a conversation of the roles {roles:.300}: "
                f"{type(error).__name__}: {one_line(str(error)[:2000])}; use --chat off, or other --chat-args"
            ) from error
        if len(text) > _LONGEST and len(text) > _LONGEST + _TIMES_LONGER * _letters(messages):
            raise ModelError(
                f"{self._named} makes {len(text):,} characters of a conversation of {_letters(messages):,}; repair it,"
                " or use --chat off"
            )
        return text

    @property
    def _key(self) -> tuple[str | None, str]:
        return self.source, repr(self._arguments)

    @property
    def _named(self) -> str:
        """The template by its model, and by the file that it was read from, where one is known."""
        folder = Path(str(getattr(self._tokenizer, "name_or_path", "") or ""))
        places = [folder / name for name in ("chat_template.jinja", "tokenizer_config.json")]
        file = next((place for place in places if folder.parts and is_file(place)), None)
        return f"the chat template of model {self._name}" + (f" ({file})" if file is not None else "")


def _letters(messages: Messages) -> int:
    return sum(len(str(message)) for message in messages)


def template_source(tokenizer: Tokenizer) -> str | None:
    """The chat template that a tokenizer would use, as text; ``None`` where it has none."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, str) or not template:
        return template or None
    try:
        return str(tokenizer.get_chat_template())
    except ValueError:  # several named templates, and none called "default"
        return None


def in_template(tokenizer: Tokenizer, mode: str, *, default: ChatMode, name: str | None = None) -> bool:
    """Whether prompts go into the chat template.

    ``default`` is what the audit does in mode "auto": "on" or "off" as said, "auto" where the tokenizer has a template.
    ``UsageError`` where the template is asked for by name and absent.
    """
    chosen = default if mode == "auto" else mode
    has = template_source(tokenizer) is not None
    if chosen == "on" and not has:
        name = name or str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)
        raise UsageError(f"--chat on: the tokenizer of model {name} has no chat template; use --chat off")
    return has if chosen == "auto" else chosen == "on"
