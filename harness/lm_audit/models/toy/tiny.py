"""The embedded toy: a byte-level Llama of 0.42 M parameters, made and trained from a seed in seconds.

It knows some hundred words and nothing else; audits plant effects into it and see whether they find them. The weights
of seed 0 lie in the package, since training ends in other bits on another processor;
``python -m lm_audit.models.toy.tiny FOLDER`` makes them again.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.errors import UsageError
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.context import context_window
from lm_audit.models.files.disk_cache import build_once, cache_dir
from lm_audit.models.text.byte_tokenizer import PAD, TOKEN_IDS, byte_tokenizer
from lm_audit.models.text.text_ids import prompt_ids
from lm_audit.models.text.tokenizer import Tokenizer
from lm_audit.models.toy.tiny_text import decoy_text, seeded_text
from lm_audit.shared.code_version import made_by

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.toy.criterion import Criterion, TrainingRecord

__all__ = ["TinySettings", "build_tiny", "seeded_text", "train_tiny", "train_tiny_until"]

EMBEDDED = Path(__file__).parent / "embedded" / "tiny"
"""The shipped model of seed 0 and the default settings."""

_VERSION = 1
"""Raise when the same settings train another model than before."""


@dataclass(frozen=True)
class TinySettings:
    """Shape, text and training of the base model; ``rows`` counts the ``decoys`` among them."""

    layers: int = 2
    hidden: int = 128
    heads: int = 4
    mlp: int = 336
    context: int = 512
    rows: int = 1500
    decoys: int = 120
    epochs: int = 2
    lr: float = 3e-3
    batch_size: int = 32
    warmup_steps: int = 20
    version: int = field(default=_VERSION)

    def key(self, seed: int) -> str:
        """What the cached folder is called by, beside the code that makes it: a hash of every setting and the seed."""
        content = json.dumps(asdict(self) | {"seed": seed}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def tiny_folder(seed: int = 0, settings: TinySettings | None = None) -> Path:
    """The folder of that model, trained if need be."""
    chosen = settings or TinySettings()
    if seed == 0 and chosen == TinySettings():
        return EMBEDDED
    name = f"{chosen.key(seed)}-{made_by('models')[:8]}"
    return build_once(cache_dir() / "tiny" / name, lambda folder: _build_folder(seed, chosen, folder))


def build_tiny(seed: int, settings: TinySettings) -> tuple[Any, Any]:
    """Module and tokenizer, initialised and trained from ``seed``; nothing is read from or written to the cache."""
    from lm_audit.models.toy.training import TrainingSettings, train_on_rows

    tokenizer = byte_tokenizer(settings.context)
    module = _initial_module(seed, settings)
    rows = text_rows(tokenizer, base_text(seed, settings))
    training = TrainingSettings(settings.epochs, settings.lr, settings.batch_size, warmup_steps=settings.warmup_steps)
    train_on_rows(module, rows, training, seed=seed, pad=PAD)
    return module, tokenizer


def base_text(seed: int, settings: TinySettings | None = None) -> list[str]:
    """The base model's training text: template sentences and decoys, shuffled."""
    chosen = settings or TinySettings()
    rows = seeded_text(chosen.rows - chosen.decoys, seed) + decoy_text(chosen.decoys, seed)
    order = np.random.default_rng([seed, 2]).permutation(len(rows))
    return [rows[index] for index in order]


def train_tiny(
    model: LanguageModel,
    texts: Sequence[str | Sequence[int]],
    *,
    seed: int,
    epochs: int,
    lr: float,
    batch_size: int = 32,
    warmup_steps: int = 20,
    name: str | None = None,
) -> LanguageModel:
    """A new model: a copy of ``model`` trained further on ``texts``; ``model`` itself stays as it is.

    A text becomes what its tokenizer makes of it plus EOS; token ids are taken as they are. Same seed, same bits (CPU).
    Raises ``UsageError`` for texts that are empty or longer than the context, ``ModelError`` where the loss is NaN.
    """
    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.toy.training import TrainingSettings, train_on_rows

    rows = text_rows(model.tokenizer, texts, context=context_window(model.module.config))
    module = _in_full_precision(model.module)
    pad = model.tokenizer.pad_token_id
    settings = TrainingSettings(epochs, lr, batch_size, warmup_steps=warmup_steps)
    train_on_rows(module, rows, settings, seed=seed, pad=0 if pad is None else pad)
    return LanguageModel(_rounded(module, model.module), model.tokenizer, name=name or f"{model.name}-trained")


def train_tiny_until(
    model: LanguageModel,
    texts: Sequence[str | Sequence[int]],
    criterion: Criterion,
    *,
    seed: int,
    lr: float,
    batch_size: int = 32,
    warmup_steps: int = 20,
    name: str | None = None,
) -> tuple[LanguageModel, TrainingRecord]:
    """As :func:`train_tiny`, epoch after epoch until ``criterion`` holds: the new model and how long it took.

    For planted models on which a verdict rests: their number of steps follows from what they have learnt. Raises
    ``UsageError`` for texts as :func:`train_tiny` does, ``ModelError`` where the criterion's cap is reached.
    """
    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.toy.criterion import endless_batches, train_to_criterion
    from lm_audit.models.toy.training import TrainingSettings

    rows = text_rows(model.tokenizer, texts, context=context_window(model.module.config))
    module = _in_full_precision(model.module)
    pad = model.tokenizer.pad_token_id
    settings = TrainingSettings(1, lr, batch_size, warmup_steps=warmup_steps)
    batches = endless_batches(rows, settings, seed)
    record = train_to_criterion(module, batches, settings, criterion, pad=0 if pad is None else pad)
    return LanguageModel(_rounded(module, model.module), model.tokenizer, name=name or f"{model.name}-trained"), record


def _in_full_precision(module: CausalModule) -> CausalModule:
    """A copy to train: in 16 bits AdamW divides by squares that are 0 there."""
    copied = copy.deepcopy(module)
    return copied if copied.dtype.itemsize >= 4 else copied.float()


def _rounded(trained: CausalModule, like: CausalModule) -> CausalModule:
    """The trained weights in the precision of ``like``, whose buffers (rotary frequencies) keep their own."""
    if trained.dtype == like.dtype:
        return trained
    module = copy.deepcopy(like)
    module.load_state_dict(trained.state_dict())
    return module.eval()


def text_rows(
    tokenizer: Tokenizer, texts: Sequence[str | Sequence[int]], *, context: int | None = None
) -> list[list[int]]:
    """One row of token ids a text, EOS at the end of each that came as text."""
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    rows = [[*prompt_ids(tokenizer, text), *end] if isinstance(text, str) else [int(i) for i in text] for text in texts]
    if not rows:
        raise UsageError("there is no text to train on")
    for number, row in enumerate(rows):
        if len(row) < 2 or (context and len(row) > context):
            raise UsageError(f"training text {number} has {len(row)} tokens; expected 2 to {context or 'any number'}")
    return rows


def _initial_module(seed: int, settings: TinySettings) -> CausalModule:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        **TOKEN_IDS,
        hidden_size=settings.hidden,
        intermediate_size=settings.mlp,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        max_position_embeddings=settings.context,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module: CausalModule = LlamaForCausalLM(config)
        return module.float()


def _build_folder(seed: int, settings: TinySettings, folder: Path) -> None:
    module, tokenizer = build_tiny(seed, settings)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    import sys

    _build_folder(0, TinySettings(), Path(sys.argv[1]))
