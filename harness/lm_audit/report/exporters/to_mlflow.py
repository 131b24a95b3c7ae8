"""MLflow: one MLflow run for each model, with metrics, parameters and the report as artifacts."""

from __future__ import annotations

from pathlib import Path

from lm_audit.report.exporters.flat import files_of, flat_metrics, flat_parameters, models_of, states_of
from lm_audit.runstore.run import read_run

FILES = ("index.html", "metrics.csv", "evidence.jsonl", "junit.xml", "run.json")


def export_run(folder: Path, *, tracking_uri: str | None = None, experiment: str = "lm-audit") -> str:
    """Log the run in ``folder``; ``tracking_uri`` is MLflow's own setting where None. One line that says where."""
    from mlflow.tracking import MlflowClient

    run = read_run(folder, shown=True)
    client = MlflowClient(tracking_uri=tracking_uri)
    found = client.get_experiment_by_name(experiment)
    experiment_id = found.experiment_id if found else client.create_experiment(experiment)
    models = models_of(run)
    for model in models:
        name = f"{run.run_id} {model}" if model else run.run_id
        tags = {"lm_audit.run_id": run.run_id, "lm_audit.model": model or "", **states_of(run, model)}
        started = client.create_run(experiment_id, run_name=name, tags=tags)
        for key, text in flat_parameters(run).items():
            client.log_param(started.info.run_id, key, text)
        for key, value in flat_metrics(run, model).items():
            client.log_metric(started.info.run_id, key, value)
        for file in files_of(folder, FILES):
            client.log_artifact(started.info.run_id, str(file))
        client.set_terminated(started.info.run_id)
    return f"mlflow: {len(models)} runs in experiment {experiment!r}"
