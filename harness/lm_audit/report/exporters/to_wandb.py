"""Weights & Biases: one run for each model; ``WANDB_MODE=offline`` keeps it on this machine."""

from __future__ import annotations

from pathlib import Path

from lm_audit.report.exporters.flat import files_of, flat_metrics, flat_parameters, models_of, states_of
from lm_audit.runstore.run import read_run

FILES = ("index.html", "metrics.csv", "evidence.jsonl")


def export_run(folder: Path, *, project: str = "lm-audit") -> str:
    """Log the run in ``folder``; one line that says where. The library's own settings say to which server, if any."""
    import wandb

    run = read_run(folder, shown=True)
    models = models_of(run)
    for model in models:
        config = flat_parameters(run) | states_of(run, model) | {"model": model or ""}
        with wandb.init(project=project, name=f"{run.run_id} {model or ''}".strip(), config=config) as started:
            started.summary.update(flat_metrics(run, model))
            report = wandb.Artifact(f"report-{run.run_id}", type="report")
            for file in files_of(folder, FILES):
                report.add_file(str(file))
            started.log_artifact(report)
    return f"wandb: {len(models)} runs in project {project!r}"
