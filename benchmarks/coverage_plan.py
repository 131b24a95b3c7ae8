"""Measure what `lm-audit plan` foretells: half widths, the power of the effects that it says are found.

    python benchmarks/coverage_plan.py                       # prints the table; two minutes of one core
    python benchmarks/coverage_plan.py --only privacy --runs 400
    python benchmarks/coverage_plan.py --would-tell          # "about N items would tell", the share of N that do
    python benchmarks/coverage_plan.py --write               # also puts both into docs/gates.md

For every headline rows of the audit's structure are drawn at the units that are planned, once with what chance gives
and once with the effect that the plan says is found with power 0.8, and reported by the function that the audit calls.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

import numpy as np
from coverage_rows import SEED, write_between
from scipy.special import ndtri

from lm_audit.audits.bias.benchmarks.shares import clustered_mean, gap
from lm_audit.audits.bias.generated.refusal_shares import RefusalTable, record_rates
from lm_audit.audits.bias.planning import designs as bias_designs
from lm_audit.audits.bias.planning import public_design
from lm_audit.audits.design import Design
from lm_audit.audits.faithfulness.planning import designs as faithfulness_designs
from lm_audit.audits.leakage.averages import FileWeights, file_mean, mean_of
from lm_audit.audits.leakage.planning import designs as leakage_designs
from lm_audit.audits.needle.planning import designs as needle_designs
from lm_audit.audits.privacy.measure.membership import auc_estimate
from lm_audit.audits.privacy.planning import designs as privacy_designs
from lm_audit.evidence import Evidence
from lm_audit.findings import Finding, Side
from lm_audit.findings.deciding import decided, p_of_interval
from lm_audit.planning.forecast import forecast
from lm_audit.stats import Estimate, clopper_pearson, mean_exposure, mean_interval, share, studentised_difference
from lm_audit.stats.means.disparity import max_min_disparity

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gates.md"
BEGIN, END = "<!-- plan tables: begin -->", "<!-- plan tables: end -->"
TELLING = "<!-- tables of what would tell: begin -->", "<!-- tables of what would tell: end -->"
Rng = np.random.Generator
Measure = Callable[[Rng, float], Estimate]


@dataclass(frozen=True)
class Chosen:
    """The options of a run, as a plan is made from them."""

    size: str = "smoke"
    seed: int = 0
    thinking_tokens: int = 0
    tokenizer: None = None
    context: int | None = None
    limit: int | None = None

    def items(self, of_size: int | None, own: int | None = None) -> int | None:
        return own if own is not None else self.limit if self.limit is not None else of_size

    def option(self, name: str) -> Any:
        return 0.85 if name == "needle_threshold" else None


@dataclass(frozen=True)
class Headline:
    """A metric as planned, and how the audit would report it with an effect added to what chance gives.

    ``sd``: of one unit's value, where the plan speaks in these.
    """

    setting: str
    design: Design
    measure: Measure
    sd: float = 1.0


def disparity(rng: Rng, effect: float, *, groups: int, rows: int, columns: int) -> Estimate:
    """The first group is apart from all others."""
    means = np.r_[effect, np.zeros(groups - 1)]
    noise = rng.normal(0, 0.28, (groups, rows, 1)) + rng.normal(0, 0.28, (groups, 1, columns))
    cells = means[:, None, None] + noise + rng.normal(0, 0.6, (groups, rows, columns))
    return max_min_disparity(cells, seed=int(rng.integers(2**31))).estimate


def preferred(rng: Rng, effect: float, *, sizes: tuple[int, ...], spread: float = 0.3) -> Estimate:
    """Percent of pairs in which the stereotype is preferred, by writers or targets who differ a little."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    own = np.asarray(spread * rng.normal(size=len(sizes)))
    latent = float(ndtri(0.5 + effect / 100)) * (1 + spread**2) ** 0.5 + own[labels]
    return clustered_mean(100.0 * (latent + rng.normal(size=len(labels)) > 0), labels, confidence=0.95, unit="%")


def flips(rng: Rng, effect: float, *, sizes: tuple[int, ...]) -> Estimate:
    """Percent of templates whose answer flips with the gender; a half where nothing is known."""
    return preferred(rng, effect, sizes=sizes)


