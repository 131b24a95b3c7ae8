"""Coverage of the leakage audit's intervals and false alarms of its tests, under the designs that the audit has.

    python benchmarks/coverage_leakage.py [--trials 4000] [--jobs 8]

Each line draws benchmarks of a known truth, asks the audit's own function, and counts how often its 95% interval holds
the truth (or its test rejects at 5% what is true). Seeded: the same trials give the same table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

from lm_audit.audits.leakage.averages import FileWeights, file_mean, mean_of, of_these_files
from lm_audit.audits.leakage.half_option.single_files import single_files
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import Item
from lm_audit.audits.leakage.signs import paired_sign_flip, published_place_test
from lm_audit.stats import Estimate

Trial = Callable[[np.random.Generator, int], bool | None]


@dataclass(frozen=True)
class Design:
    """A line of the table: what is tried, and a trial that says whether the truth was covered (or rejected)."""

    what: str
    detail: str
    target: str
    trial: Trial


def weights_of(names: Sequence[str], by_file: Mapping[str, int]) -> FileWeights:
    """Of questions that were drawn, given the file of each, and how many questions every file has."""
    items = tuple(Item(str(k), name, "q", ("a", "b", "c", "d")) for k, name in enumerate(names))
    whole, sizes = sum(by_file.values()), dict(by_file)
    return FileWeights.of(names, Benchmark("b", items, tuple(sizes), whole, whole, by_file=sizes))


def inside(estimate: Estimate, truth: float) -> bool | None:
    if estimate.low is None or estimate.high is None:
        return None
    return estimate.low <= truth <= estimate.high


def in_files(sizes: list[int]) -> list[str]:
    return [f"f{k}" for k, size in enumerate(sizes) for _ in range(size)]


def noise(kind: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, float]:
    """Values of questions and their true mean."""
    if kind == "differences":
        # Published order minus the mean of three others, of skewed scores.
        scores = rng.exponential(1.0, (n, 4))
        return scores[:, 0] - scores[:, 1:].mean(axis=1), 0.0
    if kind == "log-probability":
        # A byte's log-probability, mean over four options.
        return -rng.gamma(1.5, 1.0, (n, 4)).mean(axis=1), -1.5
    if kind == "similarity":
        return rng.beta(1.0, 3.0, (n, 4)).mean(axis=1), 0.25
    if kind == "hits":
        return rng.binomial(4, 0.1, n) / 4, 0.1
    return rng.integers(0, 24, n) / 23, 0.5  # places


KINDS = {
    "differences": {"kind": "differences"},
    "log-probability": {},
    "similarity": {"limits": (0.0, 1.0)},
    "hits": {"limits": (0.0, 1.0), "kind": "counts"},
    "places": {"limits": (0.0, 1.0)},
}


def of_questions(kind: str, n: int, files: int) -> Design:
    """A mean over n questions of one or a few files: true for more questions of the same files."""

    def trial(rng: np.random.Generator, seed: int) -> bool | None:
        values, truth = noise(kind, rng, n)
        names = in_files([n // files + (k < n % files) for k in range(files)])
        if files > 1 and kind in ("differences", "log-probability"):
            shift = rng.normal(0, 0.3 * values.std(), files)
            shifts = np.array([shift[int(name[1:])] for name in names])
            values, truth = values + shifts, truth + float(shifts.mean())
        return inside(mean_of(values, names, unit="", seed=seed, **KINDS[kind]), truth)  # type: ignore[arg-type]

    return Design(f"mean of {kind}", f"{n} questions of {files} file{'s' * (files > 1)}", "93 to 97 %", trial)


def of_files(sizes: list[int], spread: float, name: str) -> Design:
    """A mean over questions of many files, true for files in general."""

    def trial(rng: np.random.Generator, seed: int) -> bool | None:
        names = in_files(sizes)
        values = rng.normal(size=len(names)) + np.repeat(rng.normal(0, spread, len(sizes)), sizes)
        return inside(mean_of(values, names, unit="", seed=seed), 0.0)

    return Design("mean over files", f"{name}, file SD {spread:g}", "93 to 97 %", trial)


def hits_of_files(files: int, each: int, centre: float = 0.1, together: float = 2.0, uneven: float = 0.0) -> Design:
    """Shares of options hit, true for files in general.

    Files hit ``centre`` of their options on average, by a beta distribution whose parameters add up to ``together``: at
    2 and 0.1 a few files hold nearly all hits, at infinity all files are alike. File sizes are lognormal with an SD of
    ``uneven``.
    """

    def trial(rng: np.random.Generator, seed: int) -> bool | None:
        shares = np.full(files, centre)
        if np.isfinite(together):
            shares = rng.beta(centre * together, (1 - centre) * together, files)
        sizes = np.maximum(1, (each * np.exp(uneven * rng.normal(size=files))).astype(int))
        values = rng.binomial(4, np.repeat(shares, sizes)) / 4
        found = mean_of(values, in_files(sizes), unit="", seed=seed, limits=(0.0, 1.0), kind="counts")
        return inside(found, centre)

    what = f"{files} files of {each}" + f" times e to the {uneven:g}" * (uneven > 0)
    alike = f"a beta of {together:g}" if np.isfinite(together) else "all alike"
    return Design("hits over files", f"{what}, {centre:g} hit, files of {alike}", "at least 93 %", trial)


def held_by_files(kind: str, files: int, each: int, share: float, uneven: float = 0.0) -> Design:
    """A mean, or a paired difference, that ``share`` of all files hold: memory of whole files, beside what all show."""

    def trial(rng: np.random.Generator, seed: int) -> bool | None:
        sizes = np.maximum(1, (each * np.exp(uneven * rng.normal(size=files))).astype(int))
        held, names = np.repeat(rng.random(files) < share, sizes), in_files(sizes)
        n = len(names)
        printed = rng.binomial(4, np.where(held, 0.95, 0.1)) / 4
        if kind == "hits":
            found = mean_of(printed, names, unit="", seed=seed, limits=(0.0, 1.0), kind="counts")
            return inside(found, 0.1 + 0.85 * share)
        if kind == "order effect of hits":
            mixed = rng.binomial(12, np.where(held, 0.25, 0.1)) / 12
            found = mean_of(printed - mixed, names, unit="", seed=seed, limits=(-1.0, 1.0), kind="differences")
            return inside(found, 0.7 * share)
        # In nats a byte: what is known is certain in the printed order, and 0.9 in any other as of all files.
        other = np.minimum(0.0, -0.9 + 0.25 * rng.normal(size=n))
        effect = np.where(held, -0.05 - other, 0.35 * rng.normal(size=n))
        room = max(0.0, -float(other.mean()))
        found = mean_of(effect, names, unit="", seed=seed, kind="differences", unseen=(0.0, room))
        return inside(found, 0.85 * share)

    what = f"{files} files of {each}" + f" times e to the {uneven:g}" * (uneven > 0)
    return Design(f"{kind} over files", f"{what}, {share:g} of which hold all", "at least 93 %", trial)


OWN: dict[str, dict[str, Any]] = {
    "in nats": {"kind": "differences"},
    "of hits": {"kind": "differences", "limits": (-1.0, 1.0)},
    "of places": {"limits": (0.0, 1.0)},
}


def effect_of(kind: str, known: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The true mean of each file."""
    if kind == "in nats":
        return np.where(known, 0.85, shift)
    return np.where(known, 0.7, 0.0) if kind == "of hits" else np.where(known, 0.95, 0.5 + shift)


