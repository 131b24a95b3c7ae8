"""The files of an audit: the source design's CSV and JSON names, filled with what can be defended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.audits.privacy.attribution.changes import PRIMARY, risk_of
from lm_audit.audits.privacy.attribution.transitions import (
    ALPHA,
    CONSISTENCY_RULE,
    attribute_leak,
    identical_variants,
    shares,
)
from lm_audit.audits.privacy.data.jsonl import write_text
from lm_audit.audits.privacy.measure.source_columns import COLUMNS
from lm_audit.audits.privacy.stages.stage_names import CSV_NAMES, PRIMARY_TRANSITION, STAGES
from lm_audit.stats.decision import PRACTICAL

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.evidence import Evidence
    from lm_audit.stats import Estimate

CSV_FILE, JSON_FILE, TABLE_FILE, LONG_FILE = (
    "privacy_audit_summary.csv",
    "attribution_summary.json",
    "attribution_table.csv",
    "privacy_audit_long.csv",
)
OWN_COLUMNS = (
    "roc_auc",
    "pr_auc",
    "tpr_at_0.01",
    "tpr_at_0.001",
    "roc_auc.span_calibrated_logprob",
    "extraction.member.third",
    "extraction.control.third",
    "epsilon",
)


def write_outputs(evidence: Evidence, folder: Path, *, lenient: bool = False) -> list[Path]:
    """Write summary CSV, long CSV, attribution table and attribution summary; their paths."""
    table = attribute_leak(evidence, lenient=lenient)
    summary = attribution_summary(evidence, table)
    files = {
        CSV_FILE: summary_table(evidence).to_csv(index=False),
        LONG_FILE: long_table(evidence).to_csv(index=False),
        TABLE_FILE: table.to_csv(index=False),
        JSON_FILE: json.dumps(summary, indent=1, allow_nan=False, ensure_ascii=False) + "\n",
    }
    for name, text in files.items():
        write_text(folder / name, text)
    return [folder / name for name in files]


def summary_table(evidence: Evidence) -> pd.DataFrame:
    """One row a stage: ``Stage`` and the source's eleven columns, first and in its order, then this audit's own.

    ``ROC_AUC`` and ``PR_AUC`` are the source's, canaries against ordinary text; ``twin_roc_auc`` and the like compare
    with held-out twins.
    """
    import pandas as pd

    return pd.DataFrame([_summary_row(evidence, stage) for stage in stages_in(evidence)])


def stages_in(evidence: Evidence) -> list[str]:
    """Stages of the evidence, in order."""
    return [stage for stage in STAGES if f"privacy.{stage}.roc_auc" in evidence.metrics]


def _summary_row(evidence: Evidence, stage: str) -> dict[str, Any]:
    row: dict[str, Any] = {"Stage": CSV_NAMES[stage]}
    row |= {name: evidence.metrics[f"privacy.{stage}.source.{name}"].value for name in COLUMNS}
    for name in OWN_COLUMNS:
        found = evidence.metrics.get(f"privacy.{stage}.{name}")
        label = f"twin_{name}" if name.startswith(("roc", "pr_", "tpr")) else name
        row[label] = None if found is None else found.value
        row[f"{label}_low"] = None if found is None else found.low
        row[f"{label}_high"] = None if found is None else found.high
    return row


def long_table(evidence: Evidence) -> pd.DataFrame:
    """One row a run seed, stage, canary and metric: what other tools can recompute everything from."""
    import pandas as pd

    seed = evidence.parameters.get("seed")
    keys = ("item", "stage", "role", "canary_id", "family", "repetitions")
    rows = [
        {"schema": 2, "seed": seed, **{key: row.get(key) for key in keys[1:]}, "metric": name, "value": value}
        for row in evidence.rows
        for name, value in row.items()
        if name not in keys and isinstance(value, int | float) and value is not None
    ]
    return pd.DataFrame(rows)


def attribution_summary(evidence: Evidence, table: pd.DataFrame) -> dict[str, Any]:
    """The source design's ``attribution_summary.json``: same top-level keys, values with intervals and reasons."""
    rows = [_plain(row) for row in table.to_dict("records")]
    stages = stages_in(evidence)
    return {
        "summary": {
            "total_stages": len(stages),
            "stages": [CSV_NAMES[stage] for stage in stages],
            "metrics_analyzed": sorted({row["metric"] for row in rows}),
        },
        "stage_metrics": {CSV_NAMES[stage]: _stage_metrics(evidence, stage) for stage in stages},
        "stage_deltas": {_key(row): _delta(row) for row in rows},
        "attribution_scores": _attribution_scores(rows),
        "dpo_comparison": {"canary_effect": [row for row in rows if row["transition"] == PRIMARY_TRANSITION]},
        "statistical_analysis": {_key(row): _analysis(row) for row in rows},
        "decision_criteria": {
            "significant": "the 95% interval excludes 0 (touching it does not count)",
            "judged": "members' change minus twins' change, where twins have the metric; else no word on leakage",
            "practical": f"|effect| >= {PRACTICAL}",
            "decision": f"significant and Holm-adjusted p < {ALPHA} over the secondary metrics of a transition",
            "direction_consistency": CONSISTENCY_RULE,
            "primary": f"{PRIMARY_TRANSITION}/{PRIMARY}",
        },
        "interpretations": {_key(row): row["decision"] for row in rows},
        "key_findings": key_findings(evidence, rows),
    }


