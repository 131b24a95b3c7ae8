"""How often does each control pass where all is well, and fail where what it guards is broken? By simulation.

    python benchmarks/controls/rates.py [--audit bias leakage ...] [--runs 4000] [--jobs 2]

Draws the scores that a control decides on, thousands of times, and lets the control's own rule decide. Prints a table:
the share of runs in which the control did right, with its exact limit at 97.5 %. Must be: 0.999 passes where all is
well, 0.99 fails where something is broken.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from designs import Design

from lm_audit.stats import clopper_pearson

AUDITS = ("privacy", "leakage", "bias", "needle", "faithfulness", "reporting")
PORTION = 25
"""Runs of one task, each with a seed of its own: few enough that the last ones of a slow design leave no core idle."""

FEWEST = 500
"""Runs of any design: of so many that are all right the exact lower limit is 99.26 %."""


def designs(audit: str) -> list[Design]:
    found: list[Design] = import_module(audit).DESIGNS
    return found


def portion(task: tuple[str, int, int, int]) -> int:
    """Of ``runs`` runs, those in which the control did right."""
    audit, place, number, runs = task
    design = designs(audit)[place]
    rng = np.random.default_rng([AUDITS.index(audit), place, number])
    return sum(design.draw(rng) == design.sound for _ in range(runs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audit", choices=AUDITS, nargs="*", default=list(AUDITS))
    parser.add_argument("--only", default="", help="designs whose control or description holds this text")
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    chosen = [
        (audit, place, design, max(FEWEST, round(options.runs * design.runs)))
        for audit in options.audit
        for place, design in enumerate(designs(audit))
        if options.only in f"{design.control} {design.what}"
    ]
    print("| audit | control | scores | runs | right | at least |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        # All of them at once: the next design's begin while the last of this one's are still drawn.
        asked = [
            [
                pool.submit(portion, (audit, place, number, min(PORTION, runs - done)))
                for number, done in enumerate(range(0, runs, PORTION))
            ]
            for audit, place, _, runs in chosen
        ]
        for (audit, _, design, runs), drawn in zip(chosen, asked, strict=True):
            right = sum(one.result() for one in drawn)
            low = clopper_pearson(right, runs).low
            what = design.what if design.sound else f"broken: {design.what}"
            share = f"{100 * right / runs:.2f} %"
            print(f"| {audit} | {design.control} | {what} | {runs} | {share} | {100 * (low or 0):.2f} % |", flush=True)


if __name__ == "__main__":
    main()
