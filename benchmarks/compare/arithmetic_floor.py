"""How long the arithmetic of a request list takes at the machine's own matrix-product rate.

On a CPU both are counted in CPU seconds, which other work on the machine disturbs less than wall seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Floor:
    """Distinct tokens to read, rows of logits to compute, their operations, and the seconds these take at best."""

    tokens: int
    rows: int
    gflop: float
    seconds: float


@dataclass(frozen=True)
class Rates:
    """Operations of the model's own matrix products per second (per CPU second on a CPU)."""

    body: float
    head: float


def count(encoder: Any, requests: Any, bos: Any) -> tuple[int, int]:
    """Distinct (prefix, token) nodes that must be read, and how many of them predict a scored token."""
    from lm_audit.models.scoring.packs.tree import sorted_rows

    encoded = encoder.encode(requests, bos)
    rows = sorted_rows(encoded)
    nodes = sum(n - shared for n, shared in zip(rows.lengths, rows.lcp, strict=True))
    predicting = {tuple(e.ids[:end]) for e in encoded for end in range(e.first_scored, len(e.ids))}
    return nodes, len(predicting)


def floor(module: Any, rates: Rates, tokens: int, rows: int) -> Floor:
    """The floor of a list on a machine of these rates."""
    body, head = 2.0 * _body_weights(module) * tokens, 2.0 * module.get_output_embeddings().weight.numel() * rows
    return Floor(tokens, rows, (body + head) / 1e9, body / rates.body + head / rates.head)


def measure_rates(module: Any) -> Rates:
    """The best rate of one layer's products over several batch sizes and of the head's, in operations per second."""
    linears = [m for m in module.base_model.modules() if isinstance(m, torch.nn.Linear)]
    layers = linears[: max(1, len(linears) // module.config.num_hidden_layers)]
    sizes = (256, 512, 1024) if module.device.type == "cpu" else (4096, 16384)
    head = [module.get_output_embeddings()]
    return Rates(max(_rate(layers, n) for n in sizes), max(_rate(head, n) for n in (64, 128, 256, 1024)))


def _body_weights(module: Any) -> int:
    return sum(m.weight.numel() for m in module.base_model.modules() if isinstance(m, torch.nn.Linear))


@torch.inference_mode()
def _rate(layers: list[Any], n: int) -> float:
    inputs = [torch.randn(n, m.in_features, device=m.weight.device, dtype=m.weight.dtype) for m in layers]
    operations: float = sum(2.0 * n * m.weight.numel() for m in layers)
    best, clock = float("inf"), time.perf_counter if layers[0].weight.is_cuda else time.process_time
    for _ in range(8):
        _wait(layers[0])
        begin = clock()
        for _ in range(5):
            for layer, x in zip(layers, inputs, strict=True):
                layer(x)
        _wait(layers[0])
        best = min(best, (clock() - begin) / 5)
    return operations / best


def _wait(layer: Any) -> None:
    if layer.weight.is_cuda:
        torch.cuda.synchronize()