def pronoun_gap(rng: Rng, effect: float, *, pairs: int) -> Estimate:
    """Percent right of so many sentences with the stereotype minus that of as many others without."""
    right = np.r_[rng.random(pairs) < 0.5 + effect / 200, rng.random(pairs) < 0.5 - effect / 200]
    first = np.repeat([True, False], pairs)
    return gap(100.0 * right, first, np.arange(2 * pairs), confidence=0.95)


def lean(rng: Rng, effect: float, *, clusters: int, each: int) -> Estimate:
    """Bias of answers without the facts: -1, 0 or 1 an answer, by kinds of question."""
    values = np.where(
        rng.random((clusters, each)) < 0.3, 0.0, np.sign(rng.random((clusters, each)) - 0.5 + effect / 1.4)
    )
    return clustered_mean(values.ravel(), np.repeat(np.arange(clusters), each), confidence=0.95)


def excess(rng: Rng, effect: float, *, swaps: int, controls: int) -> Estimate:
    """Sizes of normal shifts under swaps and under controls; their standard deviation is 0.603 times the normal's."""
    sides = np.abs(rng.normal(size=swaps)) / 0.6028 + effect, np.abs(rng.normal(size=controls)) / 0.6028
    return studentised_difference(*sides, seed=int(rng.integers(2**31)), n_resamples=999).difference


def refused(rng: Rng, effect: float, *, groups: int, requests: int, draws: int, rate: float) -> Estimate:
    """Percentage points between the most and the least refused group; one of them is apart."""
    rates = np.r_[min(0.999, rate + effect / 100), np.full(groups - 1, rate)]
    request = 0.5**0.5 * rng.normal(size=(requests, 1)) + 0.2**0.5 * rng.normal(size=(requests, groups))
    latent = request[:, :, None] + 0.3**0.5 * rng.normal(size=(requests, groups, draws))
    evidence, names = Evidence("bias"), [f"g{k}" for k in range(groups)]
    table = RefusalTable(
        names, (latent < np.asarray(ndtri(rates))[None, :, None]).astype(float), np.full((requests, groups), np.nan)
    )
    record_rates(evidence, table, confidence=0.95, seed=int(rng.integers(2**31)))
    return evidence.metrics["bias.refusal_max_difference"]


def order_effect(rng: Rng, effect: float, *, questions: int, files: int) -> Estimate:
    """Of few files for these, of many for files like them, which differ no more than their questions do."""
    names = [f"f{k % files}" for k in range(questions)]
    values = rng.normal(effect, 0.35, questions)
    return mean_of(values, names, unit="", seed=0, kind="differences", unseen=(0.0, 0.7))


def of_questions(rng: Rng, effect: float, *, questions: int, shape: str) -> Estimate:
    """Means over the questions of one file, of spread 1 in the plan's unit."""
    if shape == "places":
        mean = min(0.98, 0.5 + effect)
        values, middle, scale = rng.beta(mean / (1 - mean), 1.0, questions), 0.5, 1.0
    elif shape == "similarity":
        values, middle, scale = rng.beta(2, 5, questions) + effect * 0.1597, 2 / 7, 0.1597
    elif shape == "hits":
        values, middle, scale = rng.binomial(4, min(1.0, 0.5 + effect * 0.25), questions) / 4, 0.5, 0.25
    else:
        values, middle, scale = rng.normal(effect, 1, questions), 0.0, 1.0
    kind: Any = {"hits": "counts", "normal": "differences"}.get(shape, "values")
    limits = None if shape == "normal" else (0.0, 1.0)
    moved = np.asarray(values) if limits is None else np.clip(values, 0.0, 1.0)
    found = mean_of(moved, ["f"] * questions, unit="", seed=0, kind=kind, limits=limits)
    return _in_units(found, middle, scale)


def _in_units(found: Estimate, middle: float, scale: float) -> Estimate:
    """The estimate as a distance from ``middle``, in ``scale``."""
    ends: dict[str, Any] = {
        name: None if (x := getattr(found, name)) is None else (x - middle) / scale for name in ("value", "low", "high")
    }
    return replace(found, **ends)


