"""The affinity scheduler beside pytest-xdist's own modes: model loads, wall time, and what one crash costs.

    python benchmarks/parallel/compare_scheduling.py [--workers 2 3] [--load 1.0] [--case 0.1]

Models are stand-ins that take a fixed time to load, so that the comparison is of scheduling alone. Ratios are to the
affinity scheduler in the same call.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CONFTEST = 'pytest_plugins = ("lm_audit.plugin", "lm_audit.plugin.short_options")\n'
MODES = {
    "affinity": (),
    "load": ("-p", "no:lm_audit.plugin.parallel.scheduler", "--dist", "load"),
    "worksteal": ("--dist", "worksteal"),
    "loadscope": ("--dist", "loadscope"),
    "loadgroup": ("--dist", "loadgroup"),
}
SOURCE = """
import os, signal, time
from pathlib import Path
import pytest

LOADED = set()
LOADS = Path(__file__).with_name("loads.txt")
PARAMETERS = [
    pytest.param((model, case), id=f"{model}@cpu-c{case}", marks=pytest.mark.xdist_group(model))
    for model in ("a", "b", "c") for case in range(12)
]


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_case(parameters):
    model, case = parameters
    if model not in LOADED:
        LOADED.add(model)
        time.sleep(LOAD_S)
        with LOADS.open("a") as file:
            file.write(model + "\\n")
    time.sleep(CASE_S)
    if os.environ.get("CRASH") == f"{model}{case}":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def call(folder: Path, workers: int, mode: str, crash: str, timeout: float) -> tuple[float, int, str]:
    """Seconds, model loads, and the summary of one run; a run that hangs is stopped and says so."""
    loads = folder / "loads.txt"
    loads.write_text("", encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "no:cacheprovider", "-n", str(workers)]
    environment = os.environ | {
        "PYTHONPATH": str(REPOSITORY / "harness"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "CRASH": crash,
    }
    began = time.perf_counter()
    process = subprocess.Popen(
        [*words, *MODES[mode]], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        summary = process.communicate(timeout=timeout)[0].strip().splitlines()[-1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        summary = f"hangs (stopped after {timeout:.0f} s)"
    return time.perf_counter() - began, len(loads.read_text(encoding="utf-8").split()), summary


def main() -> None:
    """Print one line for each mode and number of workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--load", type=float, default=1.0, help="seconds that a model takes to load")
    parser.add_argument("--case", type=float, default=0.1, help="seconds that a case takes")
    parser.add_argument("--timeout", type=float, default=60.0, help="stop a run that hangs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = SOURCE.replace("LOAD_S", str(options.load)).replace("CASE_S", str(options.case))
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        (folder / "test_cases.py").write_text(source, encoding="utf-8")
        print(f"3 models x 12 cases, load {options.load} s, case {options.case} s")
        print(f"{'workers':>7}  {'mode':<10} {'loads':>5} {'wall':>6} {'ratio':>6}  with one crash")
        for workers in options.workers:
            base = 0.0
            for mode in MODES:
                wall, loads, _ = call(folder, workers, mode, "", options.timeout)
                base = base or wall
                crash = call(folder, workers, mode, "b5", options.timeout)[2]
                print(f"{workers:>7}  {mode:<10} {loads:>5} {wall:>5.1f}s {wall / base:>6.2f}  {crash}", flush=True)


if __name__ == "__main__":
    main()
