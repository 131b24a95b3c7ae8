"""Why no wider interval of few values holds a mean whose far part was not drawn.

    python benchmarks/coverage_hidden.py --runs 20000          # seconds

A t interval grows towards the longer tail with the skewness of the values at hand, as the audits' do
(``lm_audit.stats.means.skewed``). For each shape: how often it holds the true mean; of the samples that miss it, how
many look no more skewed than nine of ten normal samples of that size; by how much the upper part of all samples would
have to grow for a coverage of 93 %, and what that makes of normal values; and what is left where more skewed samples
are ruled out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

import numpy as np
from coverage_rows import generator
from scipy.special import stdtrit

from lm_audit.stats.means.skewed import SKEWED

SIZES = (8, 10, 12, 15)
LEAST = 0.93
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def a_tenth(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Changes of canaries of which a tenth lie six of the others' standard deviations off."""
    return np.asarray(np.where(rng.random(shape) < 0.1, 3.0, 0.0) - 0.3 + 0.5 * rng.normal(size=shape))


def lognormal(sd: float) -> Draw:
    """Lognormal values whose mean is 0."""
    return lambda rng, shape: np.exp(sd * rng.normal(size=shape)) - np.exp(sd**2 / 2)


SHAPES: dict[str, Draw] = {
    "a tenth far off": a_tenth,
    "lognormal, SD 1.5": lognormal(1.5),
    "lognormal, SD 1": lognormal(1.0),
    "normal": lambda rng, shape: rng.normal(size=shape),
}


@dataclass(frozen=True)
class Samples:
    """Samples (B) of ``n`` values by what their interval is made of: mean over its error, and skewness."""

    t: np.ndarray
    skew: np.ndarray
    n: int

    @classmethod
    def of(cls, values: np.ndarray) -> Samples:
        """Of samples (B, n) whose true mean is 0."""
        n = values.shape[1]
        away = values - values.mean(axis=1, keepdims=True)
        variance = (away**2).mean(axis=1)
        t = values.mean(axis=1) / np.sqrt(variance / (n - 1))
        return cls(t, (away**3).mean(axis=1) / variance**1.5, n)

    def needed(self) -> np.ndarray:
        """By how much more the upper part must reach for each sample to hold 0: at most 1 where it does."""
        up = 1 + SKEWED / self.n * np.maximum(0.0, self.skew)
        return np.asarray(-self.t / (up * float(stdtrit(self.n - 1, 0.975))))

    def held(self, factor: float = 1.0) -> np.ndarray:
        """Which samples hold 0 with an upper part that is ``factor`` times as long."""
        down = 1 + SKEWED / self.n * np.maximum(0.0, -self.skew)
        return np.asarray((self.needed() <= factor) & (self.t <= down * float(stdtrit(self.n - 1, 0.975))))


@dataclass(frozen=True)
class Line:
    """One shape at one size, in shares."""

    shape: str
    n: int
    coverage: float
    looks_normal: float
    """Of the samples that miss."""
    longer: float
    """Factor of the upper part that all samples would take."""
    normal_then: float
    kept: float
    """Samples no more skewed than nine of ten normal ones."""
    coverage_kept: float


def lines(runs: int) -> Iterator[Line]:
    """All shapes and sizes."""
    for n in SIZES:
        even = Samples.of(SHAPES["normal"](generator(f"normal, {n}"), (runs, n)))
        usual = float(np.quantile(even.skew, 0.9))
        for name, draw in SHAPES.items():
            found = Samples.of(draw(generator(f"{name}, {n}"), (runs, n)))
            held = found.held()
            longer = _least_factor(found)
            calm = found.skew <= usual
            yield Line(
                name, n, float(held.mean()), float(calm[~held].mean()), longer, float(even.held(longer).mean()),
                float(calm.mean()), float(held[calm].mean()),
            )  # fmt: skip


def _least_factor(found: Samples) -> float:
    """The least factor at which so many samples hold the mean; 1 where they do as they are."""
    missed_above = found.held() | (found.needed() > 1)
    room = LEAST + float((~missed_above).mean())
    return max(1.0, float(np.quantile(found.needed(), min(1.0, room))))


def table(runs: int) -> str:
    """The lines in Markdown."""
    head = (
        "| values | n | coverage | of those that miss, no more skewed than 9 of 10 normal ones | "
        "upper part longer for 93% | normal values then | kept where more skewed ones are ruled out | their coverage |"
    )
    rows = [head, "| --- " * 8 + "|"]
    for line in lines(runs):
        longer = "-" if line.longer == 1 else f"by {100 * (line.longer - 1):.0f}%"
        rows.append(
            f"| {line.shape} | {line.n} | {100 * line.coverage:.1f}% | {100 * line.looks_normal:.0f}% | {longer} | "
            f"{100 * line.normal_then:.1f}% | {100 * line.kept:.0f}% | {100 * line.coverage_kept:.1f}% |"
        )
    return "\n".join(rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000, help="samples of each shape and size (default 20,000)")
    options = parser.parse_args()
    print(table(options.runs))


if __name__ == "__main__":
    main()