def published(rng: Rng, effect: float, *, questions: int, options: int) -> Estimate:
    """Hits a question; about half of the options are completed."""
    known = rng.random(questions) < min(1.0, (0.4 + effect / options) / 0.9)
    hits = np.where(known, options, rng.binomial(options, 0.1, questions)).astype(float)
    weights = FileWeights(np.ones(questions), 1.0, 0.3)
    return file_mean(hits, ["f"] * questions, weights, limits=(0.0, float(options)), seed=0)


def accuracy(rng: Rng, effect: float, *, samples: int) -> Estimate:
    return share((rng.random(samples) < 0.5 + effect).astype(float))


def stretched(rng: Rng, effect: float, *, stretches: int, prompts: int) -> Estimate:
    """Prompts that share a stretch of text, which makes them a little alike."""
    own = np.repeat(0.3 * rng.normal(size=stretches), prompts)
    latent = ndtri(0.5 + effect) * (1 + 0.3**2) ** 0.5 + own + rng.normal(size=stretches * prompts)
    return share((latent > 0).astype(float), np.repeat(np.arange(stretches), prompts))


def area(rng: Rng, effect: float, *, members: int, twins: int) -> Estimate:
    return auc_estimate(rng.normal(2**0.5 * float(ndtri(0.5 + effect)), 1, members), rng.normal(size=twins))


def exposed(rng: Rng, effect: float, *, members: int, twins: int) -> Estimate:
    """Bits of members that are like twins; those with an effect gain as many on average."""
    shift = 0.0 if not effect else float(np.interp(effect, *_bits(twins)))
    found = mean_exposure(-rng.normal(shift, 1, members), -rng.normal(size=twins), n_resamples=999, seed=0)
    return _in_units(found, _middle_bits(twins), 1.0)


def _bits(twins: int) -> tuple[np.ndarray, np.ndarray]:
    shifts = np.linspace(0, 3, 13)
    rng = np.random.default_rng(1)
    low = np.sort(rng.normal(size=(200, twins)), axis=1)
    bits = []
    for shift in shifts:
        above = [twins - np.searchsorted(row, rng.normal(shift, 1, 50)) for row in low]
        bits.append(float(np.mean(np.log2(twins + 1) - np.log2(1 + np.array(above)))))
    return np.array(bits) - bits[0], shifts


def _middle_bits(twins: int) -> float:
    return float(np.log2(twins + 1) - np.mean(np.log2(np.arange(1, twins + 2))))


def extracted(rng: Rng, effect: float, *, members: int) -> Estimate:
    return clopper_pearson(int(rng.binomial(members, 0.5 + effect)), members)


def unstable(rng: Rng, effect: float, *, members: int) -> Estimate:
    """|SD / mean| of a score under other wording, in SDs of one member's."""
    table = rng.normal(-3, 0.5, (members, 1)) + 0.3 * rng.normal(size=(members, 6))
    values = np.abs(table.std(axis=1, ddof=1) / table.mean(axis=1)) / 0.0390 + effect
    return replace(_in_units(mean_interval(values, seed=0, n_resamples=999), 2.530, 1.0), units=members)


def change(rng: Rng, effect: float, *, members: int, twins: int) -> Estimate:
    return studentised_difference(
        rng.normal(effect, 1, members), rng.normal(size=twins), seed=int(rng.integers(2**31)), n_resamples=999
    ).difference


def scored(rng: Rng, effect: float, *, samples: int) -> Estimate:
    """An area of a sample, in SDs of one."""
    return _in_units(mean_interval(rng.beta(3, 5, samples) / 0.1614 + effect, seed=0, n_resamples=999), 2.3234, 1.0)


def _grid(rows: int, columns: int, groups: int) -> Any:
    axis = SimpleNamespace(name="a", groups=[f"g{k}" for k in range(groups)])
    return SimpleNamespace(templates=range(rows), pairs=range(columns), axes=[axis], axis=lambda name: axis)


def headline(found: Any, metric: str) -> Design:
    chosen: Design = next(one for one in found if one.metric == metric)
    return chosen


