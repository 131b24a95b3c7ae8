"""Coverage of intervals of few, skewed values: heavy tails, many zeros, a tenth of another kind.

    python benchmarks/coverage_skewed.py [--runs 1000] [--jobs 8] [--only mean]

Each line draws samples of a known mean and counts how often the 95 % interval holds it, of those that have one. Seeded.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

import numpy as np
from coverage_rows import Row, generator, markdown
from scipy.stats import norm

from lm_audit.stats import (
    Estimate,
    bootstrap_ci,
    bootstrap_two_sample,
    clustered_mean,
    mean_interval,
    roc_auc,
    share,
    studentised_difference,
    studentised_mean,
)

RESAMPLES = 599
Draw = Callable[[np.random.Generator, int], np.ndarray]
Trial = Callable[[np.random.Generator, int], tuple[Estimate, float]]

SHAPES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0),
    "lognormal, SD 1": (lambda rng, n: np.exp(rng.normal(size=n)), float(np.exp(0.5))),
    "lognormal, SD 1.5": (lambda rng, n: np.exp(1.5 * rng.normal(size=n)), float(np.exp(1.125))),
    "Student's t of 3": (lambda rng, n: rng.standard_t(3, n), 0.0),
    "zero in 70 %, else exponential": (lambda rng, n: (rng.random(n) < 0.3) * rng.exponential(1, n), 0.3),
    "beta of 0.3 and 3": (lambda rng, n: rng.beta(0.3, 3, n), 0.3 / 3.3),
    "a tenth at 5, SD 1": (lambda rng, n: np.where(rng.random(n) < 0.1, 5.0, 0.0) + rng.normal(size=n), 0.5),
    "whole numbers 0 to 3": (lambda rng, n: rng.integers(0, 4, n).astype(float), 1.5),
}


@dataclass(frozen=True)
class Design:
    """A line: the function that is asked, of what, and a trial that gives its interval and the truth."""

    method: str
    setting: str
    trial: Trial


def means() -> Iterator[Design]:
    """Independent values."""
    for shape in SHAPES:
        for n in (8, 10, 15, 40):

            def symmetric(
                rng: np.random.Generator, seed: int, shape: str = shape, n: int = n
            ) -> tuple[Estimate, float]:
                draw, truth = SHAPES[shape]
                return mean_interval(draw(rng, n), n_resamples=RESAMPLES, seed=seed), truth

            def equal_tails(
                rng: np.random.Generator, seed: int, shape: str = shape, n: int = n
            ) -> tuple[Estimate, float]:
                draw, truth = SHAPES[shape]
                return studentised_mean(draw(rng, n), n_resamples=RESAMPLES, seed=seed), truth

            yield Design("mean_interval", f"{n} values, {shape}", symmetric)
            yield Design("studentised_mean", f"{n} values, {shape}", equal_tails)


STATISTICS: dict[str, tuple[Callable[..., np.ndarray], dict[str, float]]] = {
    "standard deviation": (
        lambda x, axis=-1: x.std(axis=axis, ddof=1), {"normal": 1.0, "exponential": 1.0, "uniform": 12**-0.5}
    ),
    "quantile 0.9": (
        lambda x, axis=-1: np.quantile(x, 0.9, axis=axis), {"normal": 1.2816, "exponential": 2.3026, "uniform": 0.9}
    ),
    "range of the middle half": (
        lambda x, axis=-1: np.subtract(*np.quantile(x, (0.75, 0.25), axis=axis)),
        {"normal": 1.349, "exponential": 1.0986, "uniform": 0.5},
    ),
    "mean square": (
        lambda x, axis=-1: (x**2).mean(axis=axis), {"normal": 1.0, "exponential": 2.0, "uniform": 1 / 3}
    ),
}  # fmt: skip
"""Statistics of one's own, and their true values."""

OWN: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "uniform": lambda rng, n: rng.random(n),
}


def own_statistics() -> Iterator[Design]:
    """Any statistic of independent values, and of values in clusters of their own."""
    for name, (statistic, truths) in STATISTICS.items():
        for law, truth in truths.items():
            for n in (8, 15, 25, 60):
                for method in (None, "BCa"):

                    def asked(
                        rng: np.random.Generator,
                        seed: int,
                        law: str = law,
                        n: int = n,
                        method: str | None = method,
                        truth: float = truth,
                        statistic: Callable[..., np.ndarray] = statistic,
                    ) -> tuple[Estimate, float]:
                        values = OWN[law](rng, n)
                        return bootstrap_ci(values, statistic, method=method, n_resamples=RESAMPLES, seed=seed), truth

                    named = "bootstrap_ci" + (f" {method}" if method else "")
                    yield Design(named, f"{name} of {n} values, {law}", asked)


APART: dict[str, tuple[Callable[..., np.ndarray], float]] = {
    "difference of medians": (lambda m, c, axis=-1: np.median(m, axis=axis) - np.median(c, axis=axis), 0.0),
    "difference of quantiles 0.9": (
        lambda m, c, axis=-1: np.quantile(m, 0.9, axis=axis) - np.quantile(c, 0.9, axis=axis), 0.0
    ),
    "log of the ratio of spreads": (
        lambda m, c, axis=-1: np.log(m.std(axis=axis, ddof=1) / c.std(axis=axis, ddof=1)), 0.0
    ),
    "ratio of means": (lambda m, c, axis=-1: m.mean(axis=axis) / c.mean(axis=axis), 1.0),
}  # fmt: skip
"""Statistics of two samples of one law, and their true values."""


