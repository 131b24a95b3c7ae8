"""The published test as its source has it, on the published and on the shuffled benchmark, with the chance it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.averages import FileWeights, clusters_of, file_mean, mean_of
from lm_audit.audits.leakage.evidence.describing import describe, note_unreachable
from lm_audit.audits.leakage.evidence.figures import distribution, forest, shown, table
from lm_audit.audits.leakage.half_option.passes import OnRows, fitting, measure_conditions
from lm_audit.audits.leakage.half_option.scores import mitigation_share
from lm_audit.audits.leakage.half_option.variants import ORIGINAL, OTHER_ITEM
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import Item
from lm_audit.audits.leakage.memory import share_source
from lm_audit.audits.leakage.signs import paired_sign_flip
from lm_audit.errors import TOO_LONG, ContextError
from lm_audit.evidence import Evidence, Figure
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel

MIXED = "shuffled-1"
_CONDITIONS = {ORIGINAL: "original", MIXED: "shuffled", OTHER_ITEM: "baseline"}


def published_memorisation(
    model: LanguageModel, benchmark: Benchmark, *, seed: int = 0, on_rows: OnRows | None = None
) -> Evidence:
    """The source's score (hits a question, mean of file means) of the benchmark and of the same with options mixed.

    Rule, cut and repetition penalty are the source's; each item is mixed by one seeded order of its own, anchored
    options in place, and an item that cannot be mixed stays as it is in both. ``leakage.published.mitigation`` is
    the plain difference of the two, ``...mitigation_share`` the same over what exceeds the baseline: the options after
    other items, which the source does not have. Equal options and one-character options stay in, as in the source; an
    item longer than the model reads cannot. ``on_rows`` gets item rows as they are measured.
    """
    fits = fitting(model, benchmark.items)
    items = [item for item, fit in zip(benchmark.items, fits, strict=True) if fit]
    excluded = {item.key: TOO_LONG for item, fit in zip(benchmark.items, fits, strict=True) if not fit}
    if not items:
        raise ContextError(f"every item is {TOO_LONG}", file=benchmark.name)
    rows: list[dict[str, Any]] = []
    keep = on_rows or (lambda some: rows.extend(map(dict, some)))
    files = [item.file for item in items]
    weights = FileWeights.of(files, benchmark)
    weight_of = dict(zip([item.key for item in items], weights.weights.tolist(), strict=True))
    measured = measure_conditions(
        model,
        items,
        orders=1,
        rule="as_published",
        cut="source",
        baselines=(OTHER_ITEM,),
        suffixes=False,
        unmoved=True,
        seed=seed,
        on_rows=lambda some: keep([{**row, "weight": weight_of[row["question"]]} for row in some]),
    )
    evidence = _evidence(measured, benchmark, items, weights, seed)
    describe(evidence, benchmark, excluded, {"rule": "as_published", "cut": "source", "repetition_penalty": 1.05})
    if weights.scored < 1:
        evidence.notes.append(
            f"{len(items)} of {benchmark.usable} questions were scored, of {len(set(files))} of the "
            f"{sum(1 for count in benchmark.by_file.values() if count)} files that have any; each stands for its share "
            "of its file, and no file counts as 0 for want of a sample."
        )
    note_unreachable(evidence)
    evidence.rows = rows
    return evidence


def _question_hits(measured: pd.DataFrame, condition: str, count: int) -> np.ndarray:
    """Hits of every question [items]; NaN where the condition lacks it."""
    here = measured[measured["condition"] == condition]
    hits: np.ndarray = here.groupby("base")["hit"].sum().reindex(range(count)).to_numpy(dtype=np.float64)
    return hits


def _evidence(
    measured: pd.DataFrame, benchmark: Benchmark, items: Sequence[Item], weights: FileWeights, seed: int
) -> Evidence:
    files = [item.file for item in items]
    hits = {name: _question_hits(measured, condition, len(items)) for condition, name in _CONDITIONS.items()}
    evidence = Evidence("leakage", headline="leakage.published.score")
    limits, clusters = (0.0, float(max(len(item.options) for item in items))), clusters_of(files)
    chance = file_mean(hits["baseline"], files, weights, limits=limits, seed=seed).value
    by_items = mean_of(hits["baseline"], files, unit="hits a question", seed=seed).value
    for condition, name in _CONDITIONS.items():
        metric = {"original": "score", "shuffled": "score_shuffled", "baseline": "score_baseline"}[name]
        better = "lower" if name == "original" else "neither"
        by_file = file_mean(hits[name], files, weights, limits=limits, seed=seed, chance=chance, better=better)
        evidence.metric(f"leakage.published.{metric}", by_file, _source(condition, weights, clusters))
        by_item = mean_of(
            hits[name],
            files,
            unit="hits a question",
            seed=seed,
            chance=by_items,
            better=better,
            kind="counts",
            limits=limits,
        )
        evidence.metric(f"leakage.published.{metric}_by_items", by_item, _source(condition, None, clusters))
    _record_mitigation(evidence, hits, files, weights, limits, seed)
    evidence.figures += _figures(evidence.metrics, hits, files, benchmark)
    return evidence


def _source(condition: str, weights: FileWeights | None, clusters: tuple[str, ...]) -> MetricSource:
    """The mean of the questions' hits, each with its share of a file where ``weights`` are given."""
    found = MetricSource.mean("hit", {"condition": condition}, unit=("question",), within="sum", clusters=clusters)
    return found if weights is None else replace(found, options={"weight": "weight"}, scale=weights.share)


