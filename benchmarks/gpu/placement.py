"""One model spread over several GPUs against the same on one: fingerprint, scores, texts, and the ways that are taken.

    python benchmarks/gpu/placement.py [--layers 16]

Makes a Llama with random weights, of so many layers, on one GPU and spread over all (``auto``, ``balanced``, and
half of its layers on each of the first two, or on the CPU where there is one GPU), and prints JSON: the largest
difference of a log-probability in nats, whether fingerprints and greedy texts are equal, how many parts lie where, and
by which way each is scored and decoded. The exit code is 1 where fingerprint, texts or scores differ (by more than 1e-3
nats in float32).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

TEXTS = [("The quick brown fox", f" jumps over {n} lazy dogs" * (1 + n % 5)) for n in range(40)]
PROMPTS = ["Once", "The end of the long story is", "x", "In 1850 the mill by the river"] * 3


def measured(model: Any) -> dict[str, Any]:
    """Scores, texts, and how they were come by."""
    scores = [found.logprobs for found in model.loglikelihood(TEXTS)]
    texts = [one.text for one in model.generate(PROMPTS, max_new_tokens=24)]
    return {
        "scores": scores,
        "texts": texts,
        "ways": [model._engine._checked_way().name, model.stepping.name, "slots" if model.slots else "plain loop"],
    }


def main() -> int:
    """Compare and print."""
    import torch

    from lm_audit.models import load_model
    from tests.models.small_models import save_small_llama

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=16)
    layers = parser.parse_args().layers
    told: dict[str, Any] = {"gpus": torch.cuda.device_count(), "layers": layers}
    wrong = False
    with tempfile.TemporaryDirectory() as scratch:
        shape: dict[str, Any] = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4}
        folder = save_small_llama(Path(scratch) / "model", context=2048, num_hidden_layers=layers, **shape)
        plain = load_model(folder, device="cuda", dtype="float32")
        truth = measured(plain)
        told["one GPU"] = {"ways": truth["ways"]}
        second: int | str = 1 if torch.cuda.device_count() > 1 else "cpu"
        halves: dict[str, int | str] = {f"model.layers.{n}": 0 if n < layers // 2 else second for n in range(layers)}
        halves |= {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.norm": second, "lm_head": second}
        for name, device_map in (("auto", "auto"), ("balanced", "balanced"), ("halves", halves)):
            model = load_model(folder, device="cuda", dtype="float32", device_map=device_map)
            found = measured(model)
            off = max(float(abs(a - b).max()) for a, b in zip(found["scores"], truth["scores"], strict=True))
            told[name] = {
                "places": model.places,
                "same fingerprint": model.fingerprint == plain.fingerprint,
                "same texts": found["texts"] == truth["texts"],
                "nats off": off,
                "ways": found["ways"],
            }
            wrong |= not (told[name]["same fingerprint"] and told[name]["same texts"] and off < 1e-3)
    print(json.dumps(told, indent=1))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
