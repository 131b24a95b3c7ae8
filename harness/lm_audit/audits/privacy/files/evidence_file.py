"""Evidence on disk, so that attribution and files can be made again without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lm_audit.audits.privacy.data.jsonl import write_text
from lm_audit.errors import DataError
from lm_audit.evidence import Control, Evidence, Figure
from lm_audit.findings import Finding
from lm_audit.shared.sealed import sealed, unsealed
from lm_audit.shared.textfiles import is_file, read_json_object
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate

FILE = "evidence.json"


def save_evidence(evidence: Evidence, path: Path) -> None:
    """Write everything as strict JSON, with a checksum as the last key."""
    record: dict[str, Any] = {
        "audit": evidence.audit,
        "metrics": {name: estimate.to_json() for name, estimate in evidence.metrics.items()},
        "sources": {name: source.to_json() for name, source in evidence.sources.items()},
        "rows": evidence.rows,
        "figures": [vars(figure) for figure in evidence.figures],
        "parameters": evidence.parameters,
        "control": None if evidence.control is None else vars(evidence.control),
        "findings": [finding.to_json() for finding in evidence.findings if finding.kind == "claim"],
        "headline": evidence.headline,
        "notes": evidence.notes,
        "code_version": evidence.code_version,
    }
    write_text(path, sealed(json.dumps(record, allow_nan=False).encode("ascii")).decode("ascii") + "\n")


def load_evidence(path: Path) -> Evidence:
    """The inverse of :func:`save_evidence`; ``DataError`` for a file that is missing, changed since or of another form.

    One of before there were checksums is read without.
    """
    if not is_file(path):
        raise DataError("there is no such file; run 'lm-audit privacy audit' first", file=path)
    record = read_json_object(path)
    try:
        unsealed(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{error}; run 'lm-audit privacy audit' again", file=path) from error
    try:
        return Evidence(
            record["audit"],
            metrics={name: Estimate.from_json(entry) for name, entry in record["metrics"].items()},
            sources={name: MetricSource.from_json(entry) for name, entry in record["sources"].items()},
            rows=record["rows"],
            figures=[Figure(**entry) for entry in record["figures"]],
            parameters=record["parameters"],
            control=None if record["control"] is None else Control(**record["control"]),
            findings=tuple(Finding.from_json(entry) for entry in record.get("findings", ())),
            headline=record["headline"],
            notes=record["notes"],
            code_version=record.get("code_version", "of an older version, which did not say"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"this is no evidence of the privacy audit: {error}", file=path) from error