def key_findings(evidence: Evidence, rows: Sequence[Mapping[str, object]]) -> list[str]:
    """What the audit shows, in sentences; first whether it may conclude at all."""
    control = evidence.control
    findings = [] if control is None else [control.observed]
    if control is not None and not control.passed:
        return [*findings, "No stage is judged: the controls are void."]
    if identical_variants(evidence):
        findings.append(
            "Stages 2a and 2b score every canary the same; one of them was not trained or was loaded twice."
        )
    for row in rows:
        if row["metric"] == PRIMARY and row["delta"] is not None:
            change = (
                f"{row['transition']}: members changed by {row['delta']:+.3f} nats a token more than held-out twins"
            )
            findings.append(f"{change}{_certainty(row)}: {row['decision']}.")
    return findings


def _certainty(row: Mapping[str, object]) -> str:
    if row["low"] is None:
        return f" (no interval: {row['note']})"
    return f" [{row['low']:+.3f}, {row['high']:+.3f}], p = {row['p']:.4f}"


def _stage_metrics(evidence: Evidence, stage: str) -> dict[str, Any]:
    prefix = f"privacy.{stage}."
    return {name.removeprefix(prefix): _estimate(e) for name, e in evidence.metrics.items() if name.startswith(prefix)}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "n", "method", "note")}


def _key(row: Mapping[str, object]) -> str:
    return f"{row['transition']}/{row['metric']}"


def _delta(row: Mapping[str, Any]) -> dict[str, Any]:
    before, delta = row["before"], row["delta"]
    percent = None if not before or delta is None or row["metric"] == PRIMARY else 100 * delta / abs(before)
    return {"delta": delta, "delta_percent": percent, "low": row["low"], "high": row["high"]}


def _analysis(row: Mapping[str, object]) -> dict[str, Any]:
    criteria = {name: row.get(name) for name in ("significant", "practical", "category", "consistent")}
    effects = {"effect": row["effect"], "source_formula": row.get("source_d")}
    tests = {"p": row["p"], "p_holm": row["p_holm"]}
    return {"bootstrap_ci": [row["low"], row["high"]], "cohens_d": effects, **tests, "criteria_met": criteria}


def _attribution_scores(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Shares of SFT and DPO in the change of each metric; null with the reason where a share would mean nothing."""
    found: dict[str, Any] = {}
    by_key = {(row["transition"], row["metric"]): row for row in rows}
    for path in ("NoCanary", "WithCanary"):
        for metric in sorted({row["metric"] for row in rows}):
            pair = [by_key.get(("Base_to_SFT", metric)), by_key.get((f"SFT_to_DPO_{path}", metric))]
            if all(row is not None and row["delta"] is not None for row in pair):
                found[f"{path}/{metric}"] = _share(metric, [row for row in pair if row is not None])
    return found


def _share(metric: str, pair: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    deltas = {"SFT": pair[0]["delta"] * risk_of(metric), "DPO": pair[1]["delta"] * risk_of(metric)}
    certain = bool(pair[0]["significant"]) and bool(pair[1]["significant"])
    parts = shares(deltas, certain)
    reason = None if parts else "the changes differ in sign, or an interval holds 0; a share would mean nothing"
    return {"deltas_towards_risk": deltas, "shares": parts, "reason": reason}


def _plain(row: Mapping[object, object]) -> dict[str, Any]:
    import math

    import numpy as np

    plain: dict[str, Any] = {}
    for key, value in row.items():
        value = value.item() if isinstance(value, np.generic) else value
        plain[str(key)] = None if isinstance(value, float) and not math.isfinite(value) else value
    return plain
