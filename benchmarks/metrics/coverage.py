"""How often the interval of every metric that audits print holds the truth, and shows an effect where there is none.

    python benchmarks/metrics/coverage.py [--audit bias ...] [--runs 1000] [--jobs 2] [--only TEXT]

Rows are drawn in the structure that the audits have, and reported by the audits' own functions. Coverage is that of all
intervals that are given, of runs with an effect and without; false positives are of the runs without. Seeded.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from figure import Design

AUDITS = ("bias", "faithfulness", "leakage", "needle", "privacy")
PORTION = 100
"""Runs of one task, each with a seed of its own."""

Counts = dict[str, list[int]]
"""By metric: runs, intervals, intervals that hold the truth, runs without an effect that tell, and those invented."""


def designs(audit: str) -> list[Design]:
    return list(import_module(f"{audit}_figures").designs())


def portion(task: tuple[str, int, int, int]) -> Counts:
    """The counts of some runs of one design; every third run has an effect."""
    audit, place, first, runs = task
    design, found = designs(audit)[place], Counts()
    for number in range(first, first + runs):
        rng = np.random.default_rng([20261129, zlib.crc32(f"{audit} {design.what} {design.n}".encode()), number])
        for name, told in design.trial(rng, number, number % 3 == 2).items():
            counts, holds, invents = found.setdefault(name, [0] * 5), told.holds, told.invents
            counts[0] += 1
            counts[1] += holds is not None
            counts[2] += bool(holds)
            counts[3] += invents is not None
            counts[4] += bool(invents)
    return found


def added(parts: list[Counts]) -> Counts:
    total = Counts()
    for part in parts:
        for name, counts in part.items():
            total[name] = [a + b for a, b in zip(total.get(name, [0] * 5), counts, strict=True)]
    return total


def line(name: str, design: Design, counts: list[int]) -> str:
    runs, given, held, without, invented = counts
    share = (
        "none"
        if not given
        else f"{100 * held / given:.1f}%" + (f" (of {100 * given / runs:.0f}%)" if given < runs else "")
    )
    false = "" if not without else f"{100 * invented / without:.1f}%"
    metrics = (
        ", ".join(f"`{one}`" for one in name.split(", ")) if name.count("(") + name.count(" beyond") == 0 else name
    )
    return f"| {metrics} | {design.interval} | {design.what} | {design.n} | {share} | {false} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audit", choices=AUDITS, nargs="*", default=list(AUDITS))
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="designs that hold this text")
    options = parser.parse_args()
    print(
        "| metric | interval | rows | n | coverage | false positives |\n| --- | --- | --- | --- | --- | --- |",
        flush=True,
    )
    with ProcessPoolExecutor(options.jobs) as pool:
        for audit in options.audit:
            for place, design in enumerate(designs(audit)):
                if options.only not in f"{design.interval} {design.what} {design.n}":
                    continue
                tasks = [(audit, place, k, min(PORTION, options.runs - k)) for k in range(0, options.runs, PORTION)]
                for name, counts in added(list(pool.map(portion, tasks))).items():
                    print(line(name, design, counts), flush=True)


if __name__ == "__main__":
    main()
