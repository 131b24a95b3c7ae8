"""Finding a hub id in the local hub cache, and fetching it only where it is not there."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from lm_audit.errors import HarnessError, ModelError
from lm_audit.models.files.json_file import one_line
from lm_audit.models.files.weight_files import INDEX, WHOLE, shard_map
from lm_audit.models.loading.spec import ModelSpec
from lm_audit.shared.home import from_home
from lm_audit.shared.textfiles import is_file

_TRUE = {"1", "on", "yes", "true"}
_COMMIT = re.compile(r"[0-9A-Za-z][\w.-]{0,127}")
_TIMEOUT, _CONNECT = 10.0, 3.0
"""Seconds to wait for the hub's first answer, and for a connection to it: where there is no network, none comes."""

_WANTED = ["*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken", "*.py", "*.safetensors"]
"""What a checkpoint needs; never pickles, GGUF copies or other frameworks' weights."""


def hub_cache_dir() -> Path:
    """Where ``huggingface_hub`` keeps models; the environment is read now, not when that library was imported."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return from_home(os.environ[variable])
    return hub_home() / "hub"


def hub_home() -> Path:
    """The folder of everything that comes from the hub: ``$HF_HOME``, else in the user's cache folder."""
    cache = from_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return from_home(os.environ.get("HF_HOME") or cache / "huggingface")


def is_offline(*also: str) -> bool:
    """Whether ``HF_HUB_OFFLINE``, ``TRANSFORMERS_OFFLINE`` or another variable named forbids the network."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", *also)
    return any(os.environ.get(name, "").lower() in _TRUE for name in names)


def patience() -> Any:
    """How long to wait for the hub, in the terms of the client that its library uses."""
    from huggingface_hub import get_session

    limits = type(get_session().timeout)
    return limits(_TIMEOUT, connect=min(_CONNECT, _TIMEOUT))


def find_snapshot(spec: ModelSpec) -> Path:
    """The snapshot folder of a hub id, from the cache if it is there, else from the hub.

    Raises ``ModelError`` where it is neither: unknown id, unknown revision, gated, no network, or network forbidden.
    """
    assert spec.repo is not None
    cached = cached_snapshot(spec.repo, spec.revision)
    if cached is not None and _has_model(cached):
        return cached
    if is_offline():
        raise ModelError(_not_cached(spec) + "; HF_HUB_OFFLINE is set, so it was not fetched")
    return _fetch(spec)


def is_settled(spec: ModelSpec) -> bool:
    """Whether :func:`find_snapshot` answers from the disk alone, be it by an error."""
    cached = cached_snapshot(spec.repo or "", spec.revision)
    return is_offline() or (cached is not None and _has_model(cached))


def cached_snapshot(repo: str, revision: str | None) -> Path | None:
    """The cached snapshot of a branch, tag or commit (seven or more of its digits), or ``None``."""
    folder = repo_folder(repo)
    wanted = revision or "main"
    reference = folder / "refs" / wanted
    commit = _read_reference(reference) if is_file(reference) else wanted
    exact = folder / "snapshots" / commit
    if exact.is_dir():
        return exact
    if len(commit) < 7 or not (folder / "snapshots").is_dir():
        return None
    starting = [path for path in (folder / "snapshots").iterdir() if path.name.startswith(commit)]
    return starting[0] if len(starting) == 1 else None


def _read_reference(path: Path) -> str:
    """The commit that a reference of the cache names; ``ModelError`` where it holds anything else."""
    try:
        commit = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {one_line(error)}") from error
    if not _COMMIT.fullmatch(commit):
        raise ModelError(f"{path} holds {commit!r:.60}; expected a commit. Delete it, or fetch the model anew")
    return commit


def repo_folder(repo: str, kind: Literal["models", "datasets"] = "models") -> Path:
    """Where the hub cache keeps one model or data set, whether it is there or not; its snapshots in ``snapshots``."""
    return hub_cache_dir() / f"{kind}--{repo.replace('/', '--')}"


def cached_revisions(repo: str) -> dict[str, str]:
    """Reference name -> commit of one cached model; commits without a reference stand under their own name."""
    folder = repo_folder(repo)
    refs = {}
    for path in sorted((folder / "refs").rglob("*")):
        # A broken reference is named when its revision is asked for; the others can be used.
        with suppress(ModelError):
            if is_file(path):
                refs[path.relative_to(folder / "refs").as_posix()] = _read_reference(path)
    commits = sorted(path.name for path in (folder / "snapshots").glob("*"))
    return refs | {commit: commit for commit in commits if commit not in refs.values()}


def _has_model(snapshot: Path) -> bool:
    """Whether a snapshot is complete, not a few files that something else (a tokenizer, a config) had fetched."""
    weights = [path for pattern in ("*.safetensors", "*.bin") for path in snapshot.glob(pattern) if path.is_file()]
    configured = any((snapshot / name).is_file() for name in ("config.json", "adapter_config.json"))
    return configured and bool(weights) and all((snapshot / name).is_file() for name in _promised(snapshot))


def _promised(snapshot: Path) -> set[str]:
    """The shards that a snapshot's index names; none where the whole model lies there, which is taken then."""
    if is_file(snapshot / WHOLE) or not is_file(snapshot / INDEX):
        return set()
    return set(shard_map(snapshot).values())


def _not_cached(spec: ModelSpec) -> str:
    known = cached_revisions(spec.repo or "")
    if spec.revision and known:
        return f"model {spec.repo}: no revision {spec.revision!r} in {hub_cache_dir()} (there: {', '.join(known)})"
    return f"model {spec.text} is not in the hub cache {hub_cache_dir()}"


def _fetch(spec: ModelSpec) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    assert spec.repo is not None
    try:
        _refuse_pickles_on_hub(spec)
        found = snapshot_download(
            spec.repo,
            revision=spec.revision,
            cache_dir=hub_cache_dir(),
            allow_patterns=_WANTED,
            ignore_patterns=["*/*"],
        )
        return Path(found)
    except GatedRepoError as error:
        raise ModelError(f"model {spec.text} is gated: accept its terms on the hub and set HF_TOKEN") from error
    except RepositoryNotFoundError as error:
        raise ModelError(f"model {spec.text}: the hub has no such model, or it is private (set HF_TOKEN)") from error
    except RevisionNotFoundError as error:
        raise ModelError(f"model {spec.repo}: the hub has no revision {spec.revision!r} of it") from error
    except HarnessError:
        raise
    except Exception as error:  # whatever the HTTP library of the day raises
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise ModelError(f"{_not_cached(spec)}, and the hub could not be reached: {reason}") from error


def _refuse_pickles_on_hub(spec: ModelSpec) -> None:
    """Look at the list of files before gigabytes come down."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(spec.repo or "", revision=spec.revision, timeout=patience())
    if not any(file.rfilename.endswith(".safetensors") for file in info.siblings or ()):
        raise ModelError(f"model {spec.text} has no safetensors weights on the hub; pickle files are never loaded")
