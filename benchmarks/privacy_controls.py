"""Do the privacy audit's planted controls pass at every seed, and under arithmetic of other processors?

    python benchmarks/privacy_controls.py --seeds 20                    # every setting below, one after the other
    python benchmarks/privacy_controls.py --seeds 20 --settings plain   # one of them

The settings imitate other processors on one machine: no vector instructions in torch, other instruction sets in oneDNN,
two threads (another order of summation).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[1] / "harness"
SETTINGS = {
    "plain": {},
    "no-vectors": {"ATEN_CPU_CAPABILITY": "default"},
    "sse41": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "two-threads": {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"},
}

RUN = """
import sys
from lm_audit.audits.privacy.controls.known_scores import known_scores
from lm_audit.audits.privacy.controls.trained_controls import never_trained, often_repeated, planted_memory
failed, steps = [], []
for seed in range(int(sys.argv[1])):
    steps.append(planted_memory(seed).steps)
    for control in (often_repeated, never_trained, known_scores):
        found = control(seed).control
        if not found.passed:
            failed.append(f"{control.__name__} at seed {seed}: {found.observed}")
print(f"{len(steps)} seeds, {min(steps)} to {max(steps)} steps, failed: {failed or 'none'}")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--settings", choices=SETTINGS, nargs="*", default=list(SETTINGS))
    options = parser.parse_args()
    for name in options.settings:
        environment = {**os.environ, "PYTHONPATH": str(HARNESS), **SETTINGS[name]}
        command = [sys.executable, "-c", RUN, str(options.seeds)]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        print(f"{name}: {found.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
