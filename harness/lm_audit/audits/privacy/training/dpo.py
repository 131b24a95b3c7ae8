"""Direct preference optimisation (Rafailov et al. 2023) against a frozen copy of the SFT stage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from lm_audit.audits.privacy.stages.config import TrainSettings
from lm_audit.audits.privacy.training.batches import Ids, all_batches, frame, framed, pad, require_context, token_nll
from lm_audit.audits.privacy.training.cut_rows import tell_cut
from lm_audit.audits.privacy.training.dropout import without_dropout
from lm_audit.audits.privacy.training.loop import Progress, run_steps
from lm_audit.errors import DataError, ModelError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.shared.progress import OnProgress

FIRST_LOSS_TOLERANCE = 5e-3
"""At the first step policy and reference are equal, so that the loss is ln 2 whatever the data."""


@dataclass(frozen=True)
class Completion:
    """Token ids of prompt and completion, and where the completion begins."""

    ids: Ids
    start: int


def train_preferences(
    module: CausalModule,
    tokenizer: Tokenizer,
    pairs: Sequence[Mapping[str, object]],
    settings: TrainSettings,
    *,
    beta: float,
    seed: int,
    stage: str,
    checkpoint: Path | None = None,
    reference: Sequence[tuple[float, float]] | None = None,
    on_progress: OnProgress | None = None,
) -> Progress:
    """Train in place on the pairs; loss: -log sigmoid(beta (policy margin - reference margin)), margins in nats.

    The reference's log-probabilities are those of ``module`` before the first step, computed once (``reference`` gives
    them on a resumed run). Raises ``ModelError`` unless the first loss is ln 2: then the reference is another model.
    """
    rows = encode_pairs(tokenizer, pairs, settings.max_length)
    require_context(module, [max(len(side.ids) for side in pair) for pair in rows], "this preference pair", "--dpo")
    device = module.get_input_embeddings().weight.device
    frozen = torch.tensor(reference or completion_logprobs(module, rows), dtype=torch.float64, device=device)

    def loss_of(batch: list[int]) -> torch.Tensor:
        chosen, rejected = _batch_logprobs(module, [rows[i] for i in batch], device)
        margin = (chosen - rejected) - (frozen[batch, 0] - frozen[batch, 1]).to(chosen.dtype)
        return -torch.nn.functional.logsigmoid(beta * margin).mean()

    batches = all_batches(len(rows), settings, seed=seed)
    with without_dropout(module):
        progress = run_steps(
            module, batches, loss_of, settings, stage=stage, checkpoint=checkpoint, on_progress=on_progress
        )
    check_first_loss(progress.losses[0], stage)
    return progress


def check_first_loss(loss: float, stage: str) -> None:
    """``ModelError`` unless the first DPO loss is ln 2."""
    if abs(loss - math.log(2)) > FIRST_LOSS_TOLERANCE:
        raise ModelError(
            f"stage {stage}: the first DPO loss is {loss:.4f}, not ln 2 = 0.6931: "
            "the reference model is not the SFT stage"
        )


@torch.no_grad()
def completion_logprobs(
    module: CausalModule, rows: Sequence[tuple[Completion, Completion]], batch_size: int = 16
) -> list[tuple[float, float]]:
    """Sum log-probability of chosen and rejected of every pair, in nats, without dropout."""
    module.eval()
    device = module.get_input_embeddings().weight.device
    found: list[tuple[float, float]] = []
    for start in range(0, len(rows), batch_size):
        chosen, rejected = _batch_logprobs(module, rows[start : start + batch_size], device)
        found += list(zip(chosen.tolist(), rejected.tolist(), strict=True))
    return found


def encode_pairs(
    tokenizer: Tokenizer, pairs: Sequence[Mapping[str, object]], max_length: int, file: Path | None = None
) -> list[tuple[Completion, Completion]]:
    """Each pair (of ``file``) as ids; ``DataError`` for a completion without a token, a warning where one is cut."""
    from lm_audit.models.scoring.boundary import TextSplitter

    head, end = frame(tokenizer)
    texts = [(str(pair["prompt"]), str(pair[side])) for pair in pairs for side in ("chosen", "rejected")]
    # Prompt and completion as one text, so that a canary has the tokens it was trained with in SFT.
    splits = TextSplitter(tokenizer).split([a + b for a, b in texts], [len(prompt) for prompt, _ in texts])
    found = iter([_encode(head, tuple(map(int, ids)), end, start) for ids, start, _ in splits])
    rows = list(zip(found, found, strict=True))
    for number, sides in enumerate(rows, 1):
        if min(len(side.ids) - side.start - len(end) for side in sides) < 1:
            raise DataError(
                "a completion of this pair has no token of its own: there is nothing to prefer", file=file, row=number
            )
        if sides[0].ids == sides[1].ids:
            raise DataError(
                "chosen and rejected are the same tokens: there is nothing to prefer", file=file, row=number
            )
    longest = [max(len(side.ids) for side in sides) for sides in rows]
    tell_cut(longest, max_length, "preference pairs", "from the left, where the prompt begins")
    return [_cut(sides, max_length, head) for sides in rows]


def _encode(head: Ids, ids: Ids, end: Ids, start: int) -> Completion:
    return Completion(framed(head, ids, end), start + (0 if ids[: len(head)] == head else len(head)))


def _cut(sides: tuple[Completion, Completion], most: int, head: Ids) -> tuple[Completion, Completion]:
    """Both without as much of their prompt, behind BOS, as is too much of the longer; of what is too long even so the
    last tokens, since the completion is what is scored.
    """
    first = len(head) if sides[0].ids[: len(head)] == head else 0
    over = max(len(side.ids) for side in sides) - most
    gone = max(0, min(over, min(side.start for side in sides) - max(first, 1)))
    chosen, rejected = (
        Completion(
            (*side.ids[:first], *side.ids[first + gone :])[-most:], max(1, side.start - max(gone, len(side.ids) - most))
        )
        for side in sides
    )
    return chosen, rejected


def _batch_logprobs(
    module: CausalModule, rows: Sequence[tuple[Completion, Completion]], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    both = [pair[0] for pair in rows] + [pair[1] for pair in rows]
    ids, mask = pad([item.ids for item in both], device)
    places = torch.arange(1, ids.shape[1], device=device)[None]
    starts = torch.tensor([item.start for item in both], device=device)[:, None]
    sums = -(token_nll(module, ids, mask) * (places >= starts)).sum(1)
    return sums[: len(rows)], sums[len(rows) :]