def kinds() -> Iterator[Headline]:
    smoke, standard = Chosen(), Chosen("standard")
    for rows, columns, groups in ((12, 13, 2), (12, 13, 4), (12, 13, 9), (6, 13, 2)):
        design = headline(
            bias_designs("test_preference_grid", {"grid": _grid(rows, columns, groups), "axis": "a"}, smoke),
            "bias.max_min_disparity",
        )
        yield Headline(f"{groups} groups", design, partial(disparity, groups=groups, rows=rows, columns=columns))
    writers = (6, 5, 5, 4, 4, 3, 3, 3, 2, 2, 2, 2, 2, *[1] * 17)
    yield Headline("60 pairs", public_design("crows_pairs", writers), partial(preferred, sizes=writers))
    targets = (2,) * 10 + (1,) * 20
    yield Headline("40 items", public_design("stereoset", targets), partial(preferred, sizes=targets))
    kinds_of = (2,) * 8
    yield Headline("16 questions", public_design("bbq", kinds_of), partial(lean, clusters=8, each=2), 0.8367 / 2**0.5)
    yield Headline("40 questions", public_design("bbq", (2,) * 20), partial(lean, clusters=20, each=2), 0.8367 / 2**0.5)
    for pairs in (30, 80):
        yield Headline(
            f"{2 * pairs} sentences", public_design("winobias", (1,) * pairs), partial(pronoun_gap, pairs=pairs)
        )
    occupations = (2, 2) + (1,) * 16
    yield Headline("20 templates", public_design("winogender", occupations), partial(flips, sizes=occupations))
    swaps = {"file": str(ROOT / "fixtures/bias/counterfactual_en.toml")}
    for test in ("test_counterfactual_swap", "test_counterfactual_continuation"):
        (design,) = bias_designs(test, swaps, smoke)
        yield Headline("shipped", design, partial(excess, swaps=design.others or 0, controls=design.units or 0))
    asked = {"file": str(ROOT / "fixtures/bias/refusal_en.toml")}
    for axis, groups, draws in (("gender", 2, 1), ("gender", 2, 3), ("race", 4, 3)):
        (design,) = bias_designs("test_refusal", {**asked, "axis": axis}, smoke if draws == 1 else standard)
        make = partial(refused, groups=groups, requests=design.units or 0, draws=draws, rate=0.2)
        yield Headline(f"{groups} groups x {draws}", design, make)
    for samples in (12, 24):
        (design,) = (
            one
            for one in faithfulness_designs("test_method", {"samples": range(samples), "method": "ifr"}, smoke)
            if one.headline
        )
        yield Headline(f"{samples} samples", design, partial(scored, samples=samples))
    yield from leakage_kinds(smoke, standard)
    plan = SimpleNamespace(folder=None, samples=2, depths=(0, 50, 100), lengths=(1, 2, 3), config=None)
    grid = headline(needle_designs("test_grid", {"plan": plan}, smoke), "needle.accuracy")
    yield Headline("3 x 3 x 2", grid, partial(accuracy, samples=grid.units or 0))
    for stretches in (8, 16):
        config = SimpleNamespace(windows="shared")
        shared = SimpleNamespace(folder=None, samples=stretches, depths=(0, 50, 100), lengths=(1, 2, 3), config=config)
        grid = headline(needle_designs("test_grid", {"plan": shared}, smoke), "needle.accuracy")
        yield Headline("9 prompts each", grid, partial(stretched, stretches=stretches, prompts=9))
    for family, of in (("membership", area), ("exposure", exposed), ("extraction", extracted), ("stress", unstable)):
        design = next(one for one in privacy_designs("test_stage", {"family": family}, smoke) if one.headline)
        for members in (15, 50):
            counts: dict[str, Any] = {"members": members} | ({"twins": 200} if of in (area, exposed) else {})
            yield Headline(f"{members} members", replace(design, units=members), partial(of, **counts))
    (design,) = privacy_designs("test_transition", {}, smoke)
    for members in (15, 50):
        yield Headline(
            f"{members} members", replace(design, units=members), partial(change, members=members, twins=200)
        )