def own_of_two_samples() -> Iterator[Design]:
    """Any statistic of two independent samples."""
    for name, (statistic, truth) in APART.items():
        for law in ("normal around 5", "exponential"):
            for sizes in ((8, 8), (15, 15), (8, 50), (40, 40)):
                for method in (None, "percentile"):

                    def asked(
                        rng: np.random.Generator,
                        seed: int,
                        law: str = law,
                        sizes: tuple[int, int] = sizes,
                        method: str | None = method,
                        truth: float = truth,
                        statistic: Callable[..., np.ndarray] = statistic,
                    ) -> tuple[Estimate, float]:
                        draw = OWN[law.split()[0]]
                        members, controls = (5 * (law != "exponential") + draw(rng, n) for n in sizes)
                        found = bootstrap_two_sample(
                            members, controls, statistic, method=method, n_resamples=RESAMPLES, seed=seed
                        )
                        return found, truth

                    named = "bootstrap_two_sample" + (f" {method}" if method else "")
                    yield Design(named, f"{name} of {sizes[0]} and {sizes[1]} values, {law}", asked)


def sizes_of(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Clusters of 5, of 1 to 50, or all of 3 but one of 60."""
    if kind == "of 5":
        return np.full(count, 5)
    return rng.integers(1, 51, count) if kind == "of 1 to 50" else np.r_[np.full(count - 1, 3), 60]


def clusters() -> Iterator[Design]:
    """Values in clusters whose own parts have these shapes, and yes-no answers in clusters of nearly all or nothing."""
    for count in (6, 8, 10, 20, 50):
        for sizes in ("of 5", "of 1 to 50", "of 3, one of 60"):
            for shape in ("normal", "lognormal, SD 1", "a tenth at 5, SD 1", "Student's t of 3"):

                def mean(
                    rng: np.random.Generator, seed: int, shape: str = shape, count: int = count, sizes: str = sizes
                ) -> tuple[Estimate, float]:
                    draw, truth = SHAPES[shape]
                    labels = np.repeat(np.arange(count), sizes_of(sizes, count, rng))
                    return clustered_mean(draw(rng, count)[labels] + 0.3 * rng.normal(size=len(labels)), labels), truth

                yield Design("clustered_mean", f"{count} clusters {sizes}, {shape}", mean)
            for yes in (0.01, 0.05, 0.2):
                for alike in (0.2, 0.6):

                    def answers(
                        rng: np.random.Generator,
                        seed: int,
                        count: int = count,
                        sizes: str = sizes,
                        yes: float = yes,
                        alike: float = alike,
                    ) -> tuple[Estimate, float]:
                        together = 1 / alike - 1
                        labels = np.repeat(np.arange(count), sizes_of(sizes, count, rng))
                        rates = rng.beta(yes * together, (1 - yes) * together, count)
                        return share((rng.random(len(labels)) < rates[labels]).astype(float), labels), yes

                    yield Design("share", f"{count} clusters {sizes}, {yes:g} yes, correlation {alike:g}", answers)


def groups() -> Iterator[Design]:
    """Two groups of other sizes and spreads: difference of means, AUC."""
    for first, second in ((8, 8), (8, 200), (15, 200), (12, 40), (40, 8)):
        for ratio in (1.0, 3.0, 1 / 3):
            for shape in ("normal", "lognormal, SD 1", "a tenth at 5, SD 1", "Student's t of 3"):

                def difference(
                    rng: np.random.Generator,
                    seed: int,
                    shape: str = shape,
                    sizes: tuple[int, int] = (first, second),
                    ratio: float = ratio,
                ) -> tuple[Estimate, float]:
                    draw, truth = SHAPES[shape]
                    x, y = ratio * draw(rng, sizes[0]), draw(rng, sizes[1])
                    return studentised_difference(x, y, n_resamples=RESAMPLES, seed=seed).difference, (
                        ratio - 1
                    ) * truth

                setting = f"{first} against {second}, spreads {ratio:.2g} to 1, {shape}"
                yield Design("studentised_difference", setting, difference)
    for members, controls in ((8, 8), (8, 200), (15, 200), (200, 8), (24, 24)):
        for shift, spread in ((0.0, 1.0), (0.0, 3.0), (2.5, 1.0), (3.5, 1.0), (2.0, 3.0), (4.0, 0.3)):

            def area(
                rng: np.random.Generator,
                seed: int,
                sizes: tuple[int, int] = (members, controls),
                shift: float = shift,
                spread: float = spread,
            ) -> tuple[Estimate, float]:
                truth = float(norm.cdf(shift / np.hypot(1, spread)))
                return roc_auc(shift + spread * rng.normal(size=sizes[0]), rng.normal(size=sizes[1])), truth

            yield Design(
                "roc_auc", f"{members} members, {controls} controls, shift {shift:g}, SD {spread:g} to 1", area
            )


def designs() -> list[Design]:
    """All lines of the table."""
    return [*means(), *own_statistics(), *own_of_two_samples(), *clusters(), *groups()]


def measured(task: tuple[int, int]) -> Row:
    """One line: the share of intervals that held the truth."""
    number, runs = task
    design, held, known = designs()[number], 0, 0
    rng = generator(f"{design.method}, {design.setting}")
    for seed in range(runs):
        found, truth = design.trial(rng, seed)
        if found.low is not None and found.high is not None:
            known, held = known + 1, held + (found.low <= truth <= found.high)
    return Row(design.method, design.setting, 0.95, held / max(known, 1), known)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="samples of each design (default 1000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--only", default="", help="only methods or designs that hold this")
    options = parser.parse_args()
    chosen = [k for k, line in enumerate(designs()) if options.only in f"{line.method}, {line.setting}"]
    with ProcessPoolExecutor(options.jobs) as pool:
        print(markdown(list(pool.map(measured, [(number, options.runs) for number in chosen])), "coverage"))


if __name__ == "__main__":
    main()
