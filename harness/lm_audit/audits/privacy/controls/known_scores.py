"""A control whose scores are known on paper: a model that predicts each token from the one before it.

The layers of a small Llama add nothing, so that its answer is a formula of two matrices. Whatever reads the wrong
token, the wrong text or the wrong sign gives other numbers; nothing here is random but the matrices. What the audit
reports of texts by their log-probabilities alone, of ranks among all secrets, of known replies and of several seeds is
held beside it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.privacy.controls.known_members import wrong_of_known_members, wrong_of_known_ranks
from lm_audit.audits.privacy.controls.known_replies import wrong_of_known_replies, wrong_of_known_thoughts
from lm_audit.audits.privacy.controls.known_seeds import wrong_of_known_seeds, wrong_power
from lm_audit.audits.privacy.data.canaries import Canary, generate_canaries
from lm_audit.audits.second_opinion import found_wrong, held_by_its_rows
from lm_audit.evidence import Control, Evidence
from lm_audit.models.causal_module import DecoderModule
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel

Floats = NDArray[np.float64]
CANARIES = 24
TOLERANCE = 1e-4
"""Nats a token; scores in float32 come within 1e-6 of the formula."""

COLUMNS = (
    "mean_logprob",
    "span_mean_logprob",
    "min_k20_ceil",
    "span_min_k20_ceil",
    "min_kpp20_ceil",
    "span_min_kpp20_ceil",
    "mean_entropy_scored",
    "zlib_ratio_mean_nll",
    "lowercase_log_ratio",
)
"""Ranks are left out: two logits that are equal to seven digits may change places between processors."""


def known_scores(seed: int = 0) -> Evidence:
    """Positive control: the scores of 24 canaries equal the formula, one by one, and what is told of known answers is
    so."""
    from lm_audit.audits.privacy.measure.scores import score_texts

    model = bigram_model(seed)
    canaries = generate_canaries(CANARIES, seed=seed)
    table = score_texts(model, [c.text for c in canaries], spans=[c.secret_span for c in canaries])
    evidence = judge_scores(table, expected_scores(model, canaries))
    return held_by_its_rows(evidence, also=_wrong_of_known(model, seed), counts=[({}, CANARIES)])


def _wrong_of_known(model: LanguageModel, seed: int) -> list[str]:
    """What is reported of answers that are known beforehand, the model's and made ones, and is not so."""
    paper = Paper(model, _table(model))
    return [
        *found_wrong("texts scored alone", lambda: wrong_of_known_members(paper, seed)),
        *found_wrong("ranks among all secrets", lambda: wrong_of_known_ranks(paper, seed)),
        *found_wrong("replies known beforehand", wrong_of_known_replies),
        *found_wrong("thoughts known beforehand", wrong_of_known_thoughts),
        *found_wrong("seeds known beforehand", wrong_of_known_seeds),
        *found_wrong("the power of a design", wrong_power),
    ]


@dataclass(frozen=True, eq=False)
class Paper:
    """A model and what it says on paper: log-probabilities of each token after each [tokens before, tokens]."""

    model: LanguageModel
    table: Floats

    def tokens(self, text: str) -> Floats:
        """Log-probabilities of a text's tokens, in nats."""
        return _tokens(self.table, self.model, text)[0]


