"""Fetching from the hub, against a server of our own on this machine that answers as the hub does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.made_hub import made_hub
from tests.plugin.toy_run import write_project

PROGRAM = """
import os, sys
import huggingface_hub, torch, transformers, transformers.generation, transformers.models.llama.modeling_llama
transformers.AutoTokenizer, transformers.AutoModelForCausalLM, transformers.PreTrainedTokenizerFast
from lm_audit.errors import ModelError
from lm_audit.models import load_model
from lm_audit.models.files import hub
hub._TIMEOUT = hub._CONNECT = 120.0
for number, specs in enumerate(sys.argv[1:]):
    if os.fork():
        _, status = os.wait()
        if status:
            sys.exit("a process for " + specs + " ended with " + str(status))
        continue
    if number:
        os.environ["HF_HUB_OFFLINE"] = "1"
        huggingface_hub.constants.HF_HUB_OFFLINE = True
    for spec in specs.split():
        try:
            model = load_model(spec, device="cpu")
            print(model.name, model.fingerprint, flush=True)
        except ModelError as error:
            print("ModelError", error, flush=True)
    break
"""
"""Each word is the specs of a process of its own, all but the first offline; the libraries are loaded once for all."""


@pytest.fixture(scope="module")
def files(llama_folder: Path) -> dict[str, dict[str, bytes]]:
    """``org/small`` can be fetched, ``org/pickled`` holds a pickle alone."""
    small = {path.name: path.read_bytes() for path in llama_folder.iterdir()}
    return {
        "org/small": small | {"pytorch_model.bin": b"a pickle that nobody may fetch"},
        "org/pickled": {"config.json": b"{}", "pytorch_model.bin": b"a pickle"},
    }


@contextmanager
def serving(files: dict[str, dict[str, bytes]], home: Path) -> Iterator[dict[str, str]]:
    """The environment in which a hub has these files; no pickle was asked for by the end."""
    with made_hub(files, home / "hub") as hub:
        yield hub.environment | {"LM_AUDIT_CACHE": str(home / "own")}
    assert hub.asked and not [path for path in hub.asked if path.endswith(".bin")]


@pytest.fixture
def hub(files: dict[str, dict[str, bytes]], tmp_path: Path) -> Iterator[dict[str, str]]:
    with serving(files, tmp_path) as environment:
        yield environment


def load(processes: Sequence[str], environment: dict[str, str]) -> list[str]:
    """One line a spec."""
    words = [sys.executable, "-c", PROGRAM, *processes]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


REFUSED = {
    "org/absent": "the hub has no such model",
    "org/small@v9": "the hub has no revision 'v9'",
    "org/pickled": "has no safetensors weights on the hub",
}


@dataclass(frozen=True)
class Asked:
    """What one process says of a model and of what is refused, a later one, offline, of the model; and their home."""

    first: str
    refusals: dict[str, str]
    again: str
    home: Path


@pytest.fixture(scope="module")
def asked(files: dict[str, dict[str, bytes]], tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Two processes for all of these tests."""
    with serving(files, tmp_path_factory.mktemp("asked")) as environment:
        first, *refusals, again = load([" ".join(["org/small", *REFUSED]), "org/small"], environment)
        return Asked(first, dict(zip(REFUSED, refusals, strict=True)), again, Path(environment["HF_HOME"]))


def test_an_uncached_model_is_fetched_once(asked: Asked) -> None:
    assert asked.first.startswith("small ")
    assert asked.again == asked.first
    assert list(asked.home.rglob("*.safetensors")) and not list(asked.home.rglob("*.bin"))


@pytest.mark.parametrize(("spec", "says"), REFUSED.items())
def test_what_cannot_be_fetched_is_one_line(asked: Asked, spec: str, says: str) -> None:
    assert asked.refusals[spec].startswith("ModelError") and says in asked.refusals[spec]


LONG = """
import pytest
from lm_audit.plugin import Case, cases

@pytest.mark.bias
@cases([Case("short", tokens=9), Case("long", tokens=40), Case("plain")])
def test_a(case, language_model):
    pass
"""


@pytest.mark.slow
def test_a_context_that_is_not_known_before_the_fetch_is_told_once(hub: dict[str, str], tmp_path: Path) -> None:
    project, told = write_project(tmp_path, test_a=LONG), "how long a text it reads is known when it has been fetched"
    call = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "new", "--model", "new=org/small"]

    def run() -> str:
        return subprocess.run(
            call, env=hub | {"PYTHONPATH": os.pathsep.join(sys.path)}, cwd=project, capture_output=True, text=True
        ).stdout

    first, again = run(), run()
    assert first.count(told) == 1 and f"new: {told}; cases of up to 40 tokens are planned" in first, first
    assert "3 passed" in first and "3 passed" in again and told not in again
