"""All metrics of 50 canaries and 200 twins from one engine pass, beside one text and one metric at a time.

    python benchmarks/compare/privacy.py [--model smollm2] [--members 50] [--controls 200] [--texts N]

The slow side computes each metric by a function of its own with a forward pass of its own, as the source design does:
mean log-probability, last-token rank, perplexity, top-5, top-10 and top-50 hits, membership signal (its seven), then
Min-K%, Min-K%++, zlib, lower case and entropy (what the audit reports beside them). Both sides give the same numbers,
which is checked. ``--texts`` times the slow side on the first N texts and scales; the ratio is of time a text.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

from lm_audit.audits.privacy import plant_canaries, score_texts
from lm_audit.models import LanguageModel, load_model

Function = Callable[[LanguageModel, str], float]


def log_softmax(model: LanguageModel, text: str) -> tuple[torch.Tensor, torch.Tensor]:
    """One forward pass: log-probabilities [tokens - 1, vocabulary] and the ids that they predict."""
    ids = torch.tensor([model.tokenizer(text).input_ids], device=model.device)
    with torch.inference_mode():
        logits = model.module(input_ids=ids).logits[0, :-1]
    return torch.log_softmax(logits.double(), -1), ids[0, 1:]


def token_logprobs(model: LanguageModel, text: str) -> np.ndarray:
    table, ids = log_softmax(model, text)
    return table[torch.arange(len(ids)), ids].cpu().numpy()


def ranks(model: LanguageModel, text: str) -> np.ndarray:
    table, ids = log_softmax(model, text)
    own = table[torch.arange(len(ids)), ids]
    return (table > own[:, None]).sum(1).cpu().numpy()


def mean_logprob(model: LanguageModel, text: str) -> float:
    return float(token_logprobs(model, text).mean())


def perplexity(model: LanguageModel, text: str) -> float:
    return math.exp(-token_logprobs(model, text).mean())


def last_rank(model: LanguageModel, text: str) -> float:
    return float(ranks(model, text)[-1])


def top_hit(k: int) -> Function:
    return lambda model, text: float((ranks(model, text) < k).mean())


def min_k(model: LanguageModel, text: str) -> float:
    values = np.sort(token_logprobs(model, text))
    return float(values[: math.ceil(0.2 * len(values))].mean())


def min_k_plus(model: LanguageModel, text: str) -> float:
    table, ids = log_softmax(model, text)
    p = table.exp()
    mean = (p * table).sum(1)
    spread = ((p * table**2).sum(1) - mean**2).sqrt()
    z = ((table[torch.arange(len(ids)), ids] - mean) / spread).sort().values
    return float(z[: math.ceil(0.2 * len(z))].mean())


def zlib_ratio(model: LanguageModel, text: str) -> float:
    return -float(token_logprobs(model, text).mean()) / len(zlib.compress(text.encode()))


def lower_ratio(model: LanguageModel, text: str) -> float:
    return float(token_logprobs(model, text).mean() / token_logprobs(model, text.lower()).mean())


def entropy(model: LanguageModel, text: str) -> float:
    table, _ = log_softmax(model, text)
    return float(-(table.exp() * table).sum(1).mean())


SOURCE: dict[str, tuple[str, Function]] = {
    "membership signal": ("mean_logprob", mean_logprob),
    "Avg_LogProb": ("mean_logprob", mean_logprob),
    "Avg_Rank": ("last_token_rank0", last_rank),
    "Canary_PPL": ("ppl", perplexity),
    "Top5": ("top5", top_hit(5)),
    "Top10": ("top10", top_hit(10)),
    "Top50": ("top50", top_hit(50)),
}
BESIDE: dict[str, tuple[str, Function]] = {
    "Min-K%": ("min_k20_ceil", min_k),
    "Min-K%++": ("min_kpp20_ceil", min_k_plus),
    "zlib": ("zlib_ratio_mean_nll", zlib_ratio),
    "lower case": ("lowercase_log_ratio", lower_ratio),
    "entropy": ("mean_entropy_scored", entropy),
}


def main() -> int:
    """Time both sides in one process and print seconds, ratio and the largest difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--controls", type=int, default=200)
    parser.add_argument("--texts", type=int, default=None, help="texts of the slow side (default: all)")
    args = parser.parse_args()
    model = load_model(args.model, device=args.device, dtype="float32")
    canaries = plant_canaries([1] * args.members, controls=args.controls, seed=0)
    texts = [canary.text for canary in canaries]
    spans = [canary.secret_span for canary in canaries]
    score_texts(model, texts[:4])  # self-check and first allocations
    started = time.perf_counter()
    table = score_texts(model, texts, spans=spans)
    fast = (time.perf_counter() - started) / len(texts)
    print(f"one pass: {fast * len(texts):.2f} s for {len(texts)} texts, all columns, spans and lower case included")
    sample = texts[: args.texts]
    source, worst = timed(model, SOURCE, sample, table)
    beside, worst_beside = timed(model, BESIDE, sample, table)
    scale = len(texts)
    print(f"source's seven functions: {source * scale:.1f} s ({len(sample)} texts timed)")
    print(f"with the five beside them: {(source + beside) * scale:.1f} s")
    print(f"ratio: {source / fast:.1f} times for the seven, {(source + beside) / fast:.1f} times for all twelve")
    print(f"largest relative difference of the numbers: {max(worst, worst_beside):.1e}")
    return 0


def timed(
    model: LanguageModel, functions: dict[str, tuple[str, Function]], texts: list[str], table: Any
) -> tuple[float, float]:
    """(seconds a text, largest relative difference to the table)."""
    worst = 0.0
    started = time.perf_counter()
    found = {name: [function(model, text) for text in texts] for name, (_, function) in functions.items()}
    seconds = (time.perf_counter() - started) / len(texts)
    for name, (column, _) in functions.items():
        expected = table[column].to_numpy()[: len(texts)]
        gaps = np.abs(np.array(found[name]) - expected) / np.maximum(1, np.abs(expected))
        worst = max(worst, float(gaps.max()))
    return seconds, worst


if __name__ == "__main__":
    raise SystemExit(main())
