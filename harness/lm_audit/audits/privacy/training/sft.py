"""Supervised fine-tuning (and the base stage): next-token loss over whole texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from lm_audit.audits.privacy.stages.config import TrainSettings
from lm_audit.audits.privacy.training.batches import all_batches, encode_rows, pad, require_context, token_nll
from lm_audit.audits.privacy.training.dropout import has_adapter, without_dropout
from lm_audit.audits.privacy.training.loop import Progress, run_steps
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.progress import OnProgress


def train_texts(
    module: CausalModule,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    settings: TrainSettings,
    *,
    seed: int,
    stage: str,
    checkpoint: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Progress:
    """Train in place on the texts; loss: mean negative log-likelihood over the tokens of a batch, padding left out.

    The model's own dropout is off; that of a LoRA adapter is as its settings say. Raises ``DataError`` for a text
    longer than the model's context.
    """
    rows = encode_rows(tokenizer, texts, settings.max_length)
    require_context(module, [len(row) for row in rows], "this training text", "--sft")
    device = module.get_input_embeddings().weight.device

    def loss_of(batch: list[int]) -> torch.Tensor:
        ids, mask = pad([rows[i] for i in batch], device)
        return token_nll(module, ids, mask).sum() / mask[:, 1:].sum()

    batches = all_batches(len(rows), settings, seed=seed)
    with without_dropout(module, keep=("lora_",) if has_adapter(module) else ()):
        return run_steps(
            module, batches, loss_of, settings, stage=stage, checkpoint=checkpoint, on_progress=on_progress
        )
