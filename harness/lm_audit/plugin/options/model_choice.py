"""ModelChoice: a model as the user names it, ``[NAME=]SPEC``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from lm_audit.errors import UsageError
from lm_audit.models.endpoint.address import is_endpoint, parse_address
from lm_audit.models.loading.spec import endpoint_name
from lm_audit.shared.names import alike, told_apart, unreadable
from lm_audit.shared.textfiles import is_there

_NAMED = re.compile(r"(?P<name>[^=/\\:]+)=(?P<spec>.*)", re.DOTALL)
_LEGAL_NAME = re.compile(r"[^@\[\]\x00-\x20\x7f]+")
_ENDINGS = (".gguf", ".safetensors", ".bin", ".pt")


@dataclass(frozen=True)
class ModelChoice:
    """``name`` stands in case ids, ``spec`` is what ``load_model`` takes."""

    name: str
    spec: str


def parse_choice(text: str) -> ModelChoice:
    """``NAME=SPEC`` or ``SPEC``; without NAME the name is the last component of SPEC without revision or ending.

    Raises ``UsageError`` for an empty spec or a name that holds ``@``, ``[``, ``]``, white space or characters that
    cannot be seen, or that is not written in composed characters (NFC).
    """
    match = None if is_there(Path(text)) else _NAMED.fullmatch(text)
    name, spec = (match["name"], match["spec"]) if match else (default_name(text), text)
    if not spec.strip():
        raise UsageError(f"--model {text!r}: no model is named; write --model SPEC or --model NAME=SPEC")
    if _LEGAL_NAME.fullmatch(name) is None:
        raise UsageError(
            f"--model {text!r}: the name {name!r} must be printable without '@', '[', ']' and white space; "
            f"choose one with --model NAME={spec}"
        )
    fault = unreadable(name)
    if fault is not None:
        raise UsageError(f"--model {text!r}: the name {name!r} {fault}; choose another with --model NAME={spec}")
    return ModelChoice(name, spec)


def spelt(choice: ModelChoice) -> str:
    """A text that :func:`parse_choice` reads as this choice, for another process.

    Raises ``UsageError`` where there is none: a folder's name that can stand before no ``=``, reached by another name.
    """
    for text in (f"{choice.name}={choice.spec}", choice.spec):
        if parse_choice(text) == choice:
            return text
    raise UsageError(f"--model {choice.spec!r}: give it a plain name, with --model NAME={choice.spec}")


def default_name(spec: str) -> str:
    """The last component of a spec without revision (``@rev``), seed (``:7`` of ``tiny:7``) kept, and file ending."""
    if is_endpoint(spec):
        return endpoint_name(parse_address(spec).model)
    last = PurePath(spec.replace("\\", "/").rstrip("/")).name
    # `org/name@rev`; a revision may itself hold a slash (refs/pr/3), and then belongs to the whole spec.
    if "@" in spec:
        last = PurePath(spec.partition("@")[0].rstrip("/")).name
    if not last:  # "." or "..": the folder's own name.
        last = Path(spec).resolve().name
    for ending in _ENDINGS:
        last = last.removesuffix(ending)
    return last


def parse_choices(texts: Iterable[str]) -> tuple[ModelChoice, ...]:
    """All of the user's models; ``UsageError`` where two have one name, or names that look alike."""
    choices: dict[str, ModelChoice] = {}
    for text in texts:
        choice = parse_choice(text)
        if choice.name in choices:
            raise UsageError(
                f"--model {text!r}: the name {choice.name!r} is taken by {choices[choice.name].spec!r}; "
                f"give each model its own with --model NAME=SPEC"
            )
        choices[choice.name] = choice
    pair = alike(choices)
    if pair is not None:
        raise UsageError(
            f"--model: the names {told_apart(pair[0])} and {told_apart(pair[1])} look alike; give each model one that "
            "can be told apart with --model NAME=SPEC"
        )
    return tuple(choices.values())
