"""The two-way t of crossed means beside a mixed model and beside tests that know what no data tell. No model needed.

    python benchmarks/compare/crossed_means.py [--runs 3000]

Tables of templates x pairs whose rows, columns and cells each vary with an SD of 1 around an effect of 0 or 1. In a
balanced table the restricted likelihood of a mixed model has its maximum at the analysis of variance's components where
none is below 0 (Searle, Casella and McCulloch 1992); Satterthwaite's degrees of freedom are those of its mean squares.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

import numpy as np
from scipy.stats import norm, t

from lm_audit.stats.means.two_way import two_way_t

SHAPES = ((12, 12), (6, 13), (16, 16), (18, 18))


def p_values(table: np.ndarray) -> tuple[float, float, float]:
    """Of "the mean is 0": the two-way t, the mixed model, and a t that knows the ratios of the components."""
    rows, columns = table.shape
    mean, n = table.mean(), table.size
    by_row, by_column = table.mean(axis=1), table.mean(axis=0)
    rest = table - by_row[:, None] - by_column + mean
    freedom = np.array([rows - 1, columns - 1, (rows - 1) * (columns - 1)])
    sums = np.array([columns * ((by_row - mean) ** 2).sum(), rows * ((by_column - mean) ** 2).sum(), (rest**2).sum()])
    squares = sums / freedom
    components = np.maximum(0.0, [(squares[0] - squares[2]) / columns, (squares[1] - squares[2]) / rows, squares[2]])
    variance = float((components / [rows, columns, n]).sum())
    df = variance**2 / float(((squares / n) ** 2 / freedom).sum())
    # Each sum of squares over its expectation is one more estimate of the scale.
    scale = float((sums / [1 + columns, 1 + rows, 1]).sum()) / (n - 1)
    known = float(t.sf(abs(mean) / np.sqrt(scale * true_variance(rows, columns)), n - 1))
    found = two_way_t(table, 0.95)[1].value
    assert found is not None
    return found, float(2 * t.sf(abs(mean) / np.sqrt(variance), df)), 2 * known


def true_variance(rows: int, columns: int) -> float:
    """Of the mean of a table of the simulation."""
    return 1 / rows + 1 / columns + 1 / (rows * columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3000)
    options = parser.parse_args()
    print("| table | effect | two-way t | mixed model | t that knows the ratios | z that knows all (exact) |")
    print("| --- | --- | --- | --- | --- | --- |")
    for rows, columns in SHAPES:
        for effect in (0.0, 1.0):
            rng = np.random.default_rng([rows, columns, int(effect)])
            drawn = [
                p_values(
                    rng.normal(size=(rows, 1))
                    + rng.normal(size=(1, columns))
                    + rng.normal(size=(rows, columns))
                    + effect
                )
                for _ in range(options.runs)
            ]
            shares = [f"{100 * share:.1f} %" for share in (np.array(drawn) <= 0.05).mean(axis=0)]
            limit, shift = norm.isf(0.025), effect / np.sqrt(true_variance(rows, columns))
            exact = norm.sf(limit - shift) + norm.sf(limit + shift)
            print(f"| {rows} x {columns} | {effect:g} | {' | '.join(shares)} | {100 * exact:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
