"""Time and peak memory of FlashTrace and IFR on one CUDA device, on an 8B-shaped model with random bf16 weights.

    python benchmarks/gpu/faithfulness.py [--sizes 1000 2000 5000 16000] [--long] [--repeats 5] [--check] [--json FILE]

The model is Qwen3-8B's shape, its weights made on the device. ``--sizes N`` means a prompt of N and a generation of N
tokens. A call is everything from token ids to scores: forward pass, checks of every layer, hop 0 and one recursive hop
over the whole generation. Times are medians from CUDA events after warm-up; memory is what the allocator held at most,
weights included. ``--check`` first compares the fused kernels with the plain form on a small passage.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

from lm_audit.audits.faithfulness.methods.explain import Explainer
from lm_audit.audits.faithfulness.methods.ifr import heads, proximity
from lm_audit.audits.faithfulness.passage.tokens import Passage

REFERENCE = {1000: (1.03, 18.7), 2000: (2.31, 25.0), 5000: (9.19, 63.0)}
"""Seconds and GiB of the reference FlashTrace (attention recomputed, hops=1) on one H100 80 GB."""

GIB = 2**30


def random_model() -> Any:
    """Qwen3-8B's shape with random bf16 weights, made on the device."""
    from transformers import AutoModelForCausalLM, Qwen3Config

    config = Qwen3Config(
        vocab_size=151936,
        hidden_size=4096,
        intermediate_size=12288,
        num_hidden_layers=36,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=40960,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    with torch.device("cuda"):
        build: Callable[..., Any] = AutoModelForCausalLM.from_config
        return build(config, dtype=torch.bfloat16).eval().requires_grad_(False)


def random_passage(prompt: int, generation: int, vocabulary: int) -> Passage:
    """Random token ids in the place of text."""
    ids = torch.randint(10, vocabulary, (prompt + generation,), generator=torch.Generator().manual_seed(1)).tolist()
    texts = tuple(f"t{index}" for index in range(prompt + generation))
    offsets = tuple((index, index + 1) for index in range(max(prompt, generation)))
    return Passage(
        prompt_ids=tuple(ids[:prompt]),
        generation_ids=tuple(ids[prompt:]),
        user=tuple(range(prompt)),
        user_text="".join(texts[:prompt]),
        user_tokens=texts[:prompt],
        user_offsets=offsets[:prompt],
        generation_text="".join(texts[prompt:]),
        generation_tokens=texts[prompt:],
        generation_offsets=offsets[:generation],
        eos_id=None,
        ends_with_eos=False,
    )


def measured(call: Any, repeats: int) -> tuple[float, float]:
    """Median seconds and peak GiB of a call after one warm-up."""
    call()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(repeats):
        event: Callable[..., Any] = torch.cuda.Event
        start, stop = event(enable_timing=True), event(enable_timing=True)
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) / 1000)
    return statistics.median(times), torch.cuda.max_memory_allocated() / GIB


@torch.no_grad()
def forward(module: Any, passage: Passage) -> None:
    """One plain forward pass, logits at the last position only."""
    module(input_ids=torch.tensor([passage.ids], device="cuda"), use_cache=False, logits_to_keep=1)


def check_kernels(model: Any) -> dict[str, float]:
    """Largest difference between fused and plain scores on a small passage, next to the largest score."""
    passage = random_passage(300, 120, 151936)
    fused = {name: _vector(model, passage, name) for name in ("flashtrace", "ifr")}
    original = heads.gpu_kernels
    with ExitStack() as stack:
        for module in (heads, proximity):
            stack.enter_context(patch.object(module, "gpu_kernels", lambda tensor: None))
        plain = {name: _vector(model, passage, name) for name in fused}
    return {
        "kernels in use": float(original(torch.empty(1, 1, 128, device="cuda")) is not None),
        **{f"{name} difference": float(abs(fused[name] - plain[name]).max()) for name in fused},
        **{f"{name} largest": float(abs(plain[name]).max()) for name in fused},
    }


def _vector(model: Any, passage: Passage, method: str) -> Any:
    matrix = Explainer.of(model, passage).attribute(method).matrix
    return matrix[~(matrix != matrix)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 5000, 16000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--long", action="store_true", help="also 32,000 tokens with a generation of 8,000")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    module = random_model()
    model: Any = SimpleNamespace(module=module, tokenizer=None)
    weights = torch.cuda.memory_allocated() / GIB
    device = torch.cuda.get_device_name()
    print(f"{device}, torch {torch.__version__}, weights {weights:.1f} GiB", flush=True)
    report: dict[str, Any] = {"device": device, "weights_gib": weights, "rows": []}
    if arguments.check:
        report["check"] = check_kernels(model)
        print(report["check"], flush=True)
    plan = [("flashtrace hops=1", "flashtrace", size, size) for size in arguments.sizes]
    plan += [("flashtrace hops=1", "flashtrace", 1000, 200), ("ifr, every token", "ifr", 1000, 200)]
    plan += [("flashtrace hops=1", "flashtrace", 32000, 8000)] * arguments.long
    for label, method, prompt, generation in plan:
        passage = random_passage(prompt, generation, 151936)
        repeats = arguments.repeats if prompt < 10000 else min(arguments.repeats, 3)
        plain, _ = measured(lambda passage=passage: forward(module, passage), repeats)
        seconds, peak = measured(lambda p=passage, m=method: Explainer.of(model, p).attribute(m), repeats)
        reference = REFERENCE.get(prompt, (None, None)) if prompt == generation else (None, None)
        row = {"method": label, "prompt": prompt, "generation": generation, "seconds": seconds, "peak_gib": peak,
               "forward_seconds": plain, "reference_seconds": reference[0], "reference_gib": reference[1]}  # fmt: skip
        report["rows"].append(row)
        beside = f"  reference {reference[0]} s, {reference[1]} GiB" if reference[0] else ""
        print(
            f"{label:18s} {prompt:6d}+{generation:<6d} {seconds:7.3f} s {peak:6.1f} GiB  forward {plain:.3f} s{beside}",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