def bigram_model(seed: int) -> LanguageModel:
    """A byte-level Llama whose attention and MLP add nothing, with seeded matrices before and after them."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from lm_audit.models import LanguageModel
    from lm_audit.models.text.byte_tokenizer import BOS, EOS, PAD, VOCABULARY, byte_tokenizer

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=False,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        module: DecoderModule = LlamaForCausalLM(config)
        module.eval()
        for layer in module.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        module.model.embed_tokens.weight.normal_()
        module.lm_head.weight.normal_(std=0.5)
    return LanguageModel(module.requires_grad_(False), byte_tokenizer(256), name="bigrams")


def expected_scores(model: LanguageModel, canaries: Sequence[Canary]) -> dict[str, Floats]:
    """The columns by the formula, in float64."""
    table = _table(model)
    rows = [_row(table, model, canary) for canary in canaries]
    return {name: np.array([row[name] for row in rows]) for name in COLUMNS}


def _table(model: LanguageModel) -> Floats:
    """Log-probability of each token after each: log softmax of head x normalised embedding of the token before."""
    module: Any = model.module
    embedding, head = (
        weight.detach().double().numpy() for weight in (module.model.embed_tokens.weight, module.lm_head.weight)
    )
    scale = np.sqrt((embedding**2).mean(axis=1, keepdims=True) + module.config.rms_norm_eps)
    logits = (embedding / scale) @ head.T
    table = logits - np.log(np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True))
    return np.asarray(table - logits.max(axis=1, keepdims=True), dtype=np.float64)


def _row(table: Floats, model: LanguageModel, canary: Canary) -> dict[str, float]:
    logprobs, spread = _tokens(table, model, canary.text)
    span = slice(*canary.secret_span)
    row = _columns("", logprobs) | _columns("span_", logprobs[span])
    lowered, _ = _tokens(table, model, canary.text.lower())
    size = len(zlib.compress(canary.text.encode()))
    return row | {
        "min_kpp20_ceil": _unlikely(logprobs, spread),
        "span_min_kpp20_ceil": _unlikely(logprobs[span], spread[:, span]),
        "mean_entropy_scored": float(-spread[0].mean()),
        "zlib_ratio_mean_nll": -row["mean_logprob"] / size,
        "lowercase_log_ratio": row["mean_logprob"] / float(lowered.mean()),
    }


def _tokens(table: Floats, model: LanguageModel, text: str) -> tuple[Floats, Floats]:
    """Log-probabilities of a text's tokens, and mean and spread (2, tokens) of what stood to be chosen there."""
    from lm_audit.models.text.byte_tokenizer import BOS

    # A byte is a token here: the secret's characters are its tokens.
    ids = model.tokenizer(text, add_special_tokens=False).input_ids
    rows = table[np.array([BOS, *ids[:-1]])]
    weights = np.exp(rows)
    mean = (weights * rows).sum(axis=1)
    spread = np.sqrt((weights * (rows - mean[:, None]) ** 2).sum(axis=1))
    return rows[np.arange(len(ids)), ids], np.stack([mean, spread])


def _columns(prefix: str, logprobs: Floats) -> dict[str, float]:
    return {f"{prefix}mean_logprob": float(logprobs.mean()), f"{prefix}min_k20_ceil": _lowest(logprobs)}


def _unlikely(logprobs: Floats, spread: Floats) -> float:
    """How far below the mean, in standard deviations of what stood to be chosen, the lowest fifth lies."""
    return _lowest((logprobs - spread[0]) / spread[1])


def _lowest(values: Floats) -> float:
    return float(np.sort(values)[: -(-len(values) // 5)].mean())


def judge_scores(table: pd.DataFrame, expected: dict[str, Floats]) -> Evidence:
    """Passed where no column of any canary is off by more than 1e-4."""
    errors = {name: np.abs(np.asarray(table[name], dtype=np.float64) - truth) for name, truth in expected.items()}
    errors = {name: np.nan_to_num(found, nan=1e308, posinf=1e308) for name, found in errors.items()}
    worst = max(errors, key=lambda name: float(errors[name].max()))
    each = np.max(list(errors.values()), axis=0)
    error = float(each.max())
    evidence = Evidence("privacy", headline="privacy.control_error", parameters={"canaries": len(table)})
    method = "largest error of a canary's score against the formula"
    estimate = Estimate(error, n=len(table), confidence=None, method=method, unit="nats", better="lower")
    # One unit of all canaries, whose value is its largest row.
    evidence.extend_rows({"item": str(i), "model": "bigrams", "error": float(e)} for i, e in enumerate(each))
    source = MetricSource("mean", "error", unit=("model",), within="max")
    evidence.metric("privacy.control_error", estimate, source)
    evidence.control = Control(
        "positive",
        error <= TOLERANCE,
        f"scores of a model that is known on paper equal the formula to {TOLERANCE:g}",
        f"the largest error is {error:.3g}, in {worst}",
    )
    return evidence
