"""What a model spec stands for on this machine, told from its files alone and without torch.

Each byte of a large file is hashed once: the answer is remembered until the file changes, and loading asks for it too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from lm_audit.errors import HarnessError
from lm_audit.models.endpoint.address import URL_VARIABLE, Address, stated_url
from lm_audit.shared.textfiles import is_file

_SMALL = 8 << 20
_WHOLE = 16 << 30
"""Bytes beyond which no file is read whole: that takes half a minute."""

_SETTINGS = 256 << 20
"""Bytes beyond which no file holds settings or tokens: loading refuses it."""

_BLOCK, _PLACES = 1 << 16, 16
_PROSE = (".md", ".gitattributes", ".jpg", ".png")


def forget() -> None:
    """Look at files anew: they may have changed since an earlier session of this process."""
    for remembered in (model_identity, file_state, folder_state, content_state):
        remembered.cache_clear()


@cache
def model_identity(spec: str) -> str:
    """What a spec stands for on this machine, from its files.

    A folder is what its files hold, wherever it lies; a hub id is the files of its cached snapshot; an adapter is its
    own files and those of its base.
    """
    from lm_audit.models import parse_spec

    try:
        parsed = parse_spec(spec)
    except HarnessError:
        return f"absent {spec}"
    if parsed.kind == "hub":
        folder = _snapshot(parsed.repo or "", parsed.revision)
        return f"hub {parsed.repo}@{parsed.revision or 'main'}" if folder is None else f"folder {_model_state(folder)}"
    if parsed.kind == "folder" and parsed.path is not None:
        return f"folder {_model_state(parsed.path)}"
    if parsed.address is not None:
        return f"endpoint {parsed.address.model} at {_server(parsed.address)}"
    if parsed.path is not None:
        return f"{parsed.kind} {file_state(str(parsed.path))}"
    return f"{parsed.kind}:{parsed.seed}"


def _server(address: Address) -> str:
    """Where a model is served, as far as it may be written down: a URL of the environment may hold a password."""
    try:
        return stated_url(address)
    except HarnessError:
        return f"a URL in {URL_VARIABLE} that cannot be used"


def _snapshot(repo: str, revision: str | None) -> Path | None:
    """The folder in which the local hub cache holds a branch, tag or commit."""
    from lm_audit.models.files.hub import cached_snapshot

    try:
        return cached_snapshot(repo, revision)
    except HarnessError:  # A broken cache is named when the model loads.
        return None


def _model_state(folder: Path) -> str:
    """All files that can change a model's answers, and of an adapter its base's too.

    A folder without a config is no model, which is said when it is to load: it may be somebody's home. What is larger
    than settings and no weights of the model (an optimizer's state, other frameworks' weights, data) no load reads,
    unless the model brings code of its own.
    """
    if not any(is_file(folder / name) for name in ("config.json", "adapter_config.json")):
        return "none"
    from lm_audit.models.files.adapter_folder import read_adapter

    try:
        adapter, read = read_adapter(folder), _weights_read(folder)
    except HarnessError:
        adapter, read = None, None
    files = _tree(folder, "*", of=None if read is None else lambda path, size: size <= _SETTINGS or path in read)
    state = _digest(line for line in files if not line.split(" ")[0].lower().endswith(_PROSE))
    if adapter is None or _leads_to(adapter.base, folder):
        return state
    return f"{state} on {model_identity(adapter.base)}"


def _weights_read(folder: Path) -> frozenset[Path] | None:
    """The files of weights that a load reads; ``None`` for a model with code of its own, which may read any file."""
    from lm_audit.models.files.adapter_folder import WEIGHTS
    from lm_audit.models.files.json_file import read_json
    from lm_audit.models.files.weight_files import has_whole_model, weight_files

    names = ("config.json", "tokenizer_config.json")
    configs = {name: read_json(folder / name) if is_file(folder / name) else {} for name in names}
    if any(config.get("auto_map") for config in configs.values()):
        return None
    whole = has_whole_model(folder) or "transformers_weights" in configs["config.json"]
    return frozenset(
        [
            folder / WEIGHTS,
            *(weight_files(folder, configs["config.json"].get("transformers_weights"))[0] if whole else ()),
        ]
    )


def _leads_to(base: str, folder: Path) -> bool:
    """Whether an adapter's base is itself or another adapter, which is refused when it loads."""
    from lm_audit.models import parse_spec

    try:
        path = parse_spec(base).path
    except HarnessError:
        return True
    return path is not None and (path.resolve() == folder.resolve() or (path / "adapter_config.json").is_file())


@cache
def file_state(where: str) -> str:
    """The content of a file, the contents of a folder, else empty. Beyond 16 GiB: size, time and samples."""
    try:
        path = Path(where)
        if path.is_dir():
            return folder_state(where)
        return _state(path) if is_file(path) else ""
    except (OSError, ValueError):
        return ""


@cache
def folder_state(where: str) -> str:
    """The contents of a folder, wherever it lies."""
    return _digest(_tree(Path(where), "*"))


@cache
def content_state(where: str) -> str:
    """As :func:`file_state`, but whatever the time of a file beyond 16 GiB is: a copy of it is the same."""
    try:
        path = Path(where)
        if path.is_dir():
            return _digest(_tree(path, "*", timed=False))
        return _state(path, timed=False) if is_file(path) else ""
    except (OSError, ValueError):
        return ""


def _tree(
    folder: Path, pattern: str, *, timed: bool = True, of: Callable[[Path, int], bool] | None = None
) -> Iterable[str]:
    """One line a file; ``of`` says by path and size which ones count."""
    for path in sorted(folder.rglob(pattern)):
        if is_file(path) and "__pycache__" not in path.parts and (of is None or of(path, path.stat().st_size)):
            yield f"{path.relative_to(folder).as_posix()} {_state(path, timed=timed)}"


def _state(path: Path, *, timed: bool = True) -> str:
    status = path.stat()
    if status.st_size <= _SMALL:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    if status.st_size <= _WHOLE:
        return _whole(path)
    time = f" {status.st_mtime_ns}" if timed else ""
    return f"{status.st_size}{time} {_samples(path, status.st_size)}"


def _whole(path: Path) -> str:
    from lm_audit.models.loading.identity.digests import file_digest, tensor_digests

    if path.suffix == ".safetensors":  # As the fingerprint of a loaded model has it.
        with suppress(HarnessError):
            return _digest(tensor_digests(path))
    return file_digest(path)


def _samples(path: Path, size: int) -> str:
    """A hash of a few places of a file: images and archives give files of other contents one modification time."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for number in range(_PLACES):
            file.seek((size - _BLOCK) * number // (_PLACES - 1))
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()[:16]


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:32]
