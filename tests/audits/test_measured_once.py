"""One session measures a whole once, for all cases that show a part of it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import sleep

import pytest

from lm_audit.audits.measured_once import FileForm, MeasuredOnce
from lm_audit.errors import StoreError
from lm_audit.models import load_model
from lm_audit.models.language_model import LanguageModel
from lm_audit.models.text.chat import ChatSettings


def write_json(value: list[float], path: Path) -> None:
    path.write_text(json.dumps(value))


JSON = FileForm[list[float]](write_json, lambda path: json.loads(path.read_text()))


@pytest.fixture
def model() -> LanguageModel:
    loaded = load_model("tiny", device="cpu")
    return LanguageModel(loaded.module, loaded.tokenizer, name="one", fingerprint="f")


def test_the_second_case_gets_what_the_first_measured(tmp_path: Path, model: LanguageModel) -> None:
    once = MeasuredOnce(tmp_path)
    calls: list[str] = []

    def measured(what: str) -> list[str]:
        calls.append(what)
        return [what]

    for what in ("grid", "grid", "other grid"):
        assert once(model, (what, 7), partial(measured, what)) == [what]
    assert calls == ["grid", "other grid"]


def test_models_and_their_settings_are_told_apart(tmp_path: Path, model: LanguageModel) -> None:
    once = MeasuredOnce(tmp_path)
    found: list[int] = []
    settings = (ChatSettings(), ChatSettings({}, 0), ChatSettings({}, 9), ChatSettings({"enable_thinking": False}))
    for one in settings:
        model.chat_settings = one
        found.append(once(model, "grid", lambda: len(found)))
    other = LanguageModel(model.module, model.tokenizer, name="one", fingerprint="g")
    assert [*found, once(other, "grid", lambda: len(found)), once(None, "grid", lambda: 9)] == [0, 1, 2, 3, 4, 9]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), StoreError("cannot write")])
def test_a_disk_that_refuses_the_file_costs_what_was_measured_to_nobody(tmp_path: Path, error: Exception) -> None:
    def refused(value: list[float], path: Path) -> None:
        path.write_text("half")
        raise error

    calls: list[float] = []
    once = MeasuredOnce(tmp_path)

    def measure() -> list[float]:
        calls.append(0.5)
        return calls

    for _ in range(2):
        assert once(None, "grid", measure, form=FileForm(refused, JSON.read)) == [0.5]
    assert [path.suffix for path in tmp_path.iterdir()] in ([], [".lock"])
    with pytest.raises(OSError, match="the data are gone"):
        once(None, "other", partial(gone, "the data are gone"), form=JSON)


def gone(reason: str) -> list[float]:
    raise OSError(reason)


def test_workers_wait_for_the_one_that_measures(tmp_path: Path) -> None:
    calls = []

    def measure() -> list[float]:
        calls.append(1)
        sleep(0.2)
        return [0.1, 1 / 3]

    workers = [MeasuredOnce(tmp_path) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda worker: worker(None, ("cell", 900), measure, form=JSON), workers))
    assert found == [[0.1, 1 / 3]] * 3 and len(calls) == 1


def test_what_failed_is_tried_again_and_leaves_nothing_behind(tmp_path: Path) -> None:
    once = MeasuredOnce(tmp_path)

    def fail() -> list[float]:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        once(None, "cell", fail, form=JSON)
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".lock"]
    assert once(None, "cell", lambda: [1.0], form=JSON) == [1.0]