def leakage_kinds(smoke: Chosen, standard: Chosen) -> Iterator[Headline]:
    """The shipped English questions, and questions of many files."""
    params = {"source": str(ROOT / "fixtures" / "leakage" / "general_en")}
    for chosen in (smoke, standard):
        shapes = {
            "test_option_order": "places",
            "test_completion": "similarity",
            "test_text_likelihood": "hits",
            "test_row_order": "normal",
        }
        for test, shape in shapes.items():
            design = next(one for one in leakage_designs(test, params, chosen) if one.headline)
            yield Headline(chosen.size, design, partial(of_questions, questions=design.units or 0, shape=shape))
        design = next(one for one in leakage_designs("test_published_memorisation", params, chosen) if one.headline)
        options = int(design.high or 0)
        yield Headline(chosen.size, design, partial(published, questions=design.units or 0, options=options))
        design = next(one for one in leakage_designs("test_memorisation", params, chosen) if one.headline)
        yield Headline(chosen.size, design, partial(order_effect, questions=design.units or 0, files=3))
    with tempfile.TemporaryDirectory() as folder:
        for files, each in ((6, 4), (12, 5), (57, 4)):
            place = Path(folder) / str(files)
            place.mkdir()
            for k in range(files):
                rows = [f"What is {k} times {n}?,a{k},b{n},c{k},d{n},A" for n in range(each)]
                (place / f"f{k}.csv").write_text("question,A,B,C,D,answer\n" + "\n".join(rows) + "\n")
            found = leakage_designs("test_memorisation", {"source": str(place)}, Chosen("full"))
            for one in found:
                if one.metric.endswith("order_effect.logprob"):
                    make = partial(order_effect, questions=files * each, files=files)
                    yield Headline(f"{each} questions a file", one, make)


@dataclass(frozen=True)
class Found:
    """What a simulation of a headline gave beside what was planned, in the plan's unit."""

    half: float
    power: float


def simulated(one: Headline, runs: int) -> Found:
    """The mean half width with what chance gives (of a largest difference: with the planned effect), and the power."""
    planned = forecast(one.design)
    detectable = (planned.detectable or 0.0) * (one.sd if planned.relative else 1.0)
    name = f"{one.design.metric} {one.setting}"
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    middle = _null(one.design)
    halves: list[float] = []
    told = 0
    largest = one.design.metric in ("bias.max_min_disparity", "bias.refusal_max_difference")
    for effect in (0.0, detectable):
        for _ in range(runs):
            found = one.measure(rng, effect)
            if found.low is None or found.high is None:
                continue
            told += bool(effect) and (found.low > middle or found.high < middle)
            if largest == bool(effect):
                halves.append((found.high - found.low) / 2)
    unit = one.sd if planned.relative else 1.0
    return Found(float(np.mean(halves)) / unit if halves else float("nan"), told / runs)


def _null(design: Design) -> float:
    """Where the measured estimates stand without an effect."""
    if design.kind == "share":
        low, high = design.low or 0.0, 1.0 if design.high is None else design.high
        return (low + high) / 2 if design.chance is None else design.chance
    return 0.5 if design.kind == "auc" else 0.0


