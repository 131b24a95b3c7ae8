"""The affinity queue at the size of a cluster: simulated workers and durations, the real queue and cost model.

    python benchmarks/parallel/scale_ray.py [--cases 10000] [--models 20] [--workers 200] [--case 30] [--load 60]

Cases are spread evenly over the models; how long one takes is drawn log-normally (sigma 0.5) from the seed, and unknown
to the queue beforehand unless --known. What is measured: loads per model, the share of the workers' time until the last
case in which they neither load nor run, CPU of the queue a case, and its memory. Sending and reporting are not in it.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

from lm_audit.plugin.parallel.affinity import AffinityQueue
from lm_audit.plugin.parallel.costs import CostModel
from lm_audit.plugin.parallel.work import Work


def simulate(options: argparse.Namespace, workers: int, cases: int) -> dict[str, float]:
    """One run: workers take a case, one ahead of it of the same model, and go home where nothing is left for them."""
    rng = np.random.default_rng(options.seed)
    groups = [f"model{index % options.models:02}@cuda" for index in range(cases)]
    works = [Work(i, f"evals/t.py::test_x[{group}-c{i}]", group) for i, group in enumerate(groups)]
    seconds = rng.lognormal(np.log(options.case), 0.5, size=cases)
    costs = CostModel(
        case_s={work.case: float(took) for work, took in zip(works, seconds, strict=True)} if options.known else {},
        load_s=dict.fromkeys(groups, options.load) if options.known else {},
    )
    tracemalloc.start()
    spent = -time.process_time()
    queue = AffinityQueue(works, costs)
    spent += time.process_time()
    clock = [(0.0, node) for node in range(workers)]
    loaded: dict[int, str] = {}
    current: dict[int, tuple[int, float]] = {}
    loads, busy, ended, home = 0, 0.0, 0.0, 0
    for node in range(workers):
        queue.add_node(node, place=node // 8)
    while clock:
        now, node = heapq.heappop(clock)
        spent -= time.process_time()
        if node in current:
            key, took = current.pop(node)
            queue.done(node, key, took)
        work = queue.held(node)[0] if queue.held(node) else queue.take(node)
        if work is not None and len(queue.held(node)) == 1:
            queue.take_ahead(node)
        spent += time.process_time()
        if work is None:
            home += 1
            continue
        number = int(str(work.key))
        took = float(seconds[number])
        if loaded.get(node) != work.group:
            loaded[node], loads, took = str(work.group), loads + 1, took + options.load
        current[node] = (number, took)
        busy, ended = busy + took, max(ended, now + took)
        heapq.heappush(clock, (now + took, node))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert queue.queued == 0 and not queue.dropped and home == workers
    bound = (float(seconds.sum()) + options.models * options.load) / workers
    return {
        "loads": loads / options.models, "idle": 1 - busy / (workers * ended), "span": ended / bound,
        "ms": 1e3 * spent / cases, "mib": peak / (1 << 20),
    }  # fmt: skip


def main() -> None:
    """Print one line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs="+", default=[10_000, 200_000])
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[20, 200])
    parser.add_argument("--case", type=float, default=30.0, help="median seconds of a case")
    parser.add_argument("--load", type=float, default=60.0, help="seconds of a load")
    parser.add_argument("--known", action="store_true", help="durations were recorded by an earlier run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{options.models} models, case {options.case:g} s, load {options.load:g} s, known: {options.known}")
    print("   cases  workers  loads a model  idle share  span / bound  CPU ms a case  peak MiB")
    for cases in options.cases:
        for workers in options.workers:
            found = simulate(options, workers, cases)
            print(
                f"{cases:>8} {workers:>8} {found['loads']:>14.1f} {found['idle']:>11.1%} {found['span']:>13.2f} "
                f"{found['ms']:>14.3f} {found['mib']:>9.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
