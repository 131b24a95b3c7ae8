"""RunOptions: what the user asked for, in one frozen record that audits read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

import pytest

from lm_audit.audits.option import AuditOption
from lm_audit.errors import UsageError
from lm_audit.models.text.chat import ChatMode, ChatSettings, ChatTemplate, in_template, parse_chat_arguments
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.plugin.options.audit_options import audit_options
from lm_audit.plugin.options.endpoint_options import EndpointOptions, endpoint_options
from lm_audit.plugin.options.model_choice import ModelChoice, parse_choices
from lm_audit.plugin.options.naming import left_out
from lm_audit.shared.names import alike, told_apart, unreadable
from lm_audit.shared.number_checks import suggestion

Size = Literal["smoke", "standard", "full"]
SIZES: tuple[str, ...] = get_args(Size)
DEFAULT_MODEL = "smollm2"
THINKING_TOKENS = 1024
"""Room for a thought where ``--thinking-tokens`` gives none."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run.

    ``data`` maps the names of public data sets to paths or hub ids (``--data NAME=PATH``); ``devices`` and ``models``
    are what cases are multiplied by; ``limit`` is read with :meth:`items`; ``audit`` holds the audits' own
    options, read with :meth:`option`. ``endpoint`` says how servers are talked to. ``chat``, ``chat_args`` and
    ``thinking_tokens`` say how a model is talked to; see :meth:`chat_mode` and ``chat_settings``. ``device_map``,
    ``batch_tokens`` and ``packed_weights`` say where a model lies, how much it reads at once and by which copy of its
    weights, and change no result.
    """

    size: Size = "smoke"
    limit: int | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    devices: tuple[str, ...] = ("cpu",)
    models: tuple[ModelChoice, ...] = ()
    audit: Mapping[str, Any] = field(default_factory=dict)
    trust_remote_code: bool = False
    dtype: str = "auto"
    device_map: str | None = None
    batch_tokens: int | None = None
    packed_weights: bool | None = None
    chat: ChatMode = "auto"
    chat_args: Mapping[str, Any] = field(default_factory=dict)
    thinking_tokens: int = THINKING_TOKENS
    endpoint: EndpointOptions = field(default_factory=EndpointOptions)

    @property
    def device(self) -> str:
        """The first device."""
        return self.devices[0]

    @property
    def chat_settings(self) -> ChatSettings:
        """How every model of the run is talked to."""
        return ChatSettings(dict(self.chat_args), self.thinking_tokens)

    def chat_mode(self, own: ChatMode | None = None, flag: str = "") -> ChatMode:
        """``--chat``, or what an audit's ``own`` older option ``flag`` says; ``UsageError`` where the two disagree."""
        if own is None or own == self.chat:
            return self.chat
        if self.chat != "auto":
            raise UsageError(f"--chat {self.chat} and {flag} say different things; leave {flag} out")
        return own

    def in_template(
        self,
        tokenizer: Tokenizer,
        *,
        default: ChatMode,
        own: ChatMode | None = None,
        flag: str = "",
        name: str | None = None,
    ) -> bool:
        """Whether prompts go into the chat template, where ``default`` is what the audit does unless told otherwise.

        Raises what :meth:`chat_mode` and :func:`lm_audit.models.text.chat.in_template` raise, and ``ModelError`` for a
        template that fails or leaves the user's turn out.
        """
        if not in_template(tokenizer, self.chat_mode(own, flag), default=default, name=name):
            return False
        # One that is broken is told now; where messages are sent, the template is the server's and not here.
        if getattr(tokenizer, "message_tokens", None) is None:
            _ = ChatTemplate(tokenizer, self.chat_args, name=name).around_user
        return True

    def items(self, of_size: int | None, own: int | None = None) -> int | None:
        """How many items of a set are measured: what the audit's ``own`` option says, else ``--limit``, else the size.

        ``None`` is all of them.
        """
        return own if own is not None else of_size if self.limit is None else self.limit

    def option(self, name: str) -> Any:
        """The value of an audit's own option, by its flag without dashes; ``UsageError`` where none is called so."""
        key = name.removeprefix("--").replace("-", "_")
        if key not in self.audit:
            raise UsageError(f"no audit option is called {name!r}{suggestion(key, self.audit)}")
        return self.audit[key]


def parse_data(entries: list[str]) -> dict[str, str]:
    """``--data NAME=PATH`` entries as a mapping.

    ``UsageError`` for one without ``=``, a name given twice or that cannot be read, and names that look alike.
    """
    data: dict[str, str] = {}
    for entry in entries:
        name, separator, where = entry.partition("=")
        if not separator or not name or not where:
            raise UsageError(f"--data {entry!r}: write --data NAME=PATH, for example --data crows_pairs=pairs.csv")
        if unreadable(name) is not None:
            raise UsageError(f"--data {entry!r}: the name {name!r} {unreadable(name)}")
        if data.get(name, where) != where:
            raise UsageError(f"--data {entry!r}: {name} is already {data[name]!r}")
        data[name] = where
    pair = alike(data)
    if pair is not None:
        both = f"{told_apart(pair[0])} and {told_apart(pair[1])}"
        raise UsageError(f"--data: the names {both} look alike; keep one of them")
    return data


def from_config(config: pytest.Config, devices: tuple[str, ...]) -> RunOptions:
    """The options of this pytest call; ``UsageError`` for any that cannot be used."""
    thinking = config.getoption("lm_audit_thinking_tokens")
    if config.getoption("lm_audit_chat") == "off" and config.getoption("lm_audit_chat_args"):
        raise UsageError(
            "--chat-args are arguments of the chat template, which --chat off leaves out; give one of them"
        )
    models = parse_choices(config.getoption("lm_audit_model") or [DEFAULT_MODEL])
    return RunOptions(
        size=cast(Size, config.getoption("lm_audit_size") or "smoke"),
        limit=config.getoption("lm_audit_limit"),
        data=parse_data(config.getoption("lm_audit_data") or []),
        seed=config.getoption("lm_audit_seed") or 0,
        devices=devices,
        models=models,
        audit={option.name: _given_or_default(config, option) for option in audit_options()},
        trust_remote_code=bool(config.getoption("lm_audit_trust_remote_code")),
        device_map=_device_map(config.getoption("lm_audit_device_map"), devices),
        batch_tokens=config.getoption("lm_audit_batch_tokens"),
        packed_weights={"on": True, "off": False}.get(config.getoption("lm_audit_packed_weights")),
        dtype=_dtype(config.getoption("lm_audit_dtype")),
        chat=config.getoption("lm_audit_chat") or "auto",
        chat_args=parse_chat_arguments(config.getoption("lm_audit_chat_args") or []),
        thinking_tokens=THINKING_TOKENS if thinking is None else thinking,
        endpoint=endpoint_options(config, models),
    )


def _given_or_default(config: pytest.Config, option: AuditOption) -> Any:
    value = config.getoption(f"lm_audit_x_{option.name}")
    return option.default if left_out(value) else value


def _device_map(name: str | None, devices: tuple[str, ...]) -> str | None:
    from lm_audit.models.loading.placement import check_device_map

    for device in devices:
        check_device_map(name, device)
    return name


def _dtype(name: str | None) -> str:
    from lm_audit.models.loading.devices import dtype_name  # imports no torch

    try:
        return dtype_name("auto" if name is None else name)
    except UsageError as error:
        raise UsageError(f"--dtype {name}: {error}") from error
