"""What ``max_length`` may not cut off: canaries and completions."""

from __future__ import annotations

from pathlib import Path

from lm_audit.audits.privacy.data.canaries import members
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.data.preferences import read_preferences
from lm_audit.audits.privacy.stages.config import StagesConfig
from lm_audit.audits.privacy.stages.stage_inputs import stage_data
from lm_audit.errors import DataError
from lm_audit.models.text.tokenizer import Tokenizer


def require_whole_canaries(config: StagesConfig, manifest: Manifest, folder: Path, tokenizer: Tokenizer) -> None:
    """``DataError`` where the ``max_length`` of a stage would cut a canary: what was cut off was never trained on."""
    for canary in members(manifest.canaries):
        path = stage_data("sft", folder)
        _require(tokenizer, canary.text, f"the canary {canary.id}", config.sft.max_length, "sft", path)
    path = stage_data("dpo_with_canary", folder)
    for number, pair in enumerate(read_preferences(path), 1):
        for side in ("chosen", "rejected") if pair.get("kind") == "canary" else ():
            what = f"{side} of the pair of canary {pair.get('canary_id')}"
            _require(tokenizer, pair[side], what, config.dpo.max_length, "dpo", path, number)


def _require(
    tokenizer: Tokenizer, text: str, what: str, most: int, setting: str, path: Path, row: int | None = None
) -> None:
    from lm_audit.audits.privacy.training.batches import frame, framed

    head, end = frame(tokenizer)
    length = len(framed(head, tuple(tokenizer(text, add_special_tokens=False)["input_ids"]), end))
    if length > most:
        raise DataError(
            f"{what} has {length} tokens and would be cut at {most}; set --{setting} max_length={length} or more",
            file=path,
            row=row,
        )