def _record_mitigation(
    evidence: Evidence,
    hits: Mapping[str, np.ndarray],
    files: Sequence[str],
    weights: FileWeights,
    limits: tuple[float, float],
    seed: int,
) -> None:
    metrics, clusters = evidence.metrics, clusters_of(files)
    original, shuffled, chance = (
        metrics[f"leakage.published.{name}"].value for name in ("score", "score_shuffled", "score_baseline")
    )
    differences = hits["original"] - hits["shuffled"]
    both = (-limits[1], limits[1])
    plain = file_mean(
        differences, files, weights, limits=both, seed=seed, kind="differences", chance=0.0, better="lower"
    )
    share = None
    if original is not None and shuffled is not None and chance is not None:
        share = mitigation_share(original, shuffled, chance)
    source = MetricSource.paired_difference(
        "hit", ("question",), {"condition": ORIGINAL}, {"condition": MIXED}, within="sum", clusters=clusters
    )
    evidence.metric(
        "leakage.published.mitigation", plain, replace(source, options={"weight": "weight"}, scale=weights.share)
    )
    evidence.metric("leakage.published.mitigation.p", paired_sign_flip(differences, seed=seed))
    reason = "the original score does not exceed the baseline"
    fields: dict[str, Any] = {"unit": "share", "chance": 0.0}
    evidence.metric(
        "leakage.published.mitigation_share",
        Estimate.not_estimable(reason, n=len(files), better="lower", **fields)
        if share is None
        else Estimate(share, n=len(files), confidence=None, method="of the scores", better="lower", **fields),
        share_source(
            {
                "original": _source(ORIGINAL, weights, clusters),
                "shuffled": _source(MIXED, weights, clusters),
                "chance": _source(OTHER_ITEM, weights, clusters) if chance is not None else None,
            },
            clusters,
        ),
    )


def _figures(
    metrics: Mapping[str, Estimate], hits: Mapping[str, np.ndarray], files: Sequence[str], benchmark: Benchmark
) -> list[Figure]:
    scores = {
        "original": metrics["leakage.published.score"],
        "shuffled": metrics["leakage.published.score_shuffled"],
        "baseline": metrics["leakage.published.score_baseline"],
    }
    chance = scores["baseline"].value
    caption = "Hits a question, mean of file means. Dashed: the baseline, options after other items."
    row = {name: shown(estimate) for name, estimate in scores.items()}
    row |= {
        "benchmark": benchmark.name,
        "mitigation": shown(metrics["leakage.published.mitigation"]),
        "share": shown(metrics["leakage.published.mitigation_share"]),
    }
    columns = {
        "benchmark": "benchmark",
        "original": "original",
        "shuffled": "shuffled",
        "baseline": "baseline",
        "mitigation": "mitigation degree",
        "share": "of what exceeds chance",
    }
    return [
        table("published", "Memorisation and mitigation", columns, [row], "As the source states it, with intervals."),
        forest("published_scores", "Published score", scores, "hits a question", chance, caption),
        distribution("published_distribution", "Hits a question", hits, "hits", chance, caption),
        _by_file(hits, files, benchmark),
    ]


def _by_file(hits: Mapping[str, np.ndarray], files: Sequence[str], benchmark: Benchmark) -> Figure:
    rows = []
    for name in benchmark.files:
        here = np.array([file == name for file in files], dtype=bool)
        means = {k: v[here & np.isfinite(v)] for k, v in hits.items()}
        rows.append(
            {"file": name, "questions": int(here.sum())}
            | {k: round(float(v.mean()), 3) if len(v) else None for k, v in means.items()}
        )
    columns = {k: k for k in ("file", "questions", *hits)}
    return table("published_files", "Published score by file", columns, rows, "Hits a question.")
