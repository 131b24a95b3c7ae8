"""What is made once and read by every process."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import BPE

from lm_audit.errors import ModelError, UsageError
from lm_audit.models.files.disk_cache import build_once, cache_dir
from lm_audit.models.files.gguf.file import tokenizer_of
from lm_audit.models.loading.identity.digests import file_digest, weights_digest, zero_tensors
from tests.file_size_limit import file_size_limit
from tests.models.files.small_gguf import random_llama, write_gguf


def test_the_folder_is_the_users_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("LM_AUDIT_CACHE", raising=False)
    assert cache_dir() == tmp_path / "xdg" / "lm-audit"

    monkeypatch.setenv("LM_AUDIT_CACHE", str(tmp_path / "own"))
    assert cache_dir() == tmp_path / "own"

    monkeypatch.setenv("LM_AUDIT_CACHE", "~nosuchuser/cache")
    with pytest.raises(UsageError, match="LM_AUDIT_CACHE='~nosuchuser/cache': there is no such home"):
        cache_dir()


def test_many_at_once_build_once(tmp_path: Path) -> None:
    builds: list[Path] = []

    def build(folder: Path) -> None:
        builds.append(folder)
        time.sleep(0.2)
        (folder / "made").write_text("whole")

    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: build_once(tmp_path / "cache" / "thing", build), range(8)))

    assert len(builds) == 1
    assert {(folder / "made").read_text() for folder in folders} == {"whole"}


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise ValueError("interrupted")

    with pytest.raises(ValueError, match="interrupted"):
        build_once(tmp_path / "thing", build)

    assert [path.name for path in tmp_path.iterdir()] in ([], ["thing.lock"])


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ModelError, match=r"cannot write the cache folder .*LM_AUDIT_CACHE"):
        build_once(tmp_path / "file" / "thing", lambda folder: None)


WRITERS: Mapping[str, Callable[[Path], object]] = {
    "safetensors": lambda folder: save_file({"a": torch.zeros(4096)}, folder / "model.safetensors"),
    "tokenizers": lambda folder: Tokenizer(BPE()).save(str(folder / "tokenizer.json")),
    "torch": lambda folder: torch.save({"a": torch.zeros(4096)}, folder / "model.pt"),
    "Python": lambda folder: (folder / "config.json").write_text("{}" * 999),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
def test_a_disk_that_fills_while_a_library_writes_is_one_line_too(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    with (
        file_size_limit(),
        pytest.raises(ModelError, match=r"cannot write the cache folder .*thing: .* \(set LM_AUDIT_CACHE"),
    ):
        build_once(tmp_path / "thing", lambda folder: (write(folder), None)[1])
    assert [path.name for path in tmp_path.iterdir()] in ([], ["thing.lock"])
    build_once(tmp_path / "thing", lambda folder: (write(folder), None)[1])
    assert len(list((tmp_path / "thing").iterdir())) == 1


def test_a_full_disk_is_not_blamed_on_the_gguf_file_that_was_to_be_converted(tmp_path: Path, own_cache: Path) -> None:
    path = write_gguf(tmp_path / "plain.gguf", random_llama())
    with file_size_limit(), pytest.raises(ModelError, match="cannot write the cache folder"):
        tokenizer_of(path)


def test_digests_do_without_a_cache(llama_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = llama_folder / "model.safetensors"
    monkeypatch.setenv("LM_AUDIT_CACHE", str(tmp_path / "own"))
    expected = weights_digest([weights]), file_digest(weights)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LM_AUDIT_CACHE", str(tmp_path / "file"))

    assert (weights_digest([weights]), file_digest(weights)) == expected


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[: len(content) // 2], id="half"),
        pytest.param(lambda content: b"", id="empty"),
        pytest.param(lambda content: b"\xff\x00" * 40, id="binary"),
        pytest.param(lambda content: b"[" * 100_000, id="deep"),
        pytest.param(lambda content: b'["a", "b"]', id="another's"),
        pytest.param(lambda content: b'{"answer": 3}', id="no seal"),
        pytest.param(lambda content: content.replace(b"0", b"1", 1), id="a digit"),
    ],
)
def test_a_damaged_digest_is_made_again(llama_folder: Path, own_cache: Path, damage: Callable[[bytes], bytes]) -> None:
    """A record that is torn must not end a load, and one that was changed must not pass for what the weights are."""
    weights = llama_folder / "model.safetensors"
    asked = (lambda: file_digest(weights), lambda: weights_digest([weights]), lambda: zero_tensors(weights))
    before = [ask() for ask in asked]
    records = list((own_cache / "digests").iterdir())
    assert len(records) == 3
    for record in records:
        record.write_bytes(damage(record.read_bytes()))
    assert [ask() for ask in asked] == before
    for record in records:
        record.unlink()
        record.mkdir()
    assert [ask() for ask in asked] == before


def made(folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "weights").write_bytes(b"0123456789" * 40)
    (folder / "below" / "config.json").write_text('{"a": 1}')


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["weights", "below/config.json"])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:5]), id="cut"),
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes().replace(b"1", b"2", 1)), id="a byte"),
        pytest.param(lambda path: path.unlink(), id="gone"),
        pytest.param(lambda path: (path.unlink(), path.mkdir()), id="a folder"),
        pytest.param(lambda path: (path.unlink(), path.symlink_to(path.name)), id="a loop"),
        pytest.param(replaced_by_a_pipe, id="a pipe"),
    ],
)
def test_a_folder_that_was_damaged_is_built_again(tmp_path: Path, name: str, damage: Callable[[Path], object]) -> None:
    """A model of changed weights would pass for the one that it was made of, under the same fingerprint."""
    folder = build_once(tmp_path / "cache" / "thing", made)
    whole = files_of(folder)
    damage(folder / name)
    assert files_of(build_once(folder, made)) == whole


@pytest.mark.parametrize("seal", [b"", b"{", b"[]", b'{"files": {}}', b"[" * 50_000, b"\xff"], ids=ascii)
def test_a_seal_that_was_damaged_says_nothing(tmp_path: Path, seal: bytes) -> None:
    folder = build_once(tmp_path / "thing", made)
    whole = files_of(folder)
    (folder / "weights").write_bytes(b"others")
    (tmp_path / "thing.seal").write_bytes(seal)
    assert files_of(build_once(folder, made)) == whole


def test_whole_folders_are_not_built_again(tmp_path: Path) -> None:
    """Those that were copied, those of an older version without a seal, those with a file more."""
    folder = build_once(tmp_path / "thing", made)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    shutil.copy(tmp_path / "thing.seal", tmp_path / "copy.seal")
    (tmp_path / "old").mkdir()
    (folder / "more").write_text("x")
    for found in (folder, copy, copy, tmp_path / "old"):
        assert build_once(found, lambda scratch: pytest.fail("built again")) == found
