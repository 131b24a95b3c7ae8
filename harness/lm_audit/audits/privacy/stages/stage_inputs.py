"""What a stage is trained on: the base model's spec, and each stage's file."""

from __future__ import annotations

import os
from pathlib import Path

from lm_audit.audits.privacy.data.prepare import CORPUS, WITH, WITHOUT
from lm_audit.audits.privacy.stages.config import StagesConfig
from lm_audit.shared.textfiles import text_of


def base_spec(config: StagesConfig) -> str:
    """The model spec of stage 0; the toy by its name, since its folder moves with the package."""
    if not config.toy:
        return config.model
    from lm_audit.models.toy.tiny import TinySettings, tiny_folder

    seed = int(config.model.partition(":")[2] or config.seed)
    if config.tiny == TinySettings():
        return f"tiny:{seed}"
    return str(tiny_folder(seed, config.tiny))


def stage_spec(path: Path | str) -> str:
    """The model spec of a stage folder: itself, or what its ``spec.txt`` points to."""
    pointer = Path(path) / "spec.txt"
    # os.path answers False where a name is too long to be one; pathlib raises.
    return text_of(pointer).strip() if os.path.isfile(pointer) else str(path)


def stage_data(stage: str, folder: Path) -> Path:
    """The training file of a stage."""
    return folder / {"sft": CORPUS, "dpo_no_canary": WITHOUT, "dpo_with_canary": WITH}[stage]
