"""Do the needle audit's intervals cover, and does its cliff promise too much, under the designs that the audit has?

    python benchmarks/coverage_needle.py [--runs 4000] [--jobs N] [--control-seeds 0]

Prints one line a design. Answers are drawn with known probabilities: of one cell; of a grid whose accuracy differs from
cell to cell; of shared stretches of haystack, each with an effect of its own on the logit. The cliff is held against
the longest length up to which the true accuracy reaches the threshold. ``--control-seeds`` also runs the controls.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

from lm_audit.audits.needle.grid.cells import share
from lm_audit.audits.needle.grid.cliff import cliff

SURFACES = {"flat 0.95": [0.95] * 6, "falls late": [0.99, 0.99, 0.98, 0.95, 0.7, 0.4], "at 0.85": [0.85] * 6}


def one_cell(rng: np.random.Generator, n: int, p: float) -> tuple[bool, bool]:
    """Whether a cell's interval covers, and whether it was given."""
    found = share((rng.random(n) < p).astype(float))
    return _covers(found, p), found.low is not None


def grid(rng: np.random.Generator, lengths: int, depths: int, samples: int) -> tuple[bool, bool]:
    """The same for a whole grid whose cells differ."""
    p = 0.98 - 0.5 * np.linspace(0, 1, lengths)[:, None] * (1 - np.abs(np.linspace(-1, 1, depths)))[None]
    hits = rng.random((samples, lengths, depths)) < p
    found = share(hits.ravel().astype(float))
    return _covers(found, float(p.mean())), found.low is not None


def shared(rng: np.random.Generator, stretches: int, depths: int, spread: float) -> tuple[bool, bool]:
    """The same where all depths of a sample share a stretch of text, which makes it harder or easier."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    truth = float((weights * _logistic(1.5 + spread * nodes)).sum() / weights.sum())
    p = _logistic(1.5 + spread * rng.standard_normal(stretches))
    hits = rng.random((stretches, depths)) < p[:, None]
    labels = [f"stretch {number}" for number in range(stretches) for _ in range(depths)]
    found = share(hits.ravel().astype(float), labels)
    return _covers(found, truth), found.low is not None


def cliff_beyond(rng: np.random.Generator, surface: str, n: int) -> tuple[bool, bool]:
    """Whether the cliff stands at or before the true one, and whether it has a value."""
    p = SURFACES[surface]
    accuracy = {i + 1: share((rng.random(n) < chance).astype(float)) for i, chance in enumerate(p)}
    found = cliff(accuracy, 0.85)
    true = next((i for i, chance in enumerate(p) if chance < 0.85), len(p))
    return found.value is None or found.value <= true, found.value is not None


def _covers(found: Any, truth: float) -> bool:
    return found.low is None or bool(found.low - 1e-12 <= truth <= found.high + 1e-12)


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


DESIGNS: dict[str, Callable[[np.random.Generator], tuple[bool, bool]]] = {
    **{f"cell, n = {n}, p = {p}": partial(one_cell, n=n, p=p) for n in (2, 5, 20) for p in (0.5, 0.9, 0.99)},
    "smoke grid, 3 x 3 x 2": partial(grid, lengths=3, depths=3, samples=2),
    "standard grid, 5 x 11 x 5": partial(grid, lengths=5, depths=11, samples=5),
    **{
        f"shared, {k} stretches x 11 depths, SD {spread}": partial(shared, stretches=k, depths=11, spread=spread)
        for k in (2, 6, 12, 24)
        for spread in (0.0, 0.5, 1.0)
    },
    **{f"cliff, {name}, n = {n}": partial(cliff_beyond, surface=name, n=n) for name in SURFACES for n in (55, 220)},
}


def measured(name: str, runs: int) -> tuple[str, float, float]:
    """Share of runs that are right among those with an interval or value, and the share that has one."""
    rng = np.random.default_rng([20261128, sorted(DESIGNS).index(name)])
    found = np.array([DESIGNS[name](rng) for _ in range(runs)])
    given = found[:, 1]
    return name, float(found[given, 0].mean()) if given.any() else float("nan"), float(given.mean())


def control_fails(seed: int) -> list[str]:
    """The controls that fail at a seed, by name."""
    from lm_audit.audits.needle.controls import stubs as controls

    every = (controls.reader_control, controls.middle_control)
    return [one.__name__ for one in every if not getattr(one(seed).control, "passed", False)]


def main() -> None:
    """Run all designs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--control-seeds", type=int, default=0)
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs) as pool:
        print("| design | right | given |\n| --- | --- | --- |")
        for name, right, given in pool.map(partial(measured, runs=args.runs), DESIGNS):
            print(f"| {name} | {100 * right:.1f} % | {100 * given:.0f} % |", flush=True)
        if args.control_seeds:
            failed = [name for names in pool.map(control_fails, range(args.control_seeds)) for name in names]
            print(f"controls: {len(failed)} of {2 * args.control_seeds} failed {sorted(set(failed))}")


if __name__ == "__main__":
    main()
