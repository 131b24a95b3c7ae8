"""Both TRL trainers on a tiny model, all weights and LoRA, and the stages they write."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from lm_audit.audits.privacy.stages.config import LoraSettings, TrainSettings, smoke_config
from lm_audit.audits.privacy.stages.four_stages import run_stages

pytest.importorskip("trl", reason="trl is not installed: pip install 'pytest-lm-audit[privacy]'")


# All weights are trained too where a stage of TRL is killed (test_privacy_training_inputs.py).
@pytest.mark.parametrize(
    "lora", [pytest.param(None, id="full", marks=pytest.mark.slow), pytest.param(LoraSettings(r=4), id="lora")]
)
def test_trl_trains_the_stages_of_a_tiny_model(tmp_path: Path, lora: LoraSettings | None) -> None:
    from lm_audit.audits.privacy.audit import audit_stages
    from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions

    config = smoke_config(
        trainer="trl",
        lora=lora,
        members=2,
        controls=10,
        documents=200,
        decoys=20,
        pairs=16,
        sft=TrainSettings(epochs=1, lr=2e-3, batch_size=32, warmup_steps=2),
        # Shorter than most prompts: TRL would leave those pairs out.
        dpo=TrainSettings(epochs=1, lr=1e-4, batch_size=8, warmup_steps=0, final_share=1.0, max_length=64),
        device="cpu",
        output=tmp_path,
    )
    with pytest.warns(UserWarning, match=r"preference pairs are longer than max_length=64"):
        stages = run_stages(config)
    records = {stage: json.loads((path / "stage.json").read_text()) for stage, path in stages.items()}
    for stage in ("dpo_no_canary", "dpo_with_canary"):
        assert records[stage]["first_loss"] == pytest.approx(math.log(2), abs=1e-4)
        assert records[stage]["steps"] == math.ceil(records[stage]["rows"] / 8) >= 2
    assert records["sft"]["last_loss"] < records["sft"]["first_loss"]
    if lora is not None:
        assert (stages["dpo_with_canary"] / "adapter_config.json").is_file()
        assert not (stages["dpo_with_canary"] / "ref").exists()
    evidence = audit_stages(
        stages, tmp_path / "manifest.jsonl", device="cpu", options=ScoringOptions(source_extraction=False)
    )
    fingerprints = evidence.parameters["fingerprints"]
    assert len(set(fingerprints.values())) == 4
