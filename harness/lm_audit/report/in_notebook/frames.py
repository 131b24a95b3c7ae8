"""Evidence and runs as data frames: one tidy table of metrics, of items, of findings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lm_audit.errors import DataWarning

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.evidence import Evidence, Frame
    from lm_audit.findings.record import Finding
    from lm_audit.runstore.records import Run

METRIC_COLUMNS = (
    "title", "value", "low", "high", "n", "units", "confidence", "chance", "unit", "better", "method", "note",
)  # fmt: skip
FINDING_COLUMNS = (
    "key", "verdict", "statement", "metric", "value", "low", "high", "n", "unit", "null", "margin", "p", "adjusted",
    "headline", "size", "excluded", "needed", "counted", "reason", "look", "page",
)  # fmt: skip


def evidence_frame(evidence: Evidence, what: Frame = "metrics") -> pd.DataFrame:
    """The metrics (indexed by name), the items or the findings of one evidence; ``ValueError`` for another word."""
    import pandas as pd

    from lm_audit.audits.metric_info import metric_info

    if what == "items":
        return pd.DataFrame(evidence.rows)
    if what == "findings":
        return findings_frame(evidence.findings)
    if what != "metrics":
        raise ValueError(f"a frame holds 'metrics', 'items' or 'findings', got {what!r}")
    rows = []
    for name, estimate in evidence.metrics.items():
        info = metric_info(name)
        rows.append({"title": info.title if info else name, **estimate.to_json()})
    return pd.DataFrame(rows, columns=list(METRIC_COLUMNS), index=pd.Index(evidence.metrics, name="metric"))


def findings_frame(findings: Iterable[Finding], extra: Iterable[dict[str, Any]] = ()) -> pd.DataFrame:
    """One row a claim; ``extra`` holds further columns for each, in the same order."""
    import pandas as pd

    rows = []
    more = list(extra)
    for at, finding in enumerate(findings):
        if finding.kind == "claim":
            effect = {} if finding.effect is None else finding.effect.to_json()
            own = {name: getattr(finding, name) for name in FINDING_COLUMNS if hasattr(finding, name)}
            known = {name: effect.get(name) for name in ("value", "low", "high", "n", "unit")}
            rows.append({**(more[at] if more else {}), **own, **known})
    front = list(more[0]) if more else []
    return pd.DataFrame(rows, columns=[*front, *FINDING_COLUMNS])


def run_metrics(run: Run) -> pd.DataFrame:
    """A row for every metric of every case, as in ``metrics.csv``."""
    from lm_audit.report.tables.tidy import metrics_table

    return metrics_table(run)


def run_items(run: Run) -> pd.DataFrame:
    """A row for every item of every case, the case's own columns in front, as in ``items.parquet``."""
    import pandas as pd

    from lm_audit.report.tables.items import KEYS, case_rows, items_table, joined
    from lm_audit.runstore.soundness.beside import told_damage

    found = [(case, case_rows(run, case)) for case in run.cases]
    tables = [items_table(case, read.rows) for case, read in found if read.rows]
    if damaged := [damage for _, read in found for damage in read.damaged]:
        warnings.warn(told_damage(damaged), DataWarning, stacklevel=3)
    frame: pd.DataFrame = joined(tables).to_pandas() if tables else pd.DataFrame(columns=[*KEYS, "item"])
    return frame


def run_findings(run: Run) -> pd.DataFrame:
    """A row for every claim, the strongest first, with audit, model, case, and whether the audit is void."""
    from lm_audit.report.conclusions.by_strength import by_strength
    from lm_audit.report.conclusions.voids import Voids

    voids = Voids(run)
    placed = by_strength(run)
    extra = [
        {"audit": case.audit, "model": case.model, "case_id": case.case_id, "void": case in voids, "toy": case.toy}
        for case, _ in placed
    ]
    return findings_frame((finding for _, finding in placed), extra)
