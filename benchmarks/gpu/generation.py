"""Generation and scoring on one CUDA device, on an 8B-shaped model with random bf16 weights: figures as ratios.

    python benchmarks/gpu/generation.py [--check] [--only generate needle scoring] [--small] [--json FILE]

The model is Qwen3-8B's shape, its weights made on the device. Every figure is wall seconds of one call, the better of
two, after a warm-up call, beside transformers' own ``generate`` (one padded batch) in the same run, and the share of
the limit: the time of reading the weights, and the cached keys and values, once a step at the copy bandwidth measured
first, plus the prompts at the rate of transformers' own dense forward pass. Steps alone are the whole call without a
call for one token. ``--check`` first compares greedy texts with transformers' on small models of several architectures:
equal in float32, and in bf16 parted at near-ties alone, where the two logits are equal or neighbours in bf16 (mixtures
of experts part beyond that, where the router's logits are a near-tie). ``--small`` takes a small model in place of the
large one, to try the script.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

VOCABULARY = 151_936
SHAPE = {
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
SMALL = {**SHAPE, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "head_dim": 16}
CHECKED = (
    "llama",
    "qwen3",
    "mistral_swa",
    "gemma3_text",
    "gpt2",
    "gpt_neox",
    "deepseek_v3",
    "qwen3_moe",
    "llama4_text",
)


def random_model(small: bool, device: str) -> Any:
    """The random model as a LanguageModel; no token ends a text, so that every row is as long as asked."""
    from transformers import AutoModelForCausalLM, Qwen3Config

    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.text.byte_tokenizer import byte_tokenizer

    shape: dict[str, Any] = SMALL if small else SHAPE
    size = 4096 if small else VOCABULARY
    config = Qwen3Config(
        vocab_size=size, max_position_embeddings=40960, tie_word_embeddings=False, eos_token_id=None, **shape
    )
    torch.manual_seed(0)
    with torch.device(device):
        build: Callable[..., Any] = AutoModelForCausalLM.from_config
        module = build(config, dtype=torch.bfloat16).eval().requires_grad_(False)
    module.generation_config.eos_token_id = None
    tokenizer: Any = byte_tokenizer(40960)
    tokenizer.eos_token = None
    return LanguageModel(module, tokenizer, name="8B-shaped")


def ids(*shape: int, size: int, seed: int = 1) -> Any:
    return torch.randint(10, size, shape, generator=torch.Generator().manual_seed(seed)).tolist()


def seconds(call: Callable[[], Any], repeats: int = 1) -> float:
    """Wall seconds of a call, the best of some."""
    best = float("inf")
    for _ in range(repeats):
        synchronize()
        begun = time.perf_counter()
        call()
        synchronize()
        best = min(best, time.perf_counter() - begun)
    return best


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Limits:
    """What this device does at best: bytes a second, and tokens a second of a dense forward pass."""

    def __init__(self, model: Any):
        module, device = model.module, model.device
        table = torch.empty(2**28 if device.type == "cuda" else 2**20, dtype=torch.float32, device=device)
        other = torch.empty_like(table)
        self.bytes = 2 * table.nbytes / seconds(lambda: other.copy_(table), 5)
        row = torch.tensor([ids(4096 if device.type == "cuda" else 64, size=module.config.vocab_size)], device=device)
        with torch.inference_mode():
            whole = partial(module, input_ids=row, use_cache=False, logits_to_keep=1)
            whole()
            self.tokens = row.numel() / seconds(whole, 3)
        embedding = module.get_input_embeddings().weight.nbytes
        self.weights = sum(one.nbytes for one in module.parameters()) - embedding
        self.token = model.slots.model.shape.token_bytes

    def generation(self, rows: int, prompt: int, new: int, read: int | None = None) -> float:
        """Seconds of reading the prompts and of each step's weights, keys and values."""
        cached = rows * self.token * (new * prompt + new * new / 2)
        read = rows * prompt if read is None else read
        return float(read / self.tokens + (new * self.weights + cached) / self.bytes)


