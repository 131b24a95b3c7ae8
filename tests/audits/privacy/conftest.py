"""Stages of a few seconds that several tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.audits.privacy.stages.config import StagesConfig, smoke_config
from lm_audit.evidence import Evidence


@pytest.fixture(scope="session")
def smoke_stages(tmp_path_factory: pytest.TempPathFactory) -> tuple[StagesConfig, dict[str, Path]]:
    """The four stages of the smoke configuration: they show that everything runs, not that anything leaks."""
    from lm_audit.audits.privacy.stages.four_stages import run_stages

    config = smoke_config(output=tmp_path_factory.mktemp("smoke"), device="cpu")
    return config, run_stages(config)


@pytest.fixture(scope="session")
def smoke_evidence(smoke_stages: tuple[StagesConfig, dict[str, Path]]) -> Evidence:
    """Their audit, with sampled extraction and exact exposure."""
    from lm_audit.audits.privacy.audit import audit_stages
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions

    config, stages = smoke_stages
    options = ScoringOptions(samples=2, exact_positions=1)
    return audit_stages(stages, config.folder() / "manifest.jsonl", device="cpu", options=options)
