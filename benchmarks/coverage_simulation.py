"""Measure the true coverage of the intervals and the true false-positive rates of the tests.

    python benchmarks/coverage_simulation.py                # prints the tables; some minutes on one core
    python benchmarks/coverage_simulation.py --write        # also puts them into docs/statistics.md
    python benchmarks/coverage_simulation.py --runs 200     # a quick look

Same seed, same numbers: each case has a generator of its own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

import coverage_intervals
import coverage_tests
from coverage_rows import RESAMPLES, SEED, markdown, write_between

PAGE = Path(__file__).resolve().parents[1] / "docs" / "statistics.md"
BEGIN, END = "<!-- coverage tables: begin -->", "<!-- coverage tables: end -->"


def tables(runs: int) -> str:
    """All tables as Markdown."""
    return "\n\n".join(
        [
            f"Seed {SEED}, {runs} repetitions (AUC, TPR and max-min: half as many; the null grid: twice as many), "
            f"{RESAMPLES} resamples a repetition; ± is the standard error of the simulation, in percentage points.",
            "**Coverage of 95% intervals**",
            markdown(coverage_intervals.all_rows(runs), "coverage"),
            "**False positives at 5%** (for a bound on epsilon: how often it exceeds the true value)",
            markdown(coverage_tests.all_rows(runs), "rate"),
            "**Power at 5%** (the null grid plus a true effect; there is no nominal value, 100% would be best)",
            markdown(coverage_tests.power_rows(runs), "rate"),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="repetitions of each case (default 2000)")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/statistics.md")
    options = parser.parse_args()
    text = tables(options.runs)
    print(text)
    if options.write:
        write_between(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
