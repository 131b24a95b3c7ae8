"""What a user may write for ``--model``: parsed without torch, so that a bad spec fails at collection."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.endpoint.address import Address, is_endpoint, parse_address
from lm_audit.shared.home import from_home
from lm_audit.shared.textfiles import is_file, is_folder, is_there

SpecKind = Literal["hub", "folder", "gguf", "smollm2", "tiny", "endpoint"]

EMBEDDED = ("smollm2", "tiny")
"""Models that need no file of the user's: a real one and a toy."""

_MAX_LENGTH = 4096
"""Longer than any path of this system."""

FORMS = "org/name, org/name@revision, a local folder, a .gguf file, smollm2, tiny, tiny:SEED or openai:MODEL@URL"

# The hub's own rule: letters, digits, '-', '_' and '.', neither '--' nor '..', no '-' or '.' at an end.
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_]|[-.](?![-.]))*(?<![-.])"
_HUB_ID = re.compile(rf"(?P<repo>{_PART}/{_PART})(?:@(?P<revision>[A-Za-z0-9_][\w./-]*))?")


@dataclass(frozen=True)
class ModelSpec:
    """One parsed ``--model``. ``name`` is the spec's last component without revision or ending (MODEL in case ids)."""

    text: str
    kind: SpecKind
    name: str
    path: Path | None = None
    repo: str | None = None
    revision: str | None = None
    seed: int = 0
    address: Address | None = None


def parse_spec(spec: str | os.PathLike[str] | ModelSpec) -> ModelSpec:
    """What ``spec`` names; looks at the disk only to see whether a path exists, and never at the network.

    Raises ``UsageError`` where the spec has none of the forms in ``FORMS``, ``ModelError`` where it names a file or
    folder that is absent. A local folder wins over a hub id of the same spelling, as in ``transformers``.
    """
    if isinstance(spec, ModelSpec):
        return spec
    text = os.fspath(spec).strip()
    if not text:
        raise UsageError(f"the model spec is empty; expected {FORMS}")
    if (hidden := next((character for character in text if not character.isprintable()), None)) is not None:
        reason = f"holds the character U+{ord(hidden):04X}, which cannot be seen; rename it"
        raise UsageError(f"model spec {_shown(text)} can name nothing: it {reason}, or write {FORMS}")
    if len(text) > _MAX_LENGTH:
        raise UsageError(f"model spec {_shown(text)} of {len(text)} characters can name nothing; expected {FORMS}")
    if is_endpoint(text):
        address = parse_address(text)
        return ModelSpec(text, "endpoint", endpoint_name(address.model), address=address)
    if text == "smollm2":
        return ModelSpec(text, "smollm2", "smollm2")
    if text == "tiny" or text.startswith("tiny:"):
        return _tiny(text)
    if text.lower().endswith(".gguf"):
        return _gguf(text)
    if _is_path(text):
        return _folder(text)
    return _hub(text)


def endpoint_name(model: str) -> str:
    """What a served model is called in short: the last component of its name, without a file's ending."""
    last = model.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return last.removesuffix(".gguf") or model


def _shown(text: str) -> str:
    """The spec as it stands in a message: quoted, and cut where it is long."""
    return repr(text if len(text) <= 200 else f"{text[:200]}...")


def _tiny(text: str) -> ModelSpec:
    _, colon, seed = text.partition(":")
    if colon and not re.fullmatch(r"[0-9]{1,9}", seed):
        raise UsageError(f"model spec {text!r}: the seed after 'tiny:' must be a whole number from 0 to 999999999")
    return ModelSpec(text, "tiny", text, seed=int(seed or 0))


def _gguf(text: str) -> ModelSpec:
    path = from_home(text)
    if not is_file(path):
        what = "is a folder, not a GGUF file" if is_folder(path) else "no such GGUF file"
        raise ModelError(f"model spec {_shown(text)}: {what}")
    return ModelSpec(text, "gguf", path.name[: -len(".gguf")], path=path)


def _is_path(text: str) -> bool:
    looks_local = (
        text.startswith(("/", "./", "../", "~", ".\\", "..\\")) or text in (".", "..") or Path(text).is_absolute()
    )
    return looks_local or is_there(Path(text))


def _folder(text: str) -> ModelSpec:
    path = from_home(text)
    if is_file(path):
        raise UsageError(f"model spec {_shown(text)} is a file; expected the folder that holds it, or a .gguf file")
    if not is_folder(path):
        raise ModelError(f"model spec {_shown(text)}: no such folder")
    return ModelSpec(text, "folder", path.resolve().name, path=path)


def _hub(text: str) -> ModelSpec:
    match = _HUB_ID.fullmatch(text)
    if match is None:
        near = difflib.get_close_matches(text, EMBEDDED, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"model spec {_shown(text)} is neither an existing path nor a hub id{hint} (expected {FORMS})")
    repo = match["repo"]
    return ModelSpec(text, "hub", repo.rsplit("/", 1)[1], repo=repo, revision=match["revision"])
