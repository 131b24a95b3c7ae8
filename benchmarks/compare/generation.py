"""Our greedy ``generate`` beside transformers' own, on a CPU: tokens a CPU second for 32 refusal prompts, equal text.

    OMP_NUM_THREADS=1 python benchmarks/compare/generation.py [--model smollm2] [--new 64] [--repeats 3] [--json FILE]

The prompts are the refusal audit's (requests times groups) in the chat template. Contenders take turns in one process
and read the same token ids; ``transformers, batch N`` pads N prompts on the left, sorted by length, and cuts each text
at its EOS. The best turn of each counts. A token is one that stands in the
text; padding and what a batch computes behind a row's EOS is none. Only ratios of one run mean something.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "harness"))

Texts = list[tuple[int, ...]]


def refusal_prompts(model: Any, count: int) -> list[list[int]]:
    """Token ids of the first ``count`` prompts of the refusal audit."""
    from lm_audit.audits.bias.generated.refusal import load_refusal_set

    refusals = load_refusal_set(ROOT / "fixtures/bias/refusal_en.toml")
    pairs = [(request, group) for axis in refusals.axes for request in refusals.requests for group in axis.groups]
    texts = [request.replace("{group}", group) for request, group in pairs]
    return [
        list(model.tokenizer(model.render_chat(text), add_special_tokens=False).input_ids) for text in texts[:count]
    ]


def ours(model: Any, prompts: Sequence[list[int]], new: int) -> Texts:
    return [one.token_ids for one in model.generate(prompts, max_new_tokens=new)]


@torch.inference_mode()
def theirs(model: Any, prompts: Sequence[list[int]], new: int, batch: int) -> Texts:
    from lm_audit.models.generation.stopping import end_ids

    ends, found = end_ids(model), dict[int, tuple[int, ...]]()
    order = sorted(range(len(prompts)), key=lambda index: -len(prompts[index]))
    for start in range(0, len(order), batch):
        part = order[start : start + batch]
        width = len(prompts[part[0]])
        ids = torch.tensor([[0] * (width - len(prompts[i])) + prompts[i] for i in part])
        mask = torch.tensor([[0] * (width - len(prompts[i])) + [1] * len(prompts[i]) for i in part])
        out = model.module.generate(ids, attention_mask=mask, max_new_tokens=new, do_sample=False, pad_token_id=0)
        for index, row in zip(part, out[:, width:].tolist(), strict=True):
            end = next((place for place, token in enumerate(row) if token in ends), len(row))
            found[index] = tuple(row[:end])
    return [found[index] for index in range(len(prompts))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--new", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--batches", type=int, nargs="*", default=[8, 32], help="1: one prompt at a time")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from lm_audit.models import load_model

    model = load_model(options.model, device="cpu")
    prompts = refusal_prompts(model, options.prompts)
    _ = model.slots
    report = {}
    for new in options.new:
        report[new] = compare(model, prompts, new, options.batches, options.repeats)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


def compare(model: Any, prompts: list[list[int]], new: int, batches: list[int], repeats: int) -> dict[str, Any]:
    """CPU seconds of each contender, and how many texts are ours."""
    ways: dict[str, Callable[[], Texts]] = {"ours": partial(ours, model, prompts, new)}
    for batch in batches:
        ways[f"transformers, batch {batch}"] = partial(theirs, model, prompts, new, batch)
    best: dict[str, float] = {}
    made: dict[str, Texts] = {}
    for turn in range(repeats):
        for name, way in ways.items():
            if turn and name.endswith("batch 1"):
                continue
            begun = time.process_time()
            made[name] = way()
            best[name] = min(best.get(name, float("inf")), time.process_time() - begun)
    tokens = sum(map(len, made["ours"]))
    print(f"{len(prompts)} prompts, {sum(map(len, prompts))} tokens, at most {new} new: {tokens} written")
    for name, seconds in best.items():
        equal = sum(one == other for one, other in zip(made[name], made["ours"], strict=True))
        print(
            f"{name:26s} {seconds:7.2f} CPU s {tokens / seconds:7.1f} tokens/CPU s"
            f" {seconds / best['ours']:5.2f} x ours   {equal} of {len(prompts)} texts equal",
            flush=True,
        )
    return {"tokens": tokens, "cpu_s": best}


if __name__ == "__main__":
    main()