@torch.inference_mode()
def theirs(module: Any, prompts: Any, new: int) -> Any:
    rows = torch.tensor(prompts, device=module.device)
    return module.generate(
        rows,
        attention_mask=torch.ones_like(rows),
        max_new_tokens=new,
        min_new_tokens=new,
        do_sample=False,
        pad_token_id=0,
    )


def generation(model: Any, limits: Limits, plan: list[tuple[int, int, int]]) -> list[dict[str, Any]]:
    """``generate`` of so many prompts, tokens and new tokens."""
    made = []
    for rows, prompt, new in plan:
        prompts = ids(rows, prompt, size=model.module.config.vocab_size)
        model.generate(prompts, max_new_tokens=4)
        first = seconds(partial(model.generate, prompts, max_new_tokens=new))
        ours = seconds(partial(model.generate, prompts, max_new_tokens=new), 2)
        reading = seconds(partial(model.generate, prompts, max_new_tokens=1), 2)
        stops = seconds(partial(model.generate, prompts, max_new_tokens=new, stop=["\n\n\n\n", "no such text"]))
        drawn = seconds(partial(model.generate, prompts, max_new_tokens=new, temperature=1.0))
        beside = seconds(partial(theirs, model.module, prompts, new))
        limit = limits.generation(rows, prompt, new)
        made.append(
            line(f"generate, {rows} x {prompt} + {new}", ours, beside, limit, rows * new)
            | {"with_stop_strings_s": stops, "sampled_s": drawn, "first_s": first, "reading_s": reading}
        )
        rate = rows * (new - 1) / (ours - reading)
        print(
            f"    reading {reading:.2f} s, steps alone {rate:.0f} tok/s, first call of this shape {first:.2f} s, "
            f"with stop strings {stops:.2f} s, sampled {drawn:.2f} s",
            flush=True,
        )
    return made


