"""Affinity with real models: how often each was loaded, read from the ledgers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lm_audit.models.toy.tiny import tiny_folder
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.reader import read_lines
from tests.plugin.acknowledging_audit import audit_source, only_run
from tests.plugin.toy_run import run_pytest, write_project


@pytest.fixture
def two_models(tmp_path: Path) -> list[str]:
    """Two models of the same weights in two folders, as --model options."""
    words: list[str] = []
    for name in ("one", "two-2"):
        shutil.copytree(tiny_folder(), tmp_path / "models" / name)
        words += ["--model", str(tmp_path / "models" / name)]
    return words


def loads(folder: Path) -> list[str]:
    """The models that workers loaded, once for each worker that did; a worker keeps what it has loaded."""
    lines, damaged = read_lines(RunFolder(only_run(folder).folder))
    assert not damaged
    loaded = {(line.worker, line.record["spec"]) for line in lines if line.kind == "model"}
    return sorted(Path(spec).name for _, spec in loaded)


def test_two_models_on_two_workers_are_loaded_twice(tmp_path: Path, two_models: list[str]) -> None:
    folder = write_project(tmp_path, test_toy=audit_source(2, model_cases=4))
    # How long loads have taken before stands: on a machine that is busy just now one worker might else help the other.
    (folder / "reports").mkdir()
    kept = {"cases": {}, "loads": {f"{name}@cpu": 1e6 for name in ("one", "two-2")}}
    (folder / "reports" / "durations.json").write_text(json.dumps(kept), encoding="utf-8")
    outcome = run_pytest(folder, "-n", "2", "--device", "cpu", *two_models, TOY_PAUSE="0")
    assert outcome.code == 0, outcome.output
    assert outcome.counts == {"passed": 10}
    assert loads(folder) == ["one", "two-2"]
    workers = {case.last.worker for case in only_run(folder).cases if case.model}
    assert len(workers) == 2
