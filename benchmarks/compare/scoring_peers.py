"""Other ways of scoring the same requests: lm-evaluation-harness, its batching re-made, and a plain loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch

Requests = Sequence[tuple[str, str]]
Scorer = Callable[[Requests], list[float]]


def lm_eval_scorer(module: Any, tokenizer: Any, batch_size: int | str, prefix_token: int) -> Scorer | None:
    """lm-evaluation-harness's HF backend around the same module; None where it is not installed."""
    try:
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM
    except ImportError:
        return None
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    lm = HFLM(pretrained=module, tokenizer=tokenizer, batch_size=batch_size, max_length=1024, backend="causal")
    lm.custom_prefix_token_id = prefix_token

    def score(requests: Requests) -> list[float]:
        if batch_size == "auto":
            lm.batch_sizes = {}  # each call detects anew, as each evaluation does
        instances = [
            Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i) for i, pair in enumerate(requests)
        ]
        return [total for total, _ in lm.loglikelihood(instances, disable_tqdm=True)]

    return score


def padded_scorer(module: Any, tokenizer: Any, batch_size: int, prefix_token: int) -> Scorer:
    """The same method re-made: longest first, padded on the right, log-softmax over every position.

    Requests that differ only in a last token share one row, as there.
    """

    @torch.inference_mode()
    def score(requests: Requests) -> list[float]:
        encoded = [_encoded(tokenizer, prefix, target, prefix_token) for prefix, target in requests]
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, (ids, _) in enumerate(encoded):
            groups.setdefault(tuple(ids[:-1]), []).append(i)
        order = sorted(groups, key=lambda ids: (-len(ids), ids))
        totals = [0.0] * len(requests)
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            batch = torch.zeros(len(rows), len(rows[0]), dtype=torch.long)
            for row, read in zip(batch, rows, strict=True):
                row[: len(read)] = torch.tensor(read)
            logprobs = torch.log_softmax(module(batch.to(module.device)).logits.float(), -1)
            for row, read in zip(logprobs, rows, strict=True):
                for i in groups[read]:
                    targets = torch.tensor(encoded[i][0][-encoded[i][1] :], device=row.device)
                    places = row[len(read) - len(targets) : len(read)]
                    totals[i] = float(places.gather(1, targets[:, None]).sum())
        return totals

    return score


def loop_scorer(module: Any, tokenizer: Any, prefix_token: int) -> Scorer:
    """One forward pass for each request, as a first script does it."""

    @torch.inference_mode()
    def score(requests: Requests) -> list[float]:
        totals = []
        for prefix, target in requests:
            ids, n = _encoded(tokenizer, prefix, target, prefix_token)
            logits = module(torch.tensor([ids[:-1]], device=module.device)).logits[0, -n:]
            logprobs = torch.log_softmax(logits.float(), -1)
            totals.append(float(logprobs.gather(1, torch.tensor(ids[-n:], device=logits.device)[:, None]).sum()))
        return totals

    return score


def _encoded(tokenizer: Any, prefix: str, target: str, prefix_token: int) -> tuple[list[int], int]:
    """Token ids and the number of target tokens, split as lm-evaluation-harness splits (by the prefix's own length)."""
    if not prefix:
        ids = tokenizer(target, add_special_tokens=False)["input_ids"]
        return [prefix_token, *ids], len(ids)
    kept = prefix.rstrip()
    whole = tokenizer(kept + prefix[len(kept) :] + target, add_special_tokens=False)["input_ids"]
    start = len(tokenizer(kept, add_special_tokens=False)["input_ids"])
    return whole, max(1, len(whole) - start)
