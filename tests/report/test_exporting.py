"""Exporters: to a local MLflow file store, and what happens where a library is absent."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.errors import UsageError
from lm_audit.report.exporters import export
from lm_audit.report.exporters.flat import flat_metrics, models_of
from lm_audit.runstore.run import read_run
from tests.plugin.toy_audit import audit_project
from tests.plugin.toy_run import run_pytest


def test_metrics_are_flat_and_void_ones_stay_out(shown: Path) -> None:
    run = read_run(shown)
    assert models_of(run) == ("smollm2", "tuned-v3")
    metrics = flat_metrics(run, "tuned-v3")
    name = next(name for name in metrics if "max_min_disparity" in name and "gender" in name and name.endswith(".n"))
    assert metrics[name] == 120 and not any(name.startswith("leakage") for name in metrics)


def test_mlflow_file_store_holds_metrics_parameters_and_the_report(
    shown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow", reason="the mlflow extra is not installed")
    from mlflow.tracking import MlflowClient

    from lm_audit.report.exporters.to_mlflow import export_run

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = (tmp_path / "mlruns").as_uri()
    assert "2 runs" in export_run(shown, tracking_uri=store)
    client = MlflowClient(tracking_uri=store)
    experiment = client.get_experiment_by_name("lm-audit")
    runs = {run.data.tags["lm_audit.model"]: run for run in client.search_runs([experiment.experiment_id])}
    assert set(runs) == {"smollm2", "tuned-v3"}
    metrics = runs["tuned-v3"].data.metrics
    value = next(v for k, v in metrics.items() if k.startswith("bias.max_min_disparity/") and k.endswith("gender-en"))
    assert value == pytest.approx(0.68) and runs["tuned-v3"].data.tags["state.missed"] == "1"
    files = {file.path for file in client.list_artifacts(runs["smollm2"].info.run_id)}
    assert {"index.html", "metrics.csv"} <= files


def test_wandb_runs_offline(shown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="the wandb extra is not installed")
    from lm_audit.report.exporters.to_wandb import export_run

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    assert "2 runs" in export_run(shown)
    assert list(tmp_path.glob("wandb/offline-run-*"))


def test_an_absent_library_is_told_before_anything_runs(
    shown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    audit_project(tmp_path)
    taken = "import sys\nsys.modules['wandb'] = None\n"
    (tmp_path / "conftest.py").write_text(taken + (tmp_path / "conftest.py").read_text())
    done = run_pytest(tmp_path, "--export", "wandb")
    assert done.code == 4 and "--export wandb: the wandb exporter needs its library" in done.output
    assert "pytest-lm-audit[wandb]" in done.output and not (tmp_path / "reports").exists()
    monkeypatch.setitem(sys.modules, "wandb", None)
    before = (shown / "index.html").stat().st_mtime_ns
    assert main(["report", str(shown), "--export", "wandb"]) == 2
    assert "needs its library" in capsys.readouterr().err and (shown / "index.html").stat().st_mtime_ns == before


def test_a_comparison_that_cannot_be_written_is_told_first(
    shown: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path, tmp_path / "file" / "x.html"):
        assert main(["compare", str(shown), str(shown), "--html", str(target)]) == 2
    assert capsys.readouterr().out == ""


def test_an_absent_library_names_the_extra(shown: Path) -> None:
    if importlib.util.find_spec("wandb") is not None:
        pytest.skip("wandb is installed")
    with pytest.raises(UsageError, match=r"pytest-lm-audit\[wandb\]"):
        export("wandb", shown)
    with pytest.raises(UsageError, match="no exporter 'nowhere'"):
        export("nowhere", shown)
