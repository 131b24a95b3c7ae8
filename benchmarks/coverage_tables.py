"""How often the two-way t of crossed tables covers, however rows, columns and cells share the spread.

    python benchmarks/coverage_tables.py [--runs 20000]

Each line draws tables of mean 0 and counts how often the 95 % interval holds it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

from coverage_rows import Row, generator, markdown

from lm_audit.stats import two_way_mean

SHAPES = ((6, 6), (6, 13), (8, 8), (12, 13), (24, 24), (6, 40), (6, 80))
SPREADS = ((0.0, 0.0, 1.0), (0.3, 0.3, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 0.1), (1.0, 0.0, 1.0), (1.0, 0.3, 0.5))
"""Standard deviations of rows, of columns, of single cells."""


def row(shape: tuple[int, int], spreads: tuple[float, float, float], runs: int) -> Row:
    """The coverage of one design."""
    rows, columns = shape
    setting = f"{rows} x {columns}, SD of rows {spreads[0]:g}, of columns {spreads[1]:g}, of cells {spreads[2]:g}"
    rng, held = generator(setting), 0
    for _ in range(runs):
        table = spreads[0] * rng.normal(size=(rows, 1)) + spreads[1] * rng.normal(size=(1, columns))
        found = two_way_mean(table + spreads[2] * rng.normal(size=shape))
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
    return Row("two_way_mean", setting, 0.95, held / runs, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000, help="tables of each design (default 20000)")
    runs = parser.parse_args().runs
    print(markdown([row(shape, spreads, runs) for shape in SHAPES for spreads in SPREADS], "coverage"))


if __name__ == "__main__":
    main()
