"""What the options of a run say of its measurement: one run holds one, so that all its sessions and parts say the same.

``run.json`` states the options once, and the page and ``compare`` go by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HELD = ("size", "limit", "seed", "dtype", "chat", "chat_args", "thinking_tokens")
"""Options of all audits on which numbers depend, beside models, data and what single audits declare."""

CONTENT = "content of "
"""Stands before an option and its value where what lies there differs."""

_NAMED = {"models": "--model ", "identities": "files of ", "data": "--data "}
_LONGEST = 200


@dataclass(frozen=True)
class Difference:
    """An option (``--seed``, ``--data bbq``) that two records of a run's options state differently.

    ``None`` is an option that is not given.
    """

    option: str
    ours: object
    theirs: object

    @property
    def is_new(self) -> bool:
        """Whether the second states what the first leaves out."""
        return self.ours is None

    def as_given(self, value: object) -> str:
        """The option with one of its values, as on a command line."""
        if value is None:
            return f"no {self.option}"
        if value is True:
            return self.option
        text = _short(" ".join(map(str, value)) if isinstance(value, list) else str(value))
        return f"{self.option}{'=' if ' ' in self.option else ' '}{text}"

    def __str__(self) -> str:
        what = f"option {self.option}" if self.option.startswith("--") else self.option
        return f"{what} differs: {_short(repr(self.ours))} and {_short(repr(self.theirs))}"


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    """Where two records of options state other measurements; ``audit`` holds what single audits declare."""
    one, other = _stated(ours), _stated(theirs)
    for option in dict.fromkeys((*one, *other)):
        if one.get(option) != other.get(option):
            yield Difference(option, one.get(option), other.get(option))


def joined(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What a resumed run states: this session's options, with the models, data and devices of those before it."""
    found = dict(now)
    for name in ("models", "identities", "data", "inputs", "audit"):
        found[name] = {**_mapping(before.get(name)), **_mapping(now.get(name))}
    for name in ("devices", "tags"):
        found[name] = list(dict.fromkeys([*(before.get(name) or ()), *(now.get(name) or ())]))
    return found


def _stated(options: Mapping[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {f"--{name.replace('_', '-')}": options.get(name) for name in HELD}
    for name, label in _NAMED.items():
        found |= {f"{label}{key}": value for key, value in _mapping(options.get(name)).items()}
    servers = _mapping(options.get("endpoint"))
    found |= {f"--tokenizer {key}": value for key, value in _mapping(servers.get("tokenizers")).items()}
    found |= {f"--{key.replace('_', '-')}": value for key, value in _mapping(options.get("audit")).items()}
    return found | {f"{CONTENT}{key}": value for key, value in _mapping(options.get("inputs")).items()}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
