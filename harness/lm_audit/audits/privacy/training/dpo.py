"""Direct preference optimisation (Rafailov et al. 2023) against a frozen copy of the SFT stage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lm_audit.audits.privacy.stages.config import TrainSettings
from lm_audit.audits.privacy.training.batches import Ids, all_batches, end_ids, pad, require_context, token_nll
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
    rows = [_encode_pair(tokenizer, pair) for pair in pairs]
    for number, sides in enumerate(rows, 1):
        if min(len(side.ids) - side.start - len(end_ids(tokenizer)) for side in sides) < 1:
            raise DataError(
                "a completion of this pair has no token of its own: there is nothing to prefer", file=file, row=number
            )
        if sides[0].ids == sides[1].ids:
            raise DataError(
                "chosen and rejected are the same tokens: there is nothing to prefer", file=file, row=number
            )
    longest = [max(len(side.ids) for side in sides) for sides in rows]
    tell_cut(longest, max_length, "preference pairs", "from the left, where the prompt begins")
    return [(_cut(one, max_length), _cut(other, max_length)) for one, other in rows]


def whole_length(tokenizer: Tokenizer, prompt: str, completion: str) -> int:
    """How many tokens a prompt and its completion are, with what frames them."""
    return len(_encode(tokenizer, prompt, completion).ids)


def _encode_pair(tokenizer: Tokenizer, pair: Mapping[str, Any]) -> tuple[Completion, Completion]:
    return (
        _encode(tokenizer, pair["prompt"], pair["chosen"]),
        _encode(tokenizer, pair["prompt"], pair["rejected"]),
    )


def _cut(side: Completion, max_length: int) -> Completion:
    """The last ``max_length`` tokens: the completion is what is scored."""
    cut = max(0, len(side.ids) - max_length)
    return Completion(side.ids[cut:], max(1, side.start - cut))


def _encode(tokenizer: Tokenizer, prompt: str, completion: str) -> Completion:
    """Prompt and completion tokenised as one text, so that a canary has the tokens it was trained with in SFT."""
    from lm_audit.models.scoring.requests import default_bos
    from lm_audit.models.text.token_spans import encode_texts

    head = default_bos(tokenizer)
    whole = encode_texts(tokenizer, [prompt + completion])[0]
    inside = whole.tokens_in((len(prompt), len(prompt) + len(completion)))
    start = len(head) + (inside[0] if inside else len(whole.ids))
    return Completion((*head, *whole.ids, *end_ids(tokenizer)), start)


def _batch_logprobs(
    module: CausalModule, rows: Sequence[tuple[Completion, Completion]], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    both = [pair[0] for pair in rows] + [pair[1] for pair in rows]
    ids, mask = pad([item.ids for item in both], device)
    places = torch.arange(1, ids.shape[1], device=device)[None]
    starts = torch.tensor([item.start for item in both], device=device)[:, None]
    sums = -(token_nll(module, ids, mask) * (places >= starts)).sum(1)
    return sums[: len(rows)], sums[len(rows) :]