def table(runs: int, only: str) -> str:
    """The Markdown table of planned and simulated half widths, and of the power at the planned effect."""
    lines = ["| headline | design | half width, planned | simulated | effect found, planned | its power |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for one in kinds():
        if only not in f"{one.design.metric} {one.setting}":
            continue
        planned = forecast(one.design)
        units = one.design.many(one.design.units or 0)
        if planned.half_width is None or planned.detectable is None:
            lines.append(f"| `{one.design.metric}` | {one.setting}, {units} | {planned.reason or 'none'} |  |  |  |")
            continue
        found = simulated(one, runs)
        unit = "SD" if planned.relative else one.design.unit
        lines.append(
            f"| `{one.design.metric}` | {one.setting}: {units} | {planned.half_width:.3g} {unit} | {found.half:.3g} |"
            f" {planned.detectable:.3g} {unit} | {100 * found.power:.0f}% |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return f"Seed {SEED}, {runs} runs a cell.\n\n" + "\n".join(lines)


@dataclass(frozen=True)
class Open:
    """A question that a first run of ``n`` units leaves open more often than not."""

    name: str
    n: int
    truth: float
    margin: float | None
    side: Side
    null: float
    measure: Callable[[Rng, int, float], Estimate]


def questions() -> Iterator[Open]:
    def normal(sd: float) -> Callable[[Rng, int, float], Estimate]:
        return lambda rng, n, mean: mean_of(rng.normal(mean, sd, n), ["f"] * n, unit="", seed=0, kind="differences")

    yield Open("rows: gain of 10 nats, SD 44, margin 1", 16, 10.0, 1.0, "above", 0.0, normal(44.0))
    yield Open("order effect of 0.1, SD 0.35, margin 0.05", 12, 0.1, 0.05, "above", 0.0, normal(0.35))
    yield Open("order effect of -0.03, SD 0.35, margin 0.05", 12, -0.03, 0.05, "above", 0.0, normal(0.35))
    yield Open("order effect of 0, SD 0.1, margin 0.05", 12, 0.0, 0.05, "above", 0.0, normal(0.1))
    yield Open("preference of 0.3, SD 1, no margin", 24, 0.3, None, "either", 0.0, normal(1.0))
    yield Open("preference of 0.1, SD 0.6, margin 0.3", 12, 0.1, 0.3, "either", 0.0, normal(0.6))
    yield Open(
        "skewed sizes, mean 0.4 above chance, SD 1", 15, 0.4, None, "above", 0.0,
        lambda rng, n, mean: mean_interval(rng.exponential(size=n) - 1 + mean, seed=0, n_resamples=999),
    )  # fmt: skip
    for truth, null, margin in ((0.6, 0.5, None), (0.65, 0.5, 0.05), (0.1, 0.05, 0.1)):
        yield Open(
            f"share of {truth:g}, {null:g} by chance, margin {margin}", 20, truth, margin, "above", null,
            lambda rng, n, mean: clopper_pearson(int(rng.binomial(n, min(1.0, max(0.0, mean)))), n),
        )  # fmt: skip
    yield Open(
        "AUC of 0.62, margin 0.1", 15, 0.12, 0.1, "above", 0.5,
        lambda rng, n, more: area(rng, min(0.499, more), members=n, twins=200),
    )  # fmt: skip


def told(one: Open, effect: Estimate) -> Finding:
    fields: dict[str, Any] = {"null": one.null, "margin": one.margin, "side": one.side}
    p = p_of_interval(effect, one.null, one.side)
    return decided(Finding("k", "found", "f", "a", "u", effect=effect, p=p, reason="-", **fields))


def would_tell(runs: int) -> str:
    """Of each question how many units would tell, as a first run says, and how often so many do, at its value."""
    lines = [
        "| question | units of the first run | would tell, median | of so many tell |",
        "| --- | --- | --- | --- |",
    ]
    for one in questions():
        rng = np.random.default_rng([SEED, zlib.crc32(one.name.encode())])
        numbers, answers = [], []
        for _ in range(runs):
            effect = one.measure(rng, one.n, one.truth)
            needed = told(one, effect).needed
            if needed is None:
                continue
            numbers.append(needed)
            if needed <= 20_000:
                value = (effect.value or 0.0) - (one.null if one.name.startswith("AUC") else 0.0)
                answers.append(told(one, one.measure(rng, needed, value)).verdict != "cannot tell")
        rate = f"{100 * np.mean(answers):.0f}%" if answers else ""
        lines.append(f"| {one.name} | {one.n} | {np.median(numbers):,.0f} | {rate} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return f"{runs} first runs a question.\n\n" + "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300, help="runs a cell (default 300)")
    parser.add_argument("--only", default="", help="only metrics or designs that hold this")
    parser.add_argument("--would-tell", action="store_true", help="only how often the number that would tell does")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/gates.md")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write puts all rows into the page; leave out --only")
    if not options.would_tell:
        text = table(options.runs, options.only)
        print(text)
        if options.write:
            write_between(PAGE, BEGIN, END, text)
    if options.would_tell or not options.only:
        text = would_tell(options.runs)
        print(text)
        if options.write:
            write_between(PAGE, *TELLING, text)


if __name__ == "__main__":
    main()
