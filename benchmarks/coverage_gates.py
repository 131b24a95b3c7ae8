"""Measure how often a gate decides where the true value lies on its limit, so that any decision is a wrong one.

    python benchmarks/coverage_gates.py                 # prints the table; two minutes of one core
    python benchmarks/coverage_gates.py --runs 200      # a quick look
    python benchmarks/coverage_gates.py --write         # also puts it into docs/gates.md

At the limit a 95 % interval lies wholly on one side in 5 % of runs. Below the fewest units there is no decision at all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

import numpy as np
from coverage_rows import SEED, Row, write_between

from lm_audit.gates.gate import Gate, judge
from lm_audit.stats import Estimate, clopper_pearson, mean_interval, roc_auc, share, tpr_at_fpr
from lm_audit.stats.means.disparity import max_min_disparity
from lm_audit.stats.means.mean_difference import studentised_difference

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gates.md"
BEGIN, END = "<!-- gate tables: begin -->", "<!-- gate tables: end -->"
SIZES = (2, 3, 5, 8, 12, 24)
Rng = np.random.Generator


@dataclass(frozen=True)
class Kind:
    """A metric of ``n`` independent units, and its true value."""

    name: str
    truth: float
    measure: Callable[[Rng, int], Estimate]


def in_clusters(rng: Rng, n: int) -> Estimate:
    """Values in ``n`` clusters of 5, half of whose spread is the clusters'."""
    found = mean_interval((rng.normal(size=(n, 1)) + rng.normal(size=(n, 5))).ravel(), clusters=np.repeat(range(n), 5))
    return replace(found, units=n, fewest=6)


def answers_in_clusters(rng: Rng, n: int) -> Estimate:
    """Yes-no answers in ``n`` clusters of 5, a third yes."""
    latent = 0.7 * rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, 5))
    return share((latent > 0.4264).ravel().astype(float), np.repeat(range(n), 5))


def disparity(rng: Rng, n: int) -> Estimate:
    """Two groups one apart over n x n templates and pairs."""
    cells = rng.normal(size=(2, n, n)) + rng.normal(size=(2, n, 1)) + rng.normal(size=(2, 1, n))
    found = max_min_disparity(cells + np.array([2.0, 0.0])[:, None, None], seed=int(rng.integers(2**31))).estimate
    return replace(found, units=n, fewest=6)


def members(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of ``n`` members and 200 controls with an AUC of 0.76."""
    return rng.normal(1.0, 1.0, n), rng.normal(0.0, 1.0, 200)


def detection(rng: Rng, n: int) -> Estimate:
    """The members that are found where 5 % of the controls are."""
    found = tpr_at_fpr(*members(rng, n), 0.05)
    return Estimate(found.tpr, found.low, found.high, n=n)


def kinds() -> Iterator[Kind]:
    """Every form of interval that a gate is held against."""
    yield Kind("mean, normal values", 0.0, lambda rng, n: mean_interval(rng.normal(size=n)))
    yield Kind("mean, exponential values", 1.0, lambda rng, n: mean_interval(rng.exponential(size=n)))
    yield Kind("mean over n clusters of 5", 0.0, in_clusters)
    yield Kind("share, a third yes", 1 / 3, lambda rng, n: clopper_pearson(int(rng.binomial(n, 1 / 3)), n))
    yield Kind("share, 2 % yes", 0.02, lambda rng, n: clopper_pearson(int(rng.binomial(n, 0.02)), n))
    yield Kind("share over n clusters of 5", 1 / 3, answers_in_clusters)
    yield Kind(
        "difference of n members and 200 twins",
        1.0,
        lambda rng, n: studentised_difference(*members(rng, n)).difference,
    )
    yield Kind("AUC of n members and 200 controls", 0.7602, lambda rng, n: roc_auc(*members(rng, n)))
    yield Kind("TPR at 5 % FPR, n members, 200 controls", 0.2595, detection)
    yield Kind("disparity over n x n templates and pairs", 2.0, disparity)


def decided(kind: Kind, n: int, runs: int) -> tuple[float, float]:
    """The shares of runs in which a gate at the truth is met and missed, with an upper limit."""
    gate, words = Gate("m", high=kind.truth), []
    for run in range(runs):
        rng = np.random.default_rng([SEED, run, n, *kind.name.encode()])
        words.append(judge(gate, kind.measure(rng, n)).word)
    return words.count("met") / runs, words.count("missed") / runs


def table(runs: int) -> str:
    """Of each kind and size how often a gate at the true value decides."""
    lines = ["| metric | " + " | ".join(f"n = {n}" for n in SIZES) + " |", "| --- |" + " --- |" * len(SIZES)]
    for kind in kinds():
        cells = []
        for n in SIZES:
            both = sum(decided(kind, n, runs))
            cells.append(f"{100 * both:.1f}% ± {100 * Row('', '', 0.05, both, runs).error:.1f}" if both else "0")
        lines.append(f"| {kind.name} | {' | '.join(cells)} |")
    return f"Seed {SEED}, {runs:,} runs a cell; ± is the standard error of the simulation.\n\n" + "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="runs a cell (default 1000)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/gates.md")
    options = parser.parse_args()
    text = table(options.runs)
    print(text)
    if options.write:
        write_between(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
