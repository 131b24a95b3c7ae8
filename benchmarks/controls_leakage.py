"""The leakage controls at many seeds and under arithmetic as of other processors: how often each passes.

    python benchmarks/controls_leakage.py [--seeds 20] [--jobs 8] [--only plain]

Each variant runs in processes of its own, since the libraries read these settings when they load. Prints one line a run
and a table of passes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

VARIANTS = {
    "plain": {"OMP_NUM_THREADS": "1"},
    "4 threads": {"OMP_NUM_THREADS": "4"},
    "ATEN default": {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "default"},
    "ATEN avx2": {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "avx2"},
    "oneDNN SSE41": {"OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "oneDNN AVX2": {"OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}


def one(seed: int) -> None:
    """Both controls of one seed as a line of JSON."""
    from lm_audit.audits.leakage import negative_control, plant, positive_control
    from lm_audit.models.toy.tiny_model import tiny_model

    planted = plant(tiny_model(), seed=seed)
    found = {}
    for name, judge in (("positive", positive_control), ("negative", negative_control)):
        control = judge(planted).control
        assert control is not None
        found[name] = {"passed": control.passed, "observed": control.observed}
    print(json.dumps({"seconds": round(planted.training.seconds, 1), **found}))


def run(variant: str, seed: int) -> tuple[str, int, dict[str, object]]:
    """One seed in a process with the variant's settings."""
    command = [sys.executable, __file__, "--one", str(seed)]
    done = subprocess.run(command, env=os.environ | VARIANTS[variant], capture_output=True, text=True, check=False)
    if done.returncode:
        failed = {"passed": False, "observed": done.stderr.strip().splitlines()[-1:]}
        return variant, seed, {"seconds": None, "positive": failed, "negative": failed}
    return variant, seed, json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=tuple(VARIANTS), action="append")
    parser.add_argument("--one", type=int)
    options = parser.parse_args()
    if options.one is not None:
        one(options.one)
        return
    chosen = options.only or list(VARIANTS)
    passes = {name: [0, 0] for name in chosen}
    with ThreadPoolExecutor(options.jobs) as pool:
        for variant, seed, found in pool.map(
            lambda pair: run(*pair), [(v, s) for v in chosen for s in range(options.seeds)]
        ):
            print(variant, seed, json.dumps(found), flush=True)
            for place, name in enumerate(("positive", "negative")):
                passes[variant][place] += bool(found[name]["passed"])  # type: ignore[index]
    print("\n| arithmetic | seen-in-training | never-seen |\n| --- | --- | --- |")
    for name, (positive, negative) in passes.items():
        print(f"| {name} | {positive} of {options.seeds} | {negative} of {options.seeds} |")


if __name__ == "__main__":
    main()
