"""The scoring engine beside lm-evaluation-harness and a plain loop: same process, same weights, same requests.

    python -m venv BENCH and install torch, this package and 'lm_eval[hf]==0.4.13' there
    OMP_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE python benchmarks/compare/scoring.py
    python benchmarks/compare/scoring.py --device cuda --model smollm2 --model 1B-shaped

Contenders take turns, so that a busy machine slows all alike; the best of the repetitions counts. Where lm_eval cannot
be imported, a re-implementation of its padded batching stands in for it and is named so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

from compare import arithmetic_floor, scoring_lists, scoring_models, scoring_peers

Scorer = Callable[[Any], list[float]]


@dataclass
class Timing:
    """Best wall and CPU seconds of the turns, and the largest difference from the engine's totals, in nats."""

    wall: float = float("inf")
    cpu: float = float("inf")
    turns: list[tuple[float, float]] = field(default_factory=list)
    difference: float = 0.0
    share: float = 1.0  # of the requests that were run; times are scaled to all

    def add(self, wall: float, cpu: float) -> None:
        self.turns.append((wall / self.share, cpu / self.share))
        self.wall, self.cpu = (min(times) for times in zip(*self.turns, strict=True))


def timed(scorer: Scorer, requests: Any) -> tuple[list[float], float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    totals = scorer(requests)
    return totals, time.perf_counter() - wall, time.process_time() - cpu


def contenders(module: Any, tokenizer: Any, engine: Scorer, prefix: int, sizes: list[int]) -> dict[str, Scorer]:
    """Engine, peer by batch size, peer's auto, and the loop."""
    chosen: dict[str, Scorer] = {"engine": engine}
    for size in sizes:
        peer = scoring_peers.lm_eval_scorer(module, tokenizer, size, prefix)
        name = "lm_eval" if peer else "padded batching (re-made)"
        chosen[f"{name} {size}"] = peer or scoring_peers.padded_scorer(module, tokenizer, size, prefix)
    auto = scoring_peers.lm_eval_scorer(module, tokenizer, "auto", prefix)
    if auto:
        chosen["lm_eval auto"] = auto
    chosen["loop"] = scoring_peers.loop_scorer(module, tokenizer, prefix)
    return chosen


def compare(
    requests: Any, scorers: dict[str, Scorer], repeats: int, *, loop_part: int, patience: float
) -> dict[str, Timing]:
    """Turns of every contender. Those beyond ``patience`` seconds have one turn only; the loop runs a part."""
    timings = {name: Timing() for name in scorers}
    expected: list[float] = []
    for turn in range(repeats):
        for name, scorer in scorers.items():
            timing = timings[name]
            if turn and timing.wall * timing.share > patience:
                continue
            part = requests[:: max(1, len(requests) // loop_part)] if name == "loop" else requests
            timing.share = len(part) / len(requests)
            totals, wall, cpu = timed(scorer, part)
            timing.add(wall, cpu)
            if name == "engine":
                expected = totals
            elif len(part) == len(requests):
                timing.difference = max(abs(a - b) for a, b in zip(totals, expected, strict=True))
    return timings


def report(title: str, timings: dict[str, Timing], floor: arithmetic_floor.Floor, requests: int, gpu: bool) -> str:
    engine, clock = timings["engine"], "wall" if gpu else "CPU"
    lines = [
        f"\n### {title}: {requests} requests, {floor.tokens} distinct tokens, {floor.rows} rows of logits, "
        f"{floor.gflop:.0f} GFLOP, floor {floor.seconds:.2f} {clock} s\n",
        f"| way | wall s | CPU s | tokens/s | wall / engine | CPU / engine | {clock} / floor | difference, nats |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, t in timings.items():
        lines.append(
            f"| {name} | {t.wall:.2f} | {t.cpu:.2f} | {floor.tokens / t.wall:.0f} | {t.wall / engine.wall:.2f} "
            f"| {t.cpu / engine.cpu:.2f} | {(t.wall if gpu else t.cpu) / floor.seconds:.2f} | {t.difference:.1e} |"
        )
    return "\n".join(lines)


def run_model(name: str, options: argparse.Namespace) -> dict[str, Any]:
    from lm_audit.models.language_model import LanguageModel

    dtype = getattr(torch, options.dtype)
    module, tokenizer, described = scoring_models.load(name, options.device, dtype)
    model = LanguageModel(module, tokenizer, name=described)
    prefix = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else 1

    def engine(requests: Any) -> list[float]:
        # An empty prefix is conditioned on the BOS, as the peer does; elsewhere none is added.
        asked = [(a or [prefix], b) for a, b in requests]
        return [score.total for score in model.loglikelihood(asked, bos="none")]

    begin = time.perf_counter()
    engine([("a", " b")])
    first = time.perf_counter() - begin
    rates = arithmetic_floor.measure_rates(module)
    way = model._engine._way
    print(f"\n## {described}, {options.dtype}, {options.device}, torch {torch.__version__}")
    print(f"{torch.get_num_threads()} threads, load average {os.getloadavg()[0]:.1f}")
    per = "CPU second" if options.device == "cpu" else "second"
    print(f"matrix products, GFLOP per {per}: {rates.body / 1e9:.0f} in the body, {rates.head / 1e9:.0f} in the head")
    print(f"self-check and first use {first:.2f} s; way: {way.value if way else None}")
    results: dict[str, Any] = {}
    for title, requests in lists(options).items():
        scorers = contenders(module, tokenizer, engine, prefix, options.batch_sizes)
        if options.only:
            scorers = {k: v for k, v in scorers.items() if any(k.startswith(o) for o in options.only)}
        asked = [(a or [prefix], b) for a, b in requests]
        timings = compare(requests, scorers, options.repeats, loop_part=options.loop_part, patience=options.patience)
        # The machine may have been busy at the first measurement: the best rate seen is the machine's.
        again = arithmetic_floor.measure_rates(module)
        rates = arithmetic_floor.Rates(max(rates.body, again.body), max(rates.head, again.head))
        floor = arithmetic_floor.floor(module, rates, *arithmetic_floor.count(model._engine._encoder, asked, "none"))
        print(
            report(title, timings, floor, len(requests), options.device != "cpu"),
            f"\nload average {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        results[title] = {"floor": asdict(floor), "timings": {k: asdict(t) for k, t in timings.items()}}
    return results


def lists(options: argparse.Namespace) -> dict[str, Any]:
    found = {
        "golden list": scoring_lists.golden_list(),
        "shared contexts": scoring_lists.shared_contexts(),
        "unrelated sentences": scoring_lists.unrelated_sentences(),
        "bias grid": scoring_lists.bias_grid(),
        "long prefix": scoring_lists.long_prefix(),
    }
    return {k: v for k, v in found.items() if v and (not options.lists or k.split()[0] in options.lists)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--model", action="append", help="smollm2, 135M-shaped or 1B-shaped; may be given again")
    parser.add_argument("--lists", nargs="*", help="first words of lists: golden shared unrelated bias long")
    parser.add_argument("--only", nargs="*", help="contenders by the beginning of their names")
    parser.add_argument("--batch-sizes", nargs="*", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--loop-part", type=int, default=240, help="requests that the loop runs; times are scaled")
    parser.add_argument("--patience", type=float, default=40.0, help="seconds beyond which a way has one turn")
    parser.add_argument("--json", type=Path, help="write all timings there")
    options = parser.parse_args()
    if options.batch_sizes is None:
        options.batch_sizes = [1, 8, 16, 32] if options.device == "cpu" else [1, 8, 32, 64, 128, 256]
    results = {name: run_model(name, options) for name in options.model or ["smollm2"]}
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
