"""What ``run.json`` states of the options that numbers depend on; a resumed run is held against it."""

from __future__ import annotations

from typing import Any

from lm_audit.models.loading.identity.spec_identity import content_state, model_identity
from lm_audit.plugin.options.named_values import named_values
from lm_audit.plugin.options.naming import left_out
from lm_audit.plugin.options.run_options import RunOptions
from lm_audit.shared.home import from_home
from lm_audit.shared.textfiles import on_disk


def options_record(options: RunOptions) -> dict[str, Any]:
    """The options of a call in plain types, with what the models and files are that they name."""
    return {
        "size": options.size,
        "limit": options.limit,
        "seed": options.seed,
        "dtype": options.dtype,
        "device_map": options.device_map,
        "batch_tokens": options.batch_tokens,
        "packed_weights": None if options.packed_weights is None else "on" if options.packed_weights else "off",
        "chat": options.chat,
        "chat_args": dict(options.chat_args),
        "thinking_tokens": options.thinking_tokens,
        "devices": list(options.devices),
        "models": {model.name: model.spec for model in options.models},
        "identities": {model.name: model_identity(model.spec) for model in options.models},
        "data": dict(options.data),
        "inputs": {f"{flag} {text}": state for flag, text, state in named_contents(options) if state},
        "audit": {name: value for name, value in options.audit.items() if not left_out(value)},
    }


def named_contents(options: RunOptions) -> list[tuple[str, str, str]]:
    """Each file, folder or model that an option names: the option, its value, what lies there; empty for hub ids."""
    return [
        (flag, text, _data(text) if is_data else model_identity(text.partition("=")[2] or text))
        for flag, text, is_data in named_values(options)
    ]


def _data(text: str) -> str:
    """The content of ``PATH`` or of ``NAME=PATH``."""
    own = text.partition("=")[2]
    return _content(text) or (_content(own) if own else "")


def _content(text: str) -> str:
    return content_state(str(on_disk(from_home(text)).path))
