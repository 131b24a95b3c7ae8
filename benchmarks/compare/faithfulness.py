"""CPU seconds of every attribution method on SmolLM2-135M beside the reference packages.

    OMP_NUM_THREADS=1 python benchmarks/compare/faithfulness.py [--sizes 103 303] [--methods NAME ...] [--json FILE]

One thread, process time (robust against other load), the median of the repeats. The reference times are those measured
with flashtrace 13865e9 on an AMD EPYC with one thread (specification, section 8): the package is on no index, so it is
not run here; captum's input x gradient and integrated gradients run beside ours where captum is installed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

from lm_audit.audits.faithfulness import DeletionTest, Explainer
from lm_audit.models import load_model

SHAPES = {103: (79, 24), 303: (243, 60)}
"""Prompt and generation tokens by the length of the whole."""

REFERENCE: dict[str, dict[int, float]] = {
    "forward": {103: 1.0, 303: 2.2},
    "ifr": {103: 4.6, 303: 10.6},
    "ifr_span": {103: 1.2, 303: 2.7},
    "ft_ifr, 3 hops": {103: 2.0, 303: 4.0},
    "flashtrace, 1 hop": {103: 1.4, 303: 2.9},
    "attnlrp, span": {103: 3.1, 303: 6.4},
    "ft_attnlrp, 3 hops": {103: 10.7, 303: 25.0},
    "attnlrp, every token": {103: 43.7, 303: 267.0},
    "attention_reference": {103: 20.3, 303: 123.0},
    "ablation, sentences": {103: 22.9, 303: 294.0},
    "deletion curve, 20 steps": {103: 17.0, 303: 42.6},
    "integrated gradients, span of 4": {103: 31.0, 303: 92.0},
}
"""CPU seconds of the reference; the integrated gradients' are section 8's floor of 20 (F+B), since the reference
makes a pass for each row and point (837 and 5,780 s for all rows)."""

WORDS = "The old baker near the bridge sold seven loaves to Anna. She gave two of them to a child who waited there. "
ANSWER = "Anna had five loaves left. The child ate one. Then they went home by the river. "


def passage_ids(tokenizer: Any, text: str, count: int) -> list[int]:
    """The first ``count`` tokens of a text repeated."""
    return list(tokenizer(text * 40, add_special_tokens=False).input_ids)[:count]


def calls(model: Any, length: int) -> dict[str, Callable[[], Any]]:
    """What is timed: each call starts from token ids and makes its own forward pass."""
    prompt, generation = SHAPES[length]
    ids = (passage_ids(model.tokenizer, WORDS, prompt), passage_ids(model.tokenizer, ANSWER, generation - 1))

    def explain(method: str, **options: Any) -> Callable[[], Any]:
        return lambda: Explainer(model, *ids).attribute(method, **options)

    def forward() -> Any:
        with torch.no_grad():
            return model.module(input_ids=torch.tensor([[*ids[0], *ids[1], 2]]), use_cache=False)

    def deletion() -> Any:
        explainer = Explainer(model, *ids)
        return DeletionTest(model, explainer.passage).curve(np.random.default_rng(0).random(prompt))

    sink = (generation - 6, generation - 3)
    thinking = (0, generation - 7)
    return {
        "forward": forward,
        "ifr": explain("ifr"),
        "ifr_span": explain("ifr_span", sink=sink),
        "ft_ifr, 3 hops": explain("ft_ifr", sink=sink, thinking=thinking, hops=3),
        "flashtrace, 1 hop": explain("flashtrace", sink=sink, thinking=thinking),
        "attnlrp, span": explain("attnlrp", sink=sink),
        "ft_attnlrp, 3 hops": explain("ft_attnlrp", sink=sink, thinking=thinking, hops=3),
        "attnlrp, every token": explain("attnlrp"),
        "attention_reference": explain("attention_reference"),
        "ablation, sentences": explain("ablation"),
        "deletion curve, 20 steps": deletion,
        "integrated gradients, span of 4": explain("integrated_gradients", sink=sink),
    }


def cpu_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median process time; slow calls are made once."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
        if times[0] > 20:
            break
    return statistics.median(times)


def captum_seconds(model: Any, length: int) -> float | None:
    """Captum's input x gradient of one token, ``None`` where captum is not installed."""
    try:
        from captum.attr import InputXGradient
    except ImportError:
        return None
    prompt, generation = SHAPES[length]
    ids = [*passage_ids(model.tokenizer, WORDS, prompt), *passage_ids(model.tokenizer, ANSWER, generation - 1)]
    embeddings = model.module.get_input_embeddings()(torch.tensor([ids])).detach()
    method = InputXGradient(lambda inputs: model.module(inputs_embeds=inputs).logits[:, -1])
    return cpu_seconds(lambda: method.attribute(embeddings.requires_grad_(), target=5), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=sorted(SHAPES), choices=sorted(SHAPES))
    parser.add_argument("--methods", nargs="+", help="rows to time, by the start of their name")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = load_model("smollm2", device="cpu", dtype="float32")
    model.loglikelihood([("warm", " up")])
    report = []
    for length in arguments.sizes:
        beside = captum_seconds(model, length)
        if beside is not None:
            print(f"T={length} captum input x gradient of one token: {beside:.1f} CPU s", flush=True)
        base = 0.0
        for name, call in calls(model, length).items():
            if arguments.methods and not name.startswith(tuple(arguments.methods)):
                continue
            seconds, reference = cpu_seconds(call, arguments.repeats), REFERENCE[name][length]
            report.append({"method": name, "tokens": length, "seconds": seconds, "reference": reference})
            line = f"T={length} {name:32s} {seconds:7.2f} s  reference {reference:7.1f} s"
            if name == "forward":
                base = seconds
            elif base:
                # The reference was timed on another machine, so both are told in forward passes as well.
                own, other = seconds / base, reference / REFERENCE["forward"][length]
                line += f"  in forward passes {own:6.1f}  reference {other:6.1f}  ratio {other / own:5.1f}"
            print(line, flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
