"""Supervised fine-tuning (and the base stage): next-token loss over whole texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from lm_audit.audits.privacy.config import TrainSettings
from lm_audit.audits.privacy.training.batches import all_batches, encode_rows, pad, token_nll
from lm_audit.audits.privacy.training.loop import Progress, run_steps


def train_texts(
    module: Any,
    tokenizer: Any,
    texts: Sequence[str],
    settings: TrainSettings,
    *,
    seed: int,
    stage: str,
    checkpoint: Path | None = None,
    on_step: Callable[[Progress, int], None] | None = None,
) -> Progress:
    """Train in place on the texts; loss: mean negative log-likelihood over the tokens of a batch, padding left out."""
    rows = encode_rows(tokenizer, texts, settings.max_length)
    device = module.get_input_embeddings().weight.device

    def loss_of(batch: list[int]) -> torch.Tensor:
        ids, mask = pad([rows[i] for i in batch], device)
        return token_nll(module, ids, mask).sum() / mask[:, 1:].sum()

    batches = all_batches(len(rows), settings, seed=seed)
    return run_steps(module, batches, loss_of, settings, stage=stage, checkpoint=checkpoint, on_step=on_step)