def needle(model: Any, limits: Limits, prompt: int, new: int) -> list[dict[str, Any]]:
    """``complete`` of four long prompts of their own, and of four that share three quarters."""
    from lm_audit.models.generation.shared_prefix import complete

    size = model.module.config.vocab_size
    own = ids(4, prompt, size=size)
    shared = [own[0][: prompt * 3 // 4] + row[prompt * 3 // 4 :] for row in own]
    targets = ids(4, 8, size=size, seed=2)
    made = []
    for label, prompts, read in (("own", own, 4 * prompt), ("shared", shared, prompt * 7 // 4)):
        complete(model, [row[:300] for row in prompts], targets, max_new_tokens=4)
        ours = seconds(partial(complete, model, prompts, targets, max_new_tokens=new), 2)
        beside = sum(seconds(partial(theirs, model.module, [row], new)) for row in prompts[:2]) * 2
        limit = limits.generation(4, prompt, new, read)
        made.append(line(f"complete, 4 x {prompt} + {new}, {label}", ours, beside, limit, 4 * new))
    return made


def scoring(model: Any, limits: Limits, part: int) -> list[dict[str, Any]]:
    """Few-shot questions, short requests, unrelated texts: ratio to the dense forward pass over distinct tokens."""
    size = model.module.config.vocab_size
    few, short = [], []
    for subject in range(max(1, 20 // part)):
        trunk = ids(1500, size=size, seed=subject)
        questions = ids(50, 100, size=size, seed=100 + subject)
        few += [([*trunk, *question], [answer]) for question in questions for answer in (20, 21, 22, 23)]
    for context, row in enumerate(ids(1000 // part, 24, size=size, seed=7)):
        short += [(row, tail) for tail in ids(20, 3, size=size, seed=1000 + context)]
    texts: list[tuple[list[int], list[int]]] = [([], row) for row in ids(1000 // part, 373, size=size, seed=9)]
    made = []
    for label, requests in (("few-shot questions", few), ("short requests", short), ("unrelated texts", texts)):
        first = seconds(partial(model.loglikelihood, requests, bos="none"))
        ours = seconds(partial(model.loglikelihood, requests, bos="none"), 2)
        tokens = distinct_tokens(requests)
        print(f"{label}: {len(requests)} requests, {tokens} distinct tokens, first call {first:.2f} s")
        made.append(line(label, ours, None, tokens / limits.tokens, tokens))
    return made


def proof(model: Any) -> dict[str, float]:
    """Seconds of the first answers of a model whose trials are run, and of the same whose proof is in the cache."""
    import os
    import tempfile

    from lm_audit.models.language_model import LanguageModel

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LM_AUDIT_CACHE"] = folder
        for label in ("trials run", "proof in the cache"):
            fresh = LanguageModel(model.module, model.tokenizer, name="8B-shaped", fingerprint="8B-shaped, seed 0")
            score = seconds(partial(fresh.loglikelihood, [([5, 6], [7])], bos="none"))
            write = seconds(partial(fresh.generate, [[5, 6, 7]], max_new_tokens=2))
            found[label] = score + write
            print(f"first answers, {label}: {score:.2f} s of scoring, {write:.2f} s of generation", flush=True)
    return found


def distinct_tokens(requests: Any) -> int:
    from lm_audit.models.generation.prefix_plan import common

    rows = sorted({(*prefix, *target[:-1]) for prefix, target in requests})
    return sum(len(row) - (common(rows[place - 1], row) if place else 0) for place, row in enumerate(rows))


def line(label: str, ours: float, beside: float | None, limit: float, tokens: int) -> dict[str, Any]:
    more = f"  transformers {beside:7.2f} s ({beside / ours:.2f} x)" if beside is not None else ""
    rate, share = tokens / ours, ours / limit
    print(f"{label:34s} {ours:7.2f} s {rate:9.0f} tok/s  {share:5.2f} x its limit of {limit:.2f} s{more}", flush=True)
    return {"label": label, "seconds": ours, "beside": beside, "limit": limit, "tokens": tokens}


def check(device: str) -> dict[str, str]:
    """Greedy texts of small models in float32 and bf16 on the device, beside transformers' own."""
    import copy

    from lm_audit.models.language_model import LanguageModel
    from lm_audit.models.text.byte_tokenizer import byte_tokenizer
    from tests.models.architectures import architecture
    from tests.models.generation.near_ties import partings

    found = {}
    prompts = [ids(length, size=250, seed=length) for length in (12, 5, 12, 20, 1, 40)]
    for name in CHECKED:
        for dtype in (torch.float32, torch.bfloat16):
            module = copy.deepcopy(architecture(name)).to(device=device, dtype=dtype)
            model = LanguageModel(module, byte_tokenizer(128), name=name)
            parted = partings(model, prompts, new=24, end=2)
            fine = not parted or (dtype != torch.float32 and all(one.near_tie for one in parted))
            verdict = f"{'slots' if model.slots else 'plain loop'}: {len(parted)} of {len(prompts)} texts part"
            for one in parted:
                verdict += f"; at {one.place} {one.ours:.1f} steps apart by ours, {one.theirs:.1f} by theirs, "
                verdict += f"{one.exact:.1f} in float32, off by {one.off:.2f} and {one.their_off:.2f}"
            found[f"{name} {dtype}"] = verdict if fine else f"NO NEAR-TIE {verdict}"
            print(f"{name:14s} {dtype!s:15s} {found[f'{name} {dtype}']}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", nargs="*", default=["generate", "needle", "scoring", "proof"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("lm_audit").setLevel(logging.INFO)
    report: dict[str, Any] = {"torch": torch.__version__}
    if options.check:
        report["check"] = check(options.device)
    model = random_model(options.small, options.device)
    report["slots_found_s"] = seconds(lambda: model.slots)
    limits = Limits(model)
    name = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    print(
        f"{name}, torch {torch.__version__}: {limits.bytes / 1e12:.2f} TB/s, {limits.tokens:.0f} tokens/s forward, "
        f"weights {limits.weights / 2**30:.1f} GiB, trial of the slots {report['slots_found_s']:.2f} s",
        flush=True,
    )
    rows: list[dict[str, Any]] = []
    if "generate" in options.only:
        rows += generation(model, limits, [(4, 20, 8)] if options.small else [(64, 200, 128), (256, 200, 64)])
    if "needle" in options.only:
        rows += needle(model, limits, *((200, 8) if options.small else (16_000, 64)))
    if "scoring" in options.only:
        rows += scoring(model, limits, 20 if options.small else 1)
    if "proof" in options.only:
        report["proof"] = proof(model)
    report["rows"] = rows
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
