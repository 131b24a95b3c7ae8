"""Where a GPU spends the time of ``generate`` on an 8B-shaped model: reading, steps, capture, and what bounds each.

    python benchmarks/gpu/decoding.py [--rows 256 64] [--small] [--json FILE]

Beside the seconds of a call stand the limits of this card, measured in the same run: the model's own matrix products at
the sizes of the call (each by itself and, for what could be one product, together), the copies that the weights and the
cached keys and values cost at the copy bandwidth. A profile names the kernels.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

from gpu import generation as base

PROMPT = 200
NEW = {256: 64, 64: 128}


def per_call(call: Any, repeats: int = 20) -> float:
    """Seconds of a call on the device, the best of three runs of some."""
    call()
    return min(base.seconds(lambda: [call() for _ in range(repeats)]) for _ in range(3)) / repeats


@torch.inference_mode()
def products(module: Any, rows: int) -> dict[str, float]:
    """Seconds of one layer's matrix products on so many rows, of the same with joint weights, and of the head's."""
    layer, head = module.model.layers[0], module.lm_head
    made: dict[str, float] = {}
    parts = {"q": layer.self_attn.q_proj, "k": layer.self_attn.k_proj, "v": layer.self_attn.v_proj}
    parts |= {"o": layer.self_attn.o_proj, "gate": layer.mlp.gate_proj, "up": layer.mlp.up_proj}
    parts |= {"down": layer.mlp.down_proj}
    repeats = 20 if rows <= 1024 else 3
    for name, part in parts.items():
        x = torch.randn(rows, part.in_features, device=part.weight.device, dtype=part.weight.dtype)
        made[name] = per_call(lambda part=part, x=x: part(x), repeats)
    for name, joint in (("qkv", "qkv"), ("gate_up", ("gate", "up"))):
        weight = torch.cat([parts[one].weight for one in joint])
        x = torch.randn(rows, weight.shape[1], device=weight.device, dtype=weight.dtype)
        made[name] = per_call(lambda w=weight, x=x: torch.nn.functional.linear(x, w), repeats)
    if rows <= 1024:
        x = torch.randn(rows, head.in_features, device=head.weight.device, dtype=head.weight.dtype)
        made["head"] = per_call(lambda: head(x), repeats)
    return made


def profiled(label: str, call: Any) -> None:
    """Prints the kernels of a call, and how long the device worked and stood still."""
    from torch.profiler import ProfilerActivity, profile

    call()
    with profile(activities=[ProfilerActivity.CUDA if torch.cuda.is_available() else ProfilerActivity.CPU]) as found:
        seconds = base.seconds(call)
    events = found.key_averages()
    busy = sum(_own(event) for event in events) / 1e6
    print(f"\nprofile of {label}: {seconds:.3f} s with the profiler, kernels {busy:.3f} s of it")
    for event in sorted(events, key=lambda one: -_own(one))[:16]:
        print(f"    {_own(event) / 1e3:9.1f} ms {event.count:6d} x  {event.key[:110]}")


def _own(event: Any) -> float:
    """Microseconds of a kernel itself, of an operator on a CPU."""
    return float(event.self_device_time_total or (0 if torch.cuda.is_available() else event.self_cpu_time_total))


class Captures:
    """Seconds that steps took which were launched and captured, by the thread's clock."""

    def __init__(self) -> None:
        from lm_audit.models.generation.in_slots.step_graph import Stepper

        self.seconds = {"_plain": 0.0, "_capture": 0.0}
        for name in self.seconds:
            setattr(Stepper, name, self._timed(name, getattr(Stepper, name)))

    def _timed(self, name: str, plain: Any) -> Any:
        def call(*given: Any) -> Any:
            base.synchronize() if not capturing() else None
            begun = time.perf_counter()
            found = plain(*given)
            base.synchronize() if not capturing() else None
            self.seconds[name] += time.perf_counter() - begun
            return found

        return call


def capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def study(model: Any, limits: Any, rows: int, new: int) -> dict[str, Any]:
    """All figures of one size."""
    module = model.module
    prompts = base.ids(rows, PROMPT, size=module.config.vocab_size)
    call = partial(model.generate, prompts, max_new_tokens=new)
    one = partial(model.generate, prompts, max_new_tokens=1)
    call()
    whole, reading = base.seconds(call, 3), base.seconds(one, 3)
    two = base.seconds(lambda: model.generate(prompts, max_new_tokens=2), 3)
    layers = module.config.num_hidden_layers
    few, many = products(module, rows), products(module, min(rows * PROMPT, 32_768))
    step = layers * sum(few[name] for name in ("q", "k", "v", "o", "gate", "up", "down")) + few["head"]
    joint = layers * sum(few[name] for name in ("qkv", "o", "gate_up", "down")) + few["head"]
    at_once = min(rows * PROMPT, 32_768)
    read = layers * sum(many[name] for name in ("q", "k", "v", "o", "gate", "up", "down")) * rows * PROMPT / at_once
    cached = rows * limits.token * (PROMPT + new / 2) / limits.bytes
    found = {
        "rows": rows, "new": new, "whole_s": whole, "reading_s": reading, "first_step_s": two - reading,
        "step_s": (whole - two) / (new - 2), "tokens_per_s": rows * new / whole, "products_of_reading_s": read,
        "products_of_a_step_s": step, "joint_products_of_a_step_s": joint, "weights_of_a_step_s":
        limits.weights / limits.bytes, "cached_of_a_step_s": cached,
        "limit_s": read + new * (max(joint, limits.weights / limits.bytes) + cached),
    }  # fmt: skip
    print(f"\n{rows} prompts of {PROMPT}, {new} new: {whole:.3f} s, {rows * new / whole:.0f} tok/s")
    for name, value in found.items():
        if name.endswith("_s"):
            print(f"    {name:28s} {value * 1e3:10.2f} ms")
    print(
        f"    the card's limit {rows * new / found['limit_s']:.0f} tok/s, ours {whole / found['limit_s']:.2f} times it"
    )
    print(f"    products on {rows} rows, microseconds: " + ", ".join(f"{k} {v * 1e6:.0f}" for k, v in few.items()))
    print(f"    on {at_once} rows: " + ", ".join(f"{k} {v * 1e6:.0f}" for k, v in many.items()), flush=True)
    profiled(f"reading {rows} x {PROMPT}", one)
    profiled(f"reading and {new} steps", call)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[256, 64])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model = base.random_model(options.small, options.device)
    limits = base.Limits(model)
    name = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    print(f"{name}, torch {torch.__version__}: {limits.bytes / 1e12:.2f} TB/s, {limits.tokens:.0f} tokens/s forward")
    made = [study(model, limits, rows, NEW.get(rows, 32)) for rows in options.rows]
    captures = Captures()
    rows = options.rows[0]
    model.generate(base.ids(rows, PROMPT, size=model.module.config.vocab_size), max_new_tokens=4)
    print(f"\nof a call of {rows} rows: {captures.seconds['_plain']:.3f} s in launched steps, "
          f"{captures.seconds['_capture']:.3f} s in captures, those in them included")  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
