"""What a spec may look like, and that reading one needs no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lm_audit.errors import ModelError, UsageError
from lm_audit.models import parse_spec


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("smollm2", "smollm2", "smollm2"),
        ("tiny", "tiny", "tiny"),
        ("tiny:7", "tiny", "tiny:7"),
        ("org/some-model", "hub", "some-model"),
        ("org/some.model-1.5B@refs/pr/3", "hub", "some.model-1.5B"),
    ],
)
def test_forms_without_a_path(text: str, kind: str, name: str) -> None:
    spec = parse_spec(text)

    assert (spec.kind, spec.name) == (kind, name)


def test_hub_id_with_revision() -> None:
    spec = parse_spec("org/name@v1.0")

    assert (spec.repo, spec.revision) == ("org/name", "v1.0")


def test_seed_of_the_tiny_model() -> None:
    assert parse_spec("tiny:12").seed == 12
    assert parse_spec("tiny").seed == 0


def test_local_paths(tmp_path: Path) -> None:
    (tmp_path / "my-model").mkdir()
    (tmp_path / "some.Q4_1.gguf").write_bytes(b"GGUF")

    assert parse_spec(tmp_path / "my-model").name == "my-model"
    assert parse_spec(str(tmp_path / "my-model") + "/").kind == "folder"
    assert parse_spec(tmp_path / "some.Q4_1.gguf").name == "some.Q4_1"


def test_a_folder_wins_over_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)

    assert parse_spec("org/name").kind == "folder"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("smolm2", "did you mean 'smollm2'"),
        ("gpt2", "neither an existing path nor a hub id"),
        ("a/b/c", "neither an existing path nor a hub id"),
        ("org/name@", "neither an existing path nor a hub id"),
        ("org/na--me", "neither an existing path nor a hub id"),
        ("tiny:x", "whole number"),
        ("tiny:-1", "whole number"),
    ],
)
def test_wrong_specs_say_what_is_right(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        parse_spec(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["/no/such/folder", "./no-such-folder", "no/such/file.gguf"])
def test_missing_files_are_named(text: str) -> None:
    with pytest.raises(ModelError, match=r"no such (folder|GGUF file)") as caught:
        parse_spec(text)
    assert text in str(caught.value)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")

    with pytest.raises(UsageError, match="expected the folder that holds it"):
        parse_spec(tmp_path / "model.safetensors")


def test_specs_are_checked_without_torch(llama_folder: Path) -> None:
    program = (
        "import sys; from lm_audit.models import check_spec, parse_spec; parse_spec('tiny'); check_spec(sys.argv[1]);"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )

    answer = subprocess.run(
        [sys.executable, "-c", program, str(llama_folder)], capture_output=True, text=True, check=True
    )

    assert answer.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(("character", "code"), [("\u202e", "202E"), ("\x1b", "001B"), ("\n", "000A"), ("\0", "0000")])
def test_a_name_with_a_hidden_character_says_which(character: str, code: str) -> None:
    with pytest.raises(UsageError, match=rf"can name nothing: it holds the character U\+{code}"):
        parse_spec(f"./mo{character}del")
