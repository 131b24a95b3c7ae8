"""Stages of a few seconds that several tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filelock import FileLock

from lm_audit.audits.privacy.stages.config import StagesConfig, smoke_config
from lm_audit.evidence import Evidence


@pytest.fixture(scope="session")
def smoke_stages(tmp_path_factory: pytest.TempPathFactory) -> tuple[StagesConfig, dict[str, Path]]:
    """The four stages of the smoke configuration: they show that everything runs, not that anything leaks."""
    from lm_audit.audits.privacy.stages.four_stages import run_stages

    config = smoke_config(output=tmp_path_factory.mktemp("smoke"), device="cpu")
    return config, run_stages(config)


@pytest.fixture(scope="session")
def smoke_evidence(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Their audit, with sampled extraction and exact exposure; the first worker that asks makes it, others read it."""
    from lm_audit.audits.privacy.audit import audit_stages
    from lm_audit.audits.privacy.files.evidence_file import load_evidence, save_evidence
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions

    own = tmp_path_factory.getbasetemp()
    kept = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "smoke-evidence.json"
    with FileLock(f"{kept}.lock"):
        if kept.is_file():
            return load_evidence(kept)
        config, stages = request.getfixturevalue("smoke_stages")
        options = ScoringOptions(samples=2, exact_positions=1)
        evidence = audit_stages(stages, config.folder() / "manifest.jsonl", device="cpu", options=options)
        save_evidence(evidence, kept)
        return evidence