def effects(rng: np.random.Generator, kind: str, known: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Values of questions, whose files are ``known`` or not and have these ``means``."""
    n = len(means)
    if kind == "in nats":
        return np.asarray(means + np.where(known, 0.25, 0.35) * rng.normal(size=n))
    if kind == "of hits":
        printed = rng.binomial(4, np.where(known, 0.95, 0.1)) / 4
        return np.asarray(printed - rng.binomial(12, np.where(known, 0.25, 0.1)) / 12)
    centre = np.clip(means, 0.05, 0.95)
    return np.asarray(rng.beta(4 * centre, 4 * (1 - centre)))


def these_files(kind: str, files: int, each: int, held: float, uneven: float = 0.0, sampled: int = 0) -> Design:
    """What a verdict on a benchmark rests on: the mean over its own files, of which ``held`` hold the effect.

    Read whole, or ``sampled`` questions of it; files differ by an SD of 0.1 and sizes by a factor of e to the
    ``uneven``.
    """

    def trial(rng: np.random.Generator, seed: int) -> bool | None:
        sizes = np.maximum(1, (each * np.exp(uneven * rng.normal(size=files))).astype(int))
        known, shift = rng.permutation(files) < round(held * files), 0.1 * rng.normal(size=files)
        means = effect_of(kind, known, shift)
        truth = float(means @ sizes / sizes.sum())
        if sampled:
            # Few questions of a benchmark a hundred times as large.
            sizes = np.bincount(rng.choice(files, sampled, p=sizes / sizes.sum()), minlength=files)
        place = np.repeat(np.arange(files), sizes)
        names = [f"f{k}" for k in place]
        items = tuple(Item(str(k), name, "q", ("a", "b", "c", "d")) for k, name in enumerate(names))
        whole = Benchmark("b", items, tuple(set(names)), len(items), len(items) * (100 if sampled else 1))
        found = of_these_files(
            effects(rng, kind, known[place], means[place]), names, whole, unit="", seed=seed, **OWN[kind]
        )
        return None if found is None else inside(found, truth)

    what = f"{files} files of {each}" + f" times e to the {uneven:g}" * (uneven > 0)
    what += f", {sampled} questions drawn" * (sampled > 0)
    return Design(f"effect {kind}, these files", f"{what}, {held:g} of which hold all", "93 to 97 %", trial)


def place_of_files(files: int, each: int) -> Design:
    """`leakage.option_order.place` where files differ."""

    def trial(rng: np.random.Generator, seed: int) -> bool | None:
        centre = np.repeat(rng.uniform(0.2, 0.8, files), each)
        values = (rng.random(files * each) < centre) * 0.5 + rng.random(files * each) * 0.5
        names = in_files([each] * files)
        return inside(mean_of(values, names, unit="", seed=seed, limits=(0.0, 1.0)), 0.5)

    return Design("option_order.place", f"{files} files of {each}, files differ", "93 to 97 %", trial)


def published(
    files: int, each: int, scored: int, spread: float, empty: int = 0, centre: float = 0.3, uneven: float = 0.0
) -> Design:
    """`leakage.published.score` of a sample against the score of the whole set.

    Files hit ``centre`` of their options on average, with an SD of ``spread`` (1: a file is near all or nothing, by a
    beta distribution). File sizes are ``each`` over or times 2, or lognormal with an SD of ``uneven``.
    """

    def trial(rng: np.random.Generator, seed: int) -> bool | None:
        sizes = rng.integers(max(1, each // 2), 2 * each, files)
        if uneven:
            sizes = np.maximum(1, (each * np.exp(uneven * rng.normal(size=files))).astype(int))
        shares = np.clip(rng.normal(centre, spread, files), 0.02, 0.98)
        if spread == 1:
            shares = rng.beta(2 * centre, 2 * (1 - centre), files)
        where = np.repeat(np.arange(files), sizes)
        hits = rng.binomial(4, shares[where]).astype(float)
        truth = float(4 * shares.mean()) * files / (files + empty)
        if scored < len(where):
            truth = float(np.mean([hits[where == k].mean() for k in range(files)])) * files / (files + empty)
        drawn = np.sort(rng.permutation(len(where))[:scored])
        names = [f"f{where[k]}" for k in drawn]
        weights = weights_of(
            names, {f"f{k}": int(size) for k, size in enumerate(sizes)} | {f"e{k}": 0 for k in range(empty)}
        )
        return inside(file_mean(hits[drawn], names, weights, limits=(0.0, 4.0), seed=seed), truth)

    what = f"{scored} of about {files * each} questions of {files} files" + (f", {empty} empty" if empty else "")
    what += f", {centre:g} hit" * (centre != 0.3) + ", sizes by a factor of e" * (uneven == 1)
    spreads = "files all or nothing" if spread == 1 else f"file SD {spread:g}"
    return Design("published.score", f"{what}, {spreads}", "at least 93 %", trial)


def mitigation(files: int, each: int, scored: int, memorised: float, uneven: float) -> Design:
    """`leakage.published.mitigation` of a sample: of ``memorised`` questions all four options are hit as printed."""

    def trial(rng: np.random.Generator, seed: int) -> bool | None:
        sizes = rng.integers(each // 2, 2 * each, files)
        if uneven:
            sizes = np.maximum(1, (each * np.exp(uneven * rng.normal(size=files))).astype(int))
        where = np.repeat(np.arange(files), sizes)
        known = rng.random(len(where)) < memorised
        printed = np.where(known, 4, rng.binomial(4, 0.1, len(where)))
        lost = (printed - rng.binomial(4, np.where(known, 0.25, 0.1))).astype(float)
        truth = float((np.bincount(where, weights=lost) / sizes).mean())
        drawn = np.sort(rng.permutation(len(where))[:scored])
        names = [f"f{where[k]}" for k in drawn]
        weights = weights_of(names, {f"f{k}": int(size) for k, size in enumerate(sizes)})
        return inside(file_mean(lost[drawn], names, weights, limits=(-4.0, 4.0), seed=seed, kind="differences"), truth)

    what = f"{scored} of about {files * each} questions of {files} files" + ", sizes by a factor of e" * (uneven == 1)
    return Design("published.mitigation", f"{what}, {memorised:g} memorised", "at least 93 %", trial)


def sign_flips(n: int, kind: str) -> Design:
    def trial(rng: np.random.Generator, seed: int) -> bool:
        scores = rng.exponential(1.0, (n, 2)) if kind == "skewed" else rng.binomial(4, 0.2, (n, 2))
        p = paired_sign_flip(scores[:, 0] - scores[:, 1], n_resamples=999, seed=seed).value
        return p is not None and p <= 0.05

    return Design("sign flip rejects", f"{n} {kind} differences, no effect", "at most 5.5 %", trial)


def place_test(n: int, orders: int) -> Design:
    def trial(rng: np.random.Generator, seed: int) -> bool:
        scores = rng.exponential(1.0, (n, orders + 1)) + rng.normal(0, 2, (n, 1))
        p = published_place_test(scores.tolist(), n_resamples=999, seed=seed).value
        return p is not None and p <= 0.05

    return Design("place test rejects", f"{n} items, {orders} other orders, no effect", "at most 5.5 %", trial)


def themes(rows: int, run: int, swapped: bool) -> Design:
    """New questions, ``run`` in a row on one theme: the file is likelier in order than shuffled without any memory."""

    def trial(rng: np.random.Generator, seed: int) -> bool:
        theme = np.repeat(np.arange(-(-rows // run)), run)[:rows]
        own = rng.normal(0, 3, rows)
        # What a model gains of a neighbour: a theme in common, and how alike two rows happen to be.
        alike = rng.normal(0, 1.5, (rows, rows)) + 2.0 * (theme[:, None] == theme)

        def total(order: np.ndarray) -> float:
            return float(own[order].sum() + alike[order[:-1], order[1:]].sum())

        if swapped:
            pairs = np.arange(rows - rows % 2).reshape(-1, 2)
            p = paired_sign_flip([total(pair) - total(pair[::-1]) for pair in pairs], seed=seed).value
        else:
            from lm_audit.audits.leakage.orders.rows import sharded_test

            parts = np.array_split(np.arange(rows), 4)
            shuffled = [[total(rng.permutation(part)) for _ in range(19)] for part in parts]
            p = sharded_test([total(part) for part in parts], shuffled).fisher.value
        return p is not None and p <= 0.05

    name = "row_order.swap_gain.p rejects" if swapped else "row_order.p_fisher rejects (no claim is made by it)"
    return Design(name, f"{rows} new rows, {run} in a row on one theme", "at most 5.5 %" if swapped else "", trial)


def single(files: int, each: int, nats: float) -> Design:
    """Files of which one was seen whole, by ``nats`` a byte, or none: is a file named, and rightly."""

    def trial(rng: np.random.Generator, seed: int) -> bool:
        scores = rng.normal(-2, 0.3, (files * each, 4))
        scores[:each, 0] += nats
        names = [f"f{k // each}" for k in range(len(scores))]

        def p_of(mask: Sequence[bool]) -> float | None:
            return published_place_test(scores[np.asarray(mask)].tolist(), n_resamples=9999, seed=seed).value

        found = single_files(scores[:, 0] - scores[:, 1:].mean(axis=1), names, p_of, unit="")
        assert found is not None and found.largest.low is not None
        named = found.remembered if found.largest.low > 0 else ()
        return named == ("f0",) if nats else bool(named)

    what = f"the one file that holds {nats:g} nats a byte is named alone" if nats else "a file named, none remembered"
    return Design(f"single files: {what}", f"{files} files of {each}", "" if nats else "at most 5.5 %", trial)


def designs() -> Iterator[Design]:
    """All lines of the table."""
    for kind in KINDS:
        for n, files in ((8, 1), (12, 3), (24, 3), (60, 5)):
            yield of_questions(kind, n, files)
    for spread in (0.0, 0.3, 1.0):
        yield of_files([4] * 6, spread, "6 files of 4")
        yield of_files([2, 3, 4, 5, 6, 30], spread, "6 files of 2 to 30")
        yield of_files([1] * 10 + [2], spread, "12 questions of 11 files")
        yield of_files([3, 4, 5, 6, 7, 8, 9, 20], spread, "8 files of 3 to 20")
    for files, each in ((6, 4), (7, 12), (20, 3)):
        yield place_of_files(files, each)
    for spread in (0.0, 0.15, 0.3):
        yield published(57, 100, 12, spread)
        yield published(57, 100, 200, spread)
        yield published(57, 100, 200, spread, empty=3)
        yield published(10, 30, 100, spread)
        yield published(3, 12, 10_000, spread)
        yield published(6, 4, 10_000, spread)
    for n in (8, 24):
        yield sign_flips(n, "skewed")
        yield sign_flips(n, "counted")
        yield place_test(n, 1)
        yield place_test(n, 3)
    for run in (1, 5):
        yield themes(40, run, swapped=True)
        yield themes(40, run, swapped=False)
    for scored in (8, 12, 24, 60):
        for centre, spread in ((0.05, 0.0), (0.1, 1.0), (0.3, 1.0), (0.95, 0.0)):
            for uneven in (0.0, 1.0):
                yield published(57, 100, scored, spread, centre=centre, uneven=uneven)
    for files, each in ((3, 12), (6, 4), (20, 5)):
        for centre, spread in ((0.05, 0.0), (0.1, 1.0), (0.3, 1.0)):
            yield published(files, each, 10_000, spread, centre=centre)
    for scored in (8, 12, 24, 60):
        for memorised in (0.0, 0.1, 0.5):
            for uneven in (0.0, 1.0):
                yield mitigation(57, 100, scored, memorised, uneven)
    for files, each in ((12, 3), (20, 5)):
        yield hits_of_files(files, each)
    for files, each, uneven in ((6, 4, 0.0), (8, 5, 0.0), (12, 5, 0.7), (8, 10, 1.0), (20, 3, 0.5), (57, 2, 0.0)):
        for centre, together in ((0.05, 2.0), (0.1, 2.0), (0.2, 2.0), (0.9, 2.0), (0.3, 2.0), (0.3, 1.0), (0.05, 10.0)):
            yield hits_of_files(files, each, centre, together, uneven)
        for centre, together in ((0.2, 10.0), (0.3, 20.0), (0.1, np.inf), (0.3, np.inf)):
            yield hits_of_files(files, each, centre, together, uneven)
    for kind in ("hits", "order effect of hits", "order effect in nats"):
        for files, each, uneven in ((6, 4, 0.0), (8, 5, 0.0), (12, 5, 0.7), (8, 10, 1.0), (24, 5, 0.0), (57, 4, 0.5)):
            for share in (0.0, 0.05, 0.1, 0.3, 0.9):
                yield held_by_files(kind, files, each, share, uneven)
    for kind in OWN:
        for files, each, uneven, sampled in ((6, 4, 0.0, 0), (12, 5, 0.7, 0), (24, 5, 0.0, 0), (57, 10, 0.7, 60)):
            for held in (0.0, 0.1, 0.5):
                yield these_files(kind, files, each, held, uneven, sampled)
    for files, each in ((12, 8), (57, 10), (57, 40)):
        for nats in (0.0, 0.3, 0.6):
            yield single(files, each, nats)


def measured(index: int, trials: int) -> tuple[float, int]:
    """The share of trials of a line that held, and how many gave an answer."""
    design = list(designs())[index]
    rng = np.random.default_rng([7, index])
    answers = [design.trial(rng, seed) for seed in range(trials)]
    known = [bool(answer) for answer in answers if answer is not None]
    return (float(np.mean(known)) if known else float("nan")), len(known)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="only figures whose name holds this")
    options = parser.parse_args()
    chosen = [number for number, line in enumerate(designs()) if options.only in line.what]
    lines = [line for line in designs() if options.only in line.what]
    with ProcessPoolExecutor(options.jobs) as pool:
        found = list(pool.map(measured, chosen, [options.trials] * len(lines)))
    print("| figure | design | measured | goal |\n| --- | --- | --- | --- |")
    for line, (share, known) in zip(lines, found, strict=True):
        partly = "" if known == options.trials else f" ({known} of {options.trials} estimable)"
        error = 100 * (share * (1 - share) / max(known, 1)) ** 0.5
        print(f"| {line.what} | {line.detail} | {100 * share:.1f} % ± {error:.1f}{partly} | {line.target} |")


if __name__ == "__main__":
    main()
