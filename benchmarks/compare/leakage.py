"""The half-option probe beside the published script's logic: CPU a question, same predictions, distance to the floor.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/compare/leakage.py
    python benchmarks/compare/leakage.py --benchmark questions.csv --questions 20

The script's logic (one ``generate`` of one token for every prefix, repetition penalty 1.05) is written anew from its
description. Both read the same questions with the same weights, in turns; CPU seconds are the best of the turns. The
floor is the time that the distinct tokens' matrix products take at this machine's own rate.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

from compare import arithmetic_floor

from lm_audit.audits.leakage import Item, half_option_prefixes, load_benchmark, probe, shuffled_orders
from lm_audit.audits.leakage.half_option.cuts import cut_items
from lm_audit.audits.leakage.items.item import shuffle_options
from lm_audit.models import LanguageModel, load_model

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "leakage"


@torch.inference_mode()
def published_logic(model: LanguageModel, items: Sequence[Item]) -> list[int]:
    """The predicted token of every prefix, one after the other."""
    found = []
    module: Any = model.module  # generate is no part of the protocol
    generate: Callable[..., torch.Tensor] = module.generate
    for item in items:
        for prefix, _ in half_option_prefixes(item.question, item.options):
            ids = torch.tensor([model.tokenizer(prefix).input_ids], device=model.device)
            out = generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=1,
                do_sample=False,
                repetition_penalty=1.05,
                pad_token_id=0,
            )
            found.append(int(out[0, -1]))
    return found


def audit(model: LanguageModel, items: Sequence[Item]) -> list[int]:
    """The same by the audit."""
    predicted: list[int] = probe(model, items, rule="as_published", suffixes=False)["predicted_id"].tolist()
    return predicted


def audit_with_suffixes(model: LanguageModel, items: Sequence[Item]) -> list[int]:
    """The same, with the log-probability of every suffix in the same pass."""
    predicted: list[int] = probe(model, items, rule="as_published")["predicted_id"].tolist()
    return predicted


def cpu_seconds(run: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    result = run()
    return result, time.process_time() - begin


def best(model: LanguageModel, items: Sequence[Item], turns: int) -> dict[str, Any]:
    """Best CPU seconds of each contender, and whether they predict the same."""
    contenders = {"published logic": published_logic, "audit": audit, "with suffixes": audit_with_suffixes}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    answers = {}
    for _ in range(turns):
        for name, run in contenders.items():
            answers[name], seconds = cpu_seconds(lambda run=run: run(model, items))  # type: ignore[misc]
            times[name].append(seconds)
    same = sum(len(set(tokens)) == 1 for tokens in zip(*answers.values(), strict=True))
    return {"seconds": {k: min(v) for k, v in times.items()}, "same": same, "probes": len(answers["audit"])}


def tokens_and_rows(model: LanguageModel, items: Sequence[Item]) -> tuple[int, int]:
    """Distinct tokens to read for all prefixes, and logits to compute."""
    from lm_audit.models.scoring.requests import RequestEncoder

    probes = cut_items(items, model.text_splitter, model.tokenizer, "source", "")
    requests: list[Any] = [(p.context, [0]) for p in probes]
    return arithmetic_floor.count(RequestEncoder(model.tokenizer), requests, "default")


def report(model: LanguageModel, name: str, items: Sequence[Item], turns: int, rates: Any) -> None:
    result = best(model, items, turns)
    old, new, more = (seconds / len(items) for seconds in result["seconds"].values())
    tokens, rows = tokens_and_rows(model, items)
    floor = arithmetic_floor.floor(model.module, rates, tokens, rows).seconds / len(items)
    print(
        f"{name:14} {len(items):3} questions  CPU s a question: published logic {old:.3f}, audit {new:.3f} "
        f"({old / new:.1f} times less, {new / floor:.2f} of the floor {floor:.3f}), with suffixes {more:.3f} "
        f"({old / more:.1f})  same {result['same']}/{result['probes']}  {tokens} distinct tokens",
        flush=True,
    )


def report_orders(model: LanguageModel, name: str, items: Sequence[Item], orders: int) -> None:
    """CPU of several orders of every question in one call against as many calls."""
    variants = [[item, *(shuffle_options(item, o) for o in shuffled_orders(item, orders, seed=0))] for item in items]
    flat = [v for some in variants for v in some]
    _, together = cpu_seconds(lambda: probe(model, flat))
    apart = sum(cpu_seconds(lambda v=v: probe(model, [v]))[1] for v in flat)  # type: ignore[misc]
    ratio = f"({apart / together:.1f} x)"
    print(f"{name:24} {orders} more orders: {together:.1f} CPU s in one call, {apart:.1f} one by one {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--benchmark", action="append")
    parser.add_argument("--questions", type=int, default=12)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--orders", type=int, default=3)
    options = parser.parse_args()
    model = load_model(options.model, device="cpu")
    probe(model, load_benchmark(FIXTURES / "general_en", limit=1).items)  # the engine's self-check
    rates = arithmetic_floor.measure_rates(model.module)
    print(f"{torch.get_num_threads()} thread(s), {model.name}, body {rates.body / 1e9:.0f} Gflop/s")
    for source in options.benchmark or [str(FIXTURES / "general_en"), str(FIXTURES / "general_zh")]:
        benchmark = load_benchmark(source, limit=options.questions)
        report(model, benchmark.name, benchmark.items, options.turns, rates)
        if options.orders:
            report_orders(model, benchmark.name, benchmark.items[:4], options.orders)


if __name__ == "__main__":
    main()
