"""What is kept on disk for later processes bears the code that made it in its name: no cache outlives the code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType

import pytest

import lm_audit
from lm_audit.models.files.checkpoint import read_checkpoint
from lm_audit.models.files.gguf import file as gguf
from lm_audit.models.loading import conversion
from lm_audit.models.loading.identity import digests
from lm_audit.models.toy import tiny
from lm_audit.shared.code_version import made_by, package_digest
from lm_audit.shared.reached.package_versions import versions
from tests.models.files.small_gguf import random_llama, write_gguf
from tests.models.small_models import save_small_llama

HOME = Path(lm_audit.__file__).parent
SMALL = tiny.TinySettings(layers=1, hidden=16, heads=2, mlp=16, rows=4, decoys=1, epochs=1)


def runs_through(ask: Callable[[], object]) -> set[str]:
    """The files of the package in which a function was called meanwhile."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        ask()
    finally:
        sys.setprofile(None)
    return {Path(file).relative_to(HOME).as_posix() for file in files if Path(file).is_relative_to(HOME)}


def convert_dtype(folder: Path) -> Path:
    half = save_small_llama(folder / "half", dtype="bfloat16") if not (folder / "half").exists() else folder / "half"
    return conversion.folder_in_dtype(read_checkpoint(half), "float32")


def convert_gguf(folder: Path) -> Path:
    file = folder / "small.gguf"
    return gguf.converted_folder(file if file.exists() else write_gguf(file, random_llama()))


def train_toy(folder: Path) -> Path:
    return tiny.tiny_folder(1, SMALL)


def digest(folder: Path) -> Path:
    digests.file_digest(folder / "some.txt")
    return max((folder / "own-cache" / "digests").iterdir(), key=lambda path: path.stat().st_mtime_ns)


CACHES: dict[str, tuple[ModuleType, Callable[[Path], Path], tuple[str, ...]]] = {
    "another dtype": (conversion, convert_dtype, conversion._MAKERS),
    "GGUF": (gguf, convert_gguf, gguf._MAKERS),
    "toys": (tiny, train_toy, ("models",)),
    "digests": (digests, digest, ("models/loading/identity/digests.py", "models/files/safetensors_file.py")),
}


@pytest.mark.parametrize("name", CACHES)
def test_a_cache_is_named_by_the_code_that_fills_it(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, ask, parts = CACHES[name]
    own_cache.mkdir()
    (tmp_path / "some.txt").write_text("x")
    made = ask(tmp_path)
    assert made.exists() and ask(tmp_path) == made
    asked: list[tuple[str, ...]] = []

    def other(*given: str, packages: tuple[str, ...] | None = None) -> str:
        asked.append(given)
        return "another code of sixteen"

    monkeypatch.setattr(module, "made_by", other)
    again = ask(tmp_path)
    assert again != made and again.exists() and parts in asked


BENEATH = ("shared/", "errors.py", "__init__.py", "models/loading/identity/", "models/files/disk_cache.py",
           "models/loading/quiet.py", "models/files/json_file.py", "models/files/unchanged.py")  # fmt: skip
"""Where errors, digests and locks are made: nothing of it is in what is kept."""


@pytest.mark.parametrize("name", ["another dtype", "GGUF"])
def test_the_code_that_fills_a_cache_is_all_in_its_name(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, ask, parts = CACHES[name]
    files: set[str] = set()
    fill = module._convert
    monkeypatch.setattr(module, "_convert", lambda *given: files.update(runs_through(lambda: fill(*given))))
    ask(tmp_path)
    through = {file for file in files if not file.startswith(BENEATH)}
    assert through and {file for file in through if not file.startswith(parts)} == set()


def test_the_name_hangs_on_the_parts_and_the_packages_that_are_named() -> None:
    assert len({made_by(), made_by("models"), made_by("stats"), made_by("models", packages=("torch",))}) == 4
    assert made_by("models", packages=("torch", "no such package")) == made_by("models", packages=("torch",))
    assert made_by("models", packages=("torch",)) != made_by("models", packages=("numpy",)) != package_digest("models")
    assert {"torch", "numpy", "python"} <= set(versions())
