"""Ray beside ``-n``: three models of forty cases on two nodes of one worker each, against two workers of one machine.

    python benchmarks/parallel/compare_ray.py [--load 1.0] [--case 0.25] [--repeats 3]
    python benchmarks/parallel/compare_ray.py --controller 60 660

Models are stand-ins that take a fixed time to load. The cluster is up before the clock starts; connecting to it,
sending the code and starting the workers are counted. CPU is that of the pytest process that controls the run. The two
ways take turns, so that what else the machine does falls on both.

With ``--controller A B`` cases take no time, and what one costs the controller is the difference of its CPU between
runs of A and of B cases a model, by the number of cases between: starting and ending the run fall out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CONFTEST = 'pytest_plugins = ("lm_audit.plugin", "lm_audit.plugin.short_options")\n'
SOURCE = """
import os, time
from pathlib import Path
import pytest

LOADED = set()
IDS = [f"{model}@cpu-c{case}" for model in ("a", "b", "c") for case in range(CASES)]


@pytest.mark.parametrize("name", IDS)
def test_case(name, evidence):
    model = name[0]
    if model not in LOADED:
        LOADED.add(model)
        time.sleep(LOAD_S)
        with Path("LOADS").open("a") as file:
            file.write(model + "\\n")
    time.sleep(CASE_S)
"""


def call(folder: Path, *words: str) -> tuple[float, int, float, str]:
    """Seconds, model loads, CPU seconds of the controller, and the last line of one run."""
    loads = folder / "loads.txt"
    loads.write_text("", encoding="utf-8")
    (folder / "reports" / "durations.json").unlink(missing_ok=True)
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "harness"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    began = time.perf_counter()
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
            cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        usage = os.wait4(process.pid, 0)[2]
    wall = time.perf_counter() - began
    summary = (folder / "output.txt").read_text().strip().splitlines()[-1]
    return wall, len(loads.read_text(encoding="utf-8").split()), usage.ru_utime + usage.ru_stime, summary


def write(folder: Path, *, load: float, case: float, cases: int) -> None:
    """The project: three models of so many cases."""
    values = {"LOAD_S": load, "CASE_S": case, "CASES": cases, "LOADS": folder / "loads.txt"}
    source = SOURCE
    for name, value in values.items():
        source = source.replace(name, str(value))
    (folder / "test_cases.py").write_text(source, encoding="utf-8")


def ways(address: str) -> dict[str, tuple[str, ...]]:
    """What is compared, by name."""
    return {"-n 2": ("-p", "xdist", "-n", "2"), "--ray, 2 nodes": ("--ray", address)}


def compare(folder: Path, address: str, options: argparse.Namespace) -> None:
    """Wall times and loads of both ways, in turns."""
    print(f"3 models x 40 cases, load {options.load} s, case {options.case} s")
    write(folder, load=options.load, case=options.case, cases=40)
    ratios = []
    for _ in range(options.repeats):
        walls = []
        for way, words in ways(address).items():
            wall, loads, cpu, summary = call(folder, *words)
            walls.append(wall)
            print(f"{way:<15} {wall:>5.1f} s  {loads} loads  CPU {cpu:.1f} s  {summary}", flush=True)
        ratios.append(walls[1] / walls[0])
    print(f"ratios {', '.join(f'{ratio:.2f}' for ratio in ratios)}; median {statistics.median(ratios):.2f}")


def controller(folder: Path, address: str, options: argparse.Namespace) -> None:
    """What a case costs the controlling process."""
    few, many = options.controller
    for way, words in ways(address).items():
        costs = []
        for _ in range(options.repeats):
            spent = []
            for cases in (few, many):
                write(folder, load=0.0, case=0.0, cases=cases)
                spent.append(call(folder, *words)[2])
            costs.append(1000 * (spent[1] - spent[0]) / (3 * (many - few)))
        shown = ", ".join(f"{cost:.1f}" for cost in costs)
        print(f"{way:<15} {shown} ms of CPU a case; median {statistics.median(costs):.1f}", flush=True)


def main() -> None:
    """Print one line for each run."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=float, default=1.0, help="seconds that a model takes to load")
    parser.add_argument("--case", type=float, default=0.25, help="seconds that a case takes")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--controller", type=int, nargs=2, metavar=("A", "B"), help="cases a model of the two runs")
    options = parser.parse_args()
    store = 100 << 20
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": store})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, object_store_memory=store)
        cluster.wait_for_nodes()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
            (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
            (controller if options.controller else compare)(folder, cluster.address, options)
    finally:
        stop: Callable[[], object] = cluster.shutdown
        stop()


if __name__ == "__main__":
    main()
