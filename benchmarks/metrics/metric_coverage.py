"""How often the interval of every metric that audits print holds the truth, and shows an effect where there is none.

    python benchmarks/metrics/metric_coverage.py [--audit bias ...] [--runs 1000] [--jobs 2] [--only TEXT]

Rows are drawn in the structure that the audits have, and reported by the audits' own functions. Coverage is that of all
intervals that are given, of runs with an effect and without; false positives are of the runs without. Seeded.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Measured:
    """One metric under one design."""

    audit: str
    name: str
    design: Design
    counts: list[int]

    @property
    def coverage(self) -> float | None:
        return self.counts[2] / self.counts[1] if self.counts[1] else None

    @property
    def invented(self) -> float | None:
        return self.counts[4] / self.counts[3] if self.counts[3] else None

    @property
    def given(self) -> float:
        return self.counts[1] / self.counts[0]

    def line(self) -> str:
        """A row of the long table."""
        covered, invented = _percent(self.coverage), _percent(self.invented)
        some = f" (of {100 * self.given:.0f}%)" if 0 < self.given < 1 else ""
        design = self.design
        return (
            f"| {self.name} | {design.interval} | {design.what} | {design.n} | {covered or 'none'}{some} | {invented} |"
        )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"


def by_metric(measured: list[Measured]) -> Iterator[str]:
    """The short table: a row a metric, from the least to the largest over its designs; false positives of all together
    and of the worst."""
    yield "| metric | interval | designs | n | coverage | false positives | `--audit` |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    groups: dict[tuple[str, str], list[Measured]] = {}
    for one in measured:
        groups.setdefault((one.audit, one.name), []).append(one)
    for (audit, name), some in groups.items():
        interval = "; ".join(dict.fromkeys(one.design.interval for one in some))
        sizes = ", ".join(dict.fromkeys(one.design.n for one in some))
        covered = [one.coverage for one in some if one.coverage is not None]
        invented = [one.invented for one in some if one.invented is not None]
        ends = list(dict.fromkeys(_percent(end) for end in (min(covered), max(covered)))) if covered else ["none"]
        least = min(one.given for one in some)
        held = " to ".join(ends) + (f" (in {100 * least:.0f}% at least there is one)" if least < 0.995 else "")
        without, shown = (sum(one.counts[k] for one in some) for k in (3, 4))
        wrong = f"{_percent(shown / without)}, at most {_percent(max(invented))}" if without else ""
        yield f"| {name} | {interval} | {len(some)} | {sizes} | {held} | {wrong} | {audit} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audit", choices=AUDITS, nargs="*", default=list(AUDITS))
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="designs that hold this text")
    parser.add_argument("--by-metric", action="store_true", help="a row a metric, and not one a design")
    options = parser.parse_args()
    if not options.by_metric:
        print("| metric | interval | rows | n | coverage | false positives |\n| --- | --- | --- | --- | --- | --- |")
    measured = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for audit in options.audit:
            for place, design in enumerate(designs(audit)):
                if options.only not in f"{design.interval} {design.what} {design.n}":
                    continue
                tasks = [(audit, place, k, min(PORTION, options.runs - k)) for k in range(0, options.runs, PORTION)]
                for name, counts in added(list(pool.map(portion, tasks))).items():
                    measured.append(Measured(audit, name, design, counts))
                    if not options.by_metric:
                        print(measured[-1].line(), flush=True)
    if options.by_metric:
        print("\n".join(by_metric(measured)))


if __name__ == "__main__":
    main()
