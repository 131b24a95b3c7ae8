"""From texts to padded batches, in an order that is a pure function of seed and epoch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from lm_audit.audits.privacy.stages.config import TrainSettings
from lm_audit.audits.privacy.training.cut_rows import tell_cut
from lm_audit.errors import ContextError, DataError, beyond_context
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.models.toy.training import TrainingSettings, pad_rows, shuffled_batches

Ids = tuple[int, ...]


def encode_rows(tokenizer: Tokenizer, texts: Sequence[str], max_length: int, file: Path | None = None) -> list[Ids]:
    """Each text (of ``file``) as BOS (where the tokenizer adds one), its tokens and EOS; a warning tells which are cut
    at ``max_length``, a ``DataError`` of which there is nothing to predict.
    """
    head, end = frame(tokenizer)
    bodies = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    rows = [framed(head, tuple(body), end) for body in bodies]
    for number, row in enumerate(rows, 1):
        if len(row) < 2:
            raise DataError(
                f"the text {texts[number - 1]!r:.80} is {len(row)} tokens, and the first has none before it: there is"
                " nothing to learn",
                file=file,
                row=number,
            )
    tell_cut([len(row) for row in rows], max_length, "training texts", "there")
    return [row[:max_length] for row in rows]


def require_context(module: CausalModule, lengths: Sequence[int], what: str, setting: str) -> None:
    """``ContextError`` for the first row that the model cannot read, with what to set; lengths in tokens."""
    from lm_audit.models.context import context_window

    require_window(context_window(module.config), type(module).__name__, lengths, what, setting)


def require_window(
    window: int | None, name: str, lengths: Sequence[int], what: str, setting: str, file: Path | None = None
) -> None:
    """The same for a model ``name`` that reads ``window`` tokens, with the file of the rows."""
    for number, length in enumerate(lengths, 1):
        if window is not None and length > window:
            advice = f"shorten it, or cut rows with {setting} max_length={window}"
            raise ContextError(beyond_context(what, length, name, window, advice), file=file, row=number)


def frame(tokenizer: Tokenizer) -> tuple[Ids, Ids]:
    """What stands before a text that is trained on, and behind it."""
    from lm_audit.models.scoring.requests import default_bos

    return default_bos(tokenizer), end_ids(tokenizer)


def framed(head: Ids, ids: Ids, end: Ids) -> Ids:
    """``ids`` between both, neither of them twice: texts from chat templates spell them out."""
    before = () if ids[: len(head)] == head else head
    behind = () if ids[len(ids) - len(end) :] == end else end
    return (*before, *ids, *behind)


def end_ids(tokenizer: Tokenizer) -> Ids:
    """The EOS token, or nothing where the tokenizer has none."""
    return () if tokenizer.eos_token_id is None else (int(tokenizer.eos_token_id),)


def all_batches(n: int, settings: TrainSettings, *, seed: int) -> list[list[int]]:
    """The row numbers of every batch of every epoch; ``DataError`` for no rows."""
    if n == 0:
        raise DataError("there is no row to train on")
    return list(shuffled_batches(n, TrainingSettings(settings.epochs, settings.lr, settings.batch_size), seed))


def pad(rows: Sequence[Ids], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids, mask), each [rows, longest]; padding is masked out, so its id (0) does not matter."""
    ids, mask = pad_rows(rows, 0, device)
    return ids, mask.bool()


def token_nll(module: CausalModule, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Negative log-likelihood of each token after the first, [rows, length - 1], 0 where masked; in nats."""
    logits = module(input_ids=ids, attention_mask=mask.long(), use_cache=False).logits[:, :-1]
    flat = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    return flat.view(ids.shape[0], -1) * mask[:, 1:]
