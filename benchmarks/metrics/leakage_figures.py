"""Figures of the leakage audit: its means over questions and files, of ``coverage_leakage.py``, by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from coverage_leakage import KINDS, noise, weights_of
from figure import Design, Told
from scipy.special import ndtr

from lm_audit.audits.leakage.averages import file_mean, mean_of, of_these_files
from lm_audit.audits.leakage.half_option.single_files import single_files
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import Item
from lm_audit.stats import roc_auc, share

NAMES = {
    "differences": "leakage.order_effect.{measure}, leakage.above_{baseline}.{measure}, leakage.row_order.swap_gain",
    "log-probability": "leakage.logprob.{condition}, leakage.text.{measure}",
    "similarity": "leakage.completion.{measure}",
    "hits": "leakage.hits.{condition}, leakage.published.score_by_items, leakage.ngram_accuracy",
    "places": "leakage.option_order.place",
}


def one_file(rng: np.random.Generator, seed: int, there: bool, *, kind: str, n: int) -> Mapping[str, Told]:
    values, truth = noise(kind, rng, n)
    null = {"differences": 0.0, "places": 0.5}.get(kind)
    found = mean_of(values, ["f"] * n, unit="", seed=seed, **KINDS[kind])  # type: ignore[arg-type]
    return {NAMES[kind]: Told(found, truth, null, "above")}


def many_files(
    rng: np.random.Generator, seed: int, there: bool, *, files: int, each: int, spread: float
) -> Mapping[str, Told]:
    """An order effect in nats whose files differ: for files like these, and for these."""
    effect = 0.3 if there else 0.0
    shift = spread * rng.normal(size=files) + effect
    place = np.repeat(np.arange(files), each)
    values, names = shift[place] + 0.35 * rng.normal(size=len(place)), [f"f{k}" for k in place]
    items = tuple(Item(str(k), name, "q", ("a", "b", "c", "d")) for k, name in enumerate(names))
    whole = Benchmark("b", items, tuple(sorted(set(names))), len(items), len(items))
    like = mean_of(values, names, unit="", seed=seed, kind="differences", unseen=(0.0, 0.7))
    own = of_these_files(values, names, whole, unit="", seed=seed, kind="differences")
    assert own is not None
    alone = single_files(values, names, lambda mask: None, unit="")
    largest = {}
    if alone is not None:
        truth = float(shift.max())
        largest = {
            "leakage.order_effect.{measure}.largest_file": Told(
                alone.largest, truth, 0.0 if not spread else None, "above"
            )
        }
    return largest | {
        "leakage.order_effect.{measure}": Told(like, effect, 0.0, "above"),
        "leakage.order_effect.{measure}.these_files": Told(
            own, float(shift.mean()), 0.0 if not spread else None, "above"
        ),
    }


def published(rng: np.random.Generator, seed: int, there: bool, *, files: int, scored: int) -> Mapping[str, Told]:
    """A sample of many files: the score, and what mixing the options takes away."""
    sizes = rng.integers(10, 40, files)
    where = np.repeat(np.arange(files), sizes)
    known = rng.random(len(where)) < (0.3 if there else 0.0)
    hits = np.where(known, 4, rng.binomial(4, 0.1, len(where))).astype(float)
    lost = np.asarray(hits - rng.binomial(4, np.where(known, 0.25, 0.1)), dtype=np.float64)
    drawn = np.sort(rng.permutation(len(where))[:scored])
    names = [f"f{where[k]}" for k in drawn]
    weights = weights_of(names, {f"f{k}": int(size) for k, size in enumerate(sizes)})
    truths = [float(np.mean([values[where == k].mean() for k in range(files)])) for values in (hits, lost)]
    score = file_mean(hits[drawn], names, weights, limits=(0.0, 4.0), seed=seed)
    change = file_mean(lost[drawn], names, weights, limits=(-4.0, 4.0), seed=seed, kind="differences")
    return {
        "leakage.published.score": Told(score, truths[0]),
        "leakage.published.mitigation": Told(change, truths[1]),
    }


def ranks(rng: np.random.Generator, seed: int, there: bool, *, n: int) -> Mapping[str, Told]:
    chance = 0.3 if there else 1 / 24
    found = share((rng.random(n) < chance).astype(np.float64))
    shift = 0.7 if there else 0.0
    area = roc_auc(rng.normal(shift, 1, n), rng.normal(size=2 * n))
    return {
        "leakage.option_order.first": Told(found, chance, 1 / 24, "above"),
        "leakage.text.{measure}.auc": Told(area, float(ndtr(shift / 2**0.5)), 0.5, "above"),
    }


def designs() -> Iterator[Design]:
    functions = {"differences": "mean_of: t", "hits": "mean_of: bounded_mean"}
    for kind in KINDS:
        for n in (8, 24):
            yield Design(
                functions.get(kind, "mean_of: studentised_mean"),
                f"{kind} of one file",
                f"{n} questions",
                partial(one_file, kind=kind, n=n),
                discrete=kind == "hits",
            )
    for files, each in ((6, 4), (12, 5), (57, 4), (12, 12), (57, 40)):
        for spread in (0.0, 0.1):
            yield Design(
                "mean_of: clustered_mean and Gaffke's; t for these files",
                f"{each} questions a file, file SD {spread:g} of 0.35",
                f"{files} files",
                partial(many_files, files=files, each=each, spread=spread),
            )
    for files, scored in ((57, 24), (57, 200), (6, 60)):
        yield Design(
            "file_mean: bounded_mean, t",
            f"of {files} files",
            f"{scored} questions",
            partial(published, files=files, scored=scored),
            discrete=True,
        )
    for n in (12, 60):
        yield Design(
            "clopper_pearson, roc_auc",
            "24 orders; twice as many clean texts",
            f"{n} questions",
            partial(ranks, n=n),
            discrete=True,
        )
