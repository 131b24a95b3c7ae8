"""How often the privacy audit's intervals hold the truth, and how often its tests and controls are wrong.

    python benchmarks/coverage_privacy.py --runs 2000 --jobs 16     # prints the tables of docs/privacy.md
    python benchmarks/coverage_privacy.py --runs 200                # a quick look on one core

The designs are those of the audit: 8, 15 or 50 members, 200 or 1,000 twins, changes whose spreads differ as they do in
real runs (2.6 at the most), members of several tiers, canaries near the cap. Same seed, same numbers.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

import numpy as np
import pandas as pd
from coverage_rows import Limits
from scipy.special import ndtri

from lm_audit.audits.privacy.attribution.changes import Frames, Resampling, transition_rows
from lm_audit.audits.privacy.measure.blind import noticed_auc, separation
from lm_audit.audits.privacy.statistics import epsilon_of_scores
from lm_audit.stats import bounded_mean, mean_exposure, roc_auc, studentised_difference, tpr_at_fpr
from lm_audit.stats.ranking.average_precision import pr_interval
from lm_audit.stats.ranking.intervals import expected_average_precision

SEED, RESAMPLES, TRUTH_RUNS = 20260, 599, 4000
SIZES = ((8, 200), (15, 200), (50, 200), (50, 1000))
RANKED = (*SIZES, (40, 8), (100, 100), (200, 50), (200, 200))
FEW = ((8, 200), (10, 200), (12, 200), (15, 200), (24, 200), (50, 200))


@dataclass(frozen=True)
class Design:
    """One line of a table: what is measured, under which design, how often it should happen, and one repetition."""

    figure: str
    setting: str
    wanted: str
    once: Callable[[np.random.Generator], bool | None]


@dataclass(frozen=True)
class Spread:
    """A shape of unit spread and mean 0."""

    name: str

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        if self.name == "skewed":
            return rng.exponential(size=n) - 1
        if self.name == "lognormal":
            return np.asarray((np.exp(rng.normal(size=n)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e))
        if self.name == "tiers":
            return np.asarray((rng.choice([-1.2, 0.0, 1.2], n) + 0.3 * rng.normal(size=n)) / 1.025)
        return rng.normal(size=n)


Pair = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
"""Draws members and twins."""


def holds(estimate: Limits, truth: float) -> bool | None:
    """Whether the interval holds the truth; None where there is none."""
    return None if estimate.low is None or estimate.high is None else bool(estimate.low <= truth <= estimate.high)


def differences() -> Iterator[Design]:
    for n, m in SIZES:
        for shape in ("normal", "tiers", "skewed"):
            for ratio in (0.7, 1.0, 2.6):

                def once(
                    rng: np.random.Generator, n: int = n, m: int = m, shape: str = shape, ratio: float = ratio
                ) -> bool | None:
                    member = ratio * Spread(shape).draw(rng, n)
                    found = studentised_difference(
                        member, rng.normal(size=m), n_resamples=RESAMPLES, seed=int(rng.integers(2**31))
                    )
                    return holds(found.difference, 0.0)

                yield Design("difference in differences", f"{n} / {m}, {shape}, spread x {ratio}", "95%", once)


def exposures() -> Iterator[Design]:
    for n, m in RANKED:
        for shift, spread in ((0.0, 1.0), (1.5, 1.0), (2.5, 1.0), (3.0, 0.5), (3.0, 1.0), (4.5, 1.0)):

            def draw(
                rng: np.random.Generator, n: int = n, m: int = m, shift: float = shift, spread: float = spread
            ) -> tuple[np.ndarray, np.ndarray]:
                return -rng.normal(shift, spread, n), -rng.normal(size=m)

            truth = mean_over(draw, lambda a, b: mean_bits(a, b), f"exposure {n} {m} {shift} {spread}")

            def once(rng: np.random.Generator, draw: Pair = draw, truth: float = truth) -> bool | None:
                return holds(mean_exposure(*draw(rng), n_resamples=RESAMPLES, seed=int(rng.integers(2**31))), truth)

            where = f"{n} canaries at {shift} +- {spread} twin spreads, {m} twins (mean {truth:.1f} bits)"
            yield Design("mean exposure", where, ">= 93%", once)


def mean_bits(canaries: np.ndarray, twins: np.ndarray) -> float:
    ranks = 1 + np.searchsorted(np.sort(twins), canaries, "right")
    return float(np.mean(np.log2(len(twins) + 1) - np.log2(ranks)))


def mean_over(draw: Pair, statistic: Callable[[np.ndarray, np.ndarray], float], name: str) -> float:
    """The mean of a statistic over fresh samples: what an interval has to hold."""
    rng = np.random.default_rng([SEED, 1, zlib.crc32(name.encode())])
    return float(np.mean([statistic(*draw(rng)) for _ in range(TRUTH_RUNS)]))


def shares() -> Iterator[Design]:
    for n in (8, 15, 50):
        for share in (0.02, 0.1, 0.5):

            def once(rng: np.random.Generator, n: int = n, share: float = share) -> bool | None:
                rates = np.where(rng.random(n) < 0.5, 0.0, min(1.0, 2 * share))
                values = rng.binomial(4, rates) / 4
                return holds(bounded_mean(values, n_resamples=RESAMPLES, seed=int(rng.integers(2**31))), share)

            yield Design(
                "sampled extraction", f"{n} canaries x 4 samples, half of them never, {share:.0%}", ">= 93%", once
            )


def rankings() -> Iterator[Design]:
    for n, m in SIZES:
        for auc in (0.5, 0.7, 0.9, 0.98):
            shift = float(np.sqrt(2) * ndtri(auc))

            def draw(
                rng: np.random.Generator, n: int = n, m: int = m, shift: float = shift
            ) -> tuple[np.ndarray, np.ndarray]:
                return rng.normal(shift, 1, n), rng.normal(size=m)

            def once_auc(rng: np.random.Generator, draw: Pair = draw, auc: float = auc) -> bool | None:
                return holds(roc_auc(*draw(rng)), auc)

            yield Design("ROC AUC", f"{n} / {m}, {auc}", "95%", once_auc)
            if n >= 15:
                truth = mean_over(draw, average_precision, f"ap {n} {m} {auc}")

                def once(rng: np.random.Generator, draw: Pair = draw, truth: float = truth) -> bool | None:
                    return holds(pr_interval(*draw(rng), n_resamples=199, seed=int(rng.integers(2**31))), truth)

                yield Design("average precision", f"{n} / {m}, AUC {auc}", "95%", once)
            limit = float(ndtri(0.99))
            rate = float(1 - ndtr(limit - shift))

            def once_tpr(rng: np.random.Generator, draw: Pair = draw, rate: float = rate) -> bool | None:
                members, twins = draw(rng)
                found = tpr_at_fpr(members, twins, "0.01")
                return holds(found, rate)

            yield Design("TPR at 1% FPR", f"{n} / {m}, AUC {auc} (true rate {rate:.2f})", ">= 93%", once_tpr)


def ndtr(value: float) -> float:
    from scipy.special import ndtr as normal

    return float(normal(value))


def average_precision(members: np.ndarray, twins: np.ndarray) -> float:
    from lm_audit.stats.ranking.scores import average_precision_of

    return float(average_precision_of(members, twins))


def tests() -> Iterator[Design]:
    for ratio in (0.7, 1.0, 2.6, 3.0):

        def once(rng: np.random.Generator, ratio: float = ratio) -> bool | None:
            found = studentised_difference(
                ratio * rng.normal(size=15), rng.normal(size=200), n_resamples=RESAMPLES, seed=int(rng.integers(2**31))
            )
            return found.p.value is not None and found.p.value < 0.05

        yield Design("did.p below 0.05, no effect", f"15 / 200, spread x {ratio}", "<= 5.5%", once)
    for epsilon in (0.5, 1.0, 2.0):

        def once_epsilon(rng: np.random.Generator, epsilon: float = epsilon) -> bool | None:
            right = 1 / (1 + np.exp(-epsilon))
            included = rng.random(100) < 0.5
            said = np.where(rng.random(100) < right, included, ~included)
            bound = epsilon_of_scores(said + 1e-3 * rng.random(100), included).value
            return bound is not None and bound > epsilon

        yield Design("epsilon bound above the truth", f"100 coins, epsilon {epsilon}", "<= 5%", once_epsilon)
    for n, m in (*SIZES, (75, 1000), (200, 200)):
        noticed = noticed_auc(n, m)
        assert noticed is not None
        shift = float(np.sqrt(2) * ndtri(noticed))

        def refused(rng: np.random.Generator, n: int = n, m: int = m, shift: float = 0.0) -> bool:
            return separation(rng.normal(shift, 1, n), rng.normal(size=m)).shown

        yield Design(
            "blind baseline refused, base blind",
            f"{n} / {m}",
            "<= 0.1%",
            refused,
        )
        yield Design(
            "blind baseline refused, base not blind",
            f"{n} / {m}, AUC {noticed:.3f}",
            ">= 99%",
            partial(refused, shift=shift),
        )


def heavy_tails() -> Iterator[Design]:
    for n, m in FEW:
        for ratio in (1.0, 2.6):

            def once(rng: np.random.Generator, n: int = n, m: int = m, ratio: float = ratio) -> bool | None:
                member = ratio * Spread("lognormal").draw(rng, n)
                found = studentised_difference(
                    member, rng.normal(size=m), n_resamples=RESAMPLES, seed=int(rng.integers(2**31))
                )
                return holds(found.difference, 0.0)

            yield Design("difference in differences", f"{n} / {m}, lognormal, spread x {ratio}", ">= 93%", once)


def nothing_there() -> Iterator[Design]:
    """What must not be said where members are like their twins."""
    for n, m in ((15, 200), (50, 200)):
        chance = expected_average_precision(n, n + m)

        def above(rng: np.random.Generator, n: int = n, m: int = m, chance: float = chance) -> bool | None:
            found = pr_interval(rng.normal(size=n), rng.normal(size=m), n_resamples=199, seed=int(rng.integers(2**31)))
            return None if found.low is None else bool(found.low > chance)

        yield Design("average precision shown above chance, members like twins", f"{n} / {m}", "<= 5.5%", above)
        for shift in (-1.0, 1.0, 3.0):

            def leaks(rng: np.random.Generator, n: int = n, m: int = m, shift: float = shift) -> bool:
                before, after = (stage(rng, n, m) for _ in range(2))
                for table in (after.members, after.twins):
                    table["span_mean_logprob"] += shift
                rows = transition_rows("Base_to_SFT", before, after, Resampling(int(rng.integers(2**31)), RESAMPLES))
                paired = next(row for row in rows if row["metric"] == "secret_logprob")
                return bool(paired["significant"])

            yield Design("paired row significant, both shift alike", f"{n} / {m}, {shift:+}", "<= 5.5%", leaks)
    for n in (30, 100, 400):

        def equal(rng: np.random.Generator, n: int = n) -> bool:
            bound = epsilon_of_scores(np.zeros(n), rng.random(n) < 0.5).value
            return bound is not None and bound > 0

        yield Design("epsilon above 0, all scores equal", f"{n} coins", "never", equal)


def stage(rng: np.random.Generator, members: int, twins: int) -> Frames:
    """Scores of one stage, drawn alike for members and twins."""

    def rows(n: int) -> pd.DataFrame:
        return pd.DataFrame({"span_mean_logprob": rng.normal(-3, 1, n)})

    return Frames(rows(members), rows(twins), pd.DataFrame())


PARTS = (differences, exposures, shares, rankings, tests, heavy_tails, nothing_there)


def designs() -> list[Design]:
    """Every line, in order."""
    return [design for part in PARTS for design in part()]


def count(job: tuple[int, int, int]) -> tuple[int, int]:
    """(yes, answers) of some repetitions of one design."""
    number, start, runs = job
    design = designs_cached()[number]
    answers = [design.once(np.random.default_rng([SEED, number, run])) for run in range(start, start + runs)]
    known = [answer for answer in answers if answer is not None]
    return sum(map(bool, known)), len(known)


_CACHE: list[Design] = []


def designs_cached() -> list[Design]:
    if not _CACHE:
        _CACHE.extend(designs())
    return _CACHE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="repetitions of each design (default 2000)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="lines whose figure or design holds TEXT")
    options = parser.parse_args()
    lines = designs_cached()
    chosen = [i for i, line in enumerate(lines) if options.only in f"{line.figure}, {line.setting}"]
    step = max(1, options.runs // max(1, options.jobs))
    jobs = [(i, s, min(step, options.runs - s)) for i in chosen for s in range(0, options.runs, step)]
    if options.jobs > 1:
        with ProcessPoolExecutor(options.jobs) as pool:
            answers = list(pool.map(count, jobs, chunksize=1))
    else:
        answers = [count(job) for job in jobs]
    print(f"Seed {SEED}, {options.runs} repetitions a line.\n")
    print("| figure | design | wanted | measured |\n| --- | --- | --- | --- |")
    for number in chosen:
        design = lines[number]
        parts = [answer for job, answer in zip(jobs, answers, strict=True) if job[0] == number]
        yes, known = (sum(part[i] for part in parts) for i in (0, 1))
        rate = f"{100 * yes / known:.1f}%" if known else "no interval"
        absent = f" (none in {options.runs - known})" if 0 < known < options.runs else ""
        print(f"| {design.figure} | {design.setting} | {design.wanted} | {rate}{absent} |")


if __name__ == "__main__":
    main()
