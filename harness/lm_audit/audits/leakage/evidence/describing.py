"""What every test of the audit says of its data: what was read, sampled and left out, and what can tell nothing."""

from __future__ import annotations

from typing import Any

from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.signs import UNREACHABLE
from lm_audit.evidence import Evidence


def note_unreachable(evidence: Evidence) -> None:
    """Say which tests cannot reach a verdict with what they were given."""
    for name, metric in evidence.metrics.items():
        if metric.unit == "p" and metric.note and UNREACHABLE in metric.note:
            evidence.notes.append(f"{name} can reach no verdict here: {metric.note}")


def describe(evidence: Evidence, benchmark: Benchmark, excluded: dict[str, str], parameters: dict[str, Any]) -> None:
    """Parameters and notes that say what was read, sampled and left out."""
    evidence.parameters.update(parameters)
    evidence.parameters["benchmark"] = {
        "name": benchmark.name,
        "files": list(benchmark.files),
        "rows": benchmark.rows,
        "usable": benchmark.usable,
        "sampled": len(benchmark.items),
        "excluded_rows": dict(benchmark.excluded),
    }
    evidence.notes += [f"{benchmark.name}: {guess}" for guess in benchmark.guesses]
    loss = benchmark.loss()
    if loss:
        evidence.notes.append(f"Warning: {benchmark.name}: {loss}")
    if benchmark.exclusions:
        listed = "; ".join(f"{e.file} row {e.row}: {e.reason}" for e in benchmark.exclusions[:20])
        evidence.notes.append(f"{sum(benchmark.excluded.values())} rows were left out: {listed}")
    if excluded:
        evidence.notes.append(
            f"{len(excluded)} items were left out of the conditions: "
            + "; ".join(f"{key} ({reason})" for key, reason in list(excluded.items())[:20])
        )
