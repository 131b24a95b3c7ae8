"""The published test as its source has it, on the published and on the shuffled benchmark, with the chance it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.benchmark import Benchmark
from lm_audit.audits.leakage.conditions import mean_of
from lm_audit.audits.leakage.figures import distribution, forest, shown, table
from lm_audit.audits.leakage.measuring import OnRows, fitting, measure_conditions
from lm_audit.audits.leakage.memory import describe
from lm_audit.audits.leakage.scores import dataset_score, mitigation, mitigation_share
from lm_audit.audits.leakage.signs import paired_sign_flip
from lm_audit.audits.leakage.variants import ORIGINAL, OTHER_ITEM
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence, Figure
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel

MIXED = "shuffled-1"
_CONDITIONS = {ORIGINAL: "original", MIXED: "shuffled", OTHER_ITEM: "baseline"}
RESAMPLES = 2000


def published_memorisation(
    model: LanguageModel, benchmark: Benchmark, *, seed: int, on_rows: OnRows | None = None
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
    excluded = {
        item.key: "longer than the model reads" for item, fit in zip(benchmark.items, fits, strict=True) if not fit
    }
    if not items:
        raise DataError("every item is longer than the model reads", file=benchmark.name)
    rows: list[dict[str, Any]] = []
    keep = on_rows or (lambda some: rows.extend(map(dict, some)))
    measured = measure_conditions(
        model,
        items,
        orders=1,
        rule="as_published",
        cut="source",
        baselines=(OTHER_ITEM,),
        suffixes=False,
        seed=seed,
        on_rows=keep,
    )
    evidence = _evidence(measured, benchmark, [item.file for item in items], seed)
    describe(evidence, benchmark, excluded, {"rule": "as_published", "cut": "source", "repetition_penalty": 1.05})
    evidence.rows = rows
    return evidence


def _question_hits(measured: pd.DataFrame, condition: str, count: int) -> np.ndarray:
    """Hits of every question [items]; NaN where the condition lacks it."""
    here = measured[measured["condition"] == condition]
    hits: np.ndarray = here.groupby("base")["hit"].sum().reindex(range(count)).to_numpy(dtype=np.float64)
    return hits


def _evidence(measured: pd.DataFrame, benchmark: Benchmark, files: Sequence[str], seed: int) -> Evidence:
    hits = {name: _question_hits(measured, condition, len(files)) for condition, name in _CONDITIONS.items()}
    # What cannot be mixed is the same text in both folders.
    hits["shuffled"] = np.where(np.isfinite(hits["shuffled"]), hits["shuffled"], hits["original"])
    evidence = Evidence("leakage", headline="leakage.published.score")
    chance = file_mean(hits["baseline"], files, benchmark.files, seed).value
    by_items = mean_of(hits["baseline"], files, unit="hits a question", seed=seed).value
    for name, metric in (("original", "score"), ("shuffled", "score_shuffled"), ("baseline", "score_baseline")):
        files_mean = file_mean(hits[name], files, benchmark.files, seed)
        evidence.metric(f"leakage.published.{metric}", replace(files_mean, chance=chance))
        items_mean = mean_of(hits[name], files, unit="hits a question", seed=seed, chance=by_items)
        evidence.metric(f"leakage.published.{metric}_by_items", items_mean)
    _record_mitigation(evidence, hits, files, benchmark, seed)
    evidence.figures += _figures(evidence.metrics, hits, files, benchmark)
    return evidence


def _record_mitigation(
    evidence: Evidence, hits: Mapping[str, np.ndarray], files: Sequence[str], benchmark: Benchmark, seed: int
) -> None:
    metrics = evidence.metrics
    original, shuffled, chance = (
        metrics[f"leakage.published.{name}"].value for name in ("score", "score_shuffled", "score_baseline")
    )
    differences = hits["original"] - hits["shuffled"]
    plain = file_mean(differences, files, benchmark.files, seed)
    share = None
    if original is not None and shuffled is not None and chance is not None:
        plain = replace(plain, value=mitigation(original, shuffled), unit="hits a question", chance=0.0)
        share = mitigation_share(original, shuffled, chance)
    evidence.metric("leakage.published.mitigation", plain)
    evidence.metric("leakage.published.mitigation.p", paired_sign_flip(differences, seed=seed))
    reason = "the original score does not exceed the baseline"
    evidence.metric(
        "leakage.published.mitigation_share",
        Estimate.not_estimable(reason, n=len(files), unit="share", chance=0.0)
        if share is None
        else Estimate(share, n=len(files), confidence=None, method="of the scores", unit="share", chance=0.0),
    )


def file_mean(values: np.ndarray, files: Sequence[str], names: Sequence[str], seed: int) -> Estimate:
    """The source's mean of file means (a file without rows counts as 0), with an interval that resamples questions
    within their files."""
    kept = np.isfinite(values)
    groups = [values[kept & np.array([file == name for file in files], dtype=bool)] for name in names]
    value = dataset_score([group.tolist() for group in groups], "files")
    if value is None or not kept.any():
        return Estimate.not_estimable("no question", n=0, unit="hits a question")
    rng = np.random.default_rng(seed)
    draws = np.zeros(RESAMPLES)
    for group in groups:
        if len(group):
            draws += rng.choice(group, (RESAMPLES, len(group))).mean(axis=1)
    low, high = np.quantile(draws / len(groups), [0.025, 0.975])
    method = "mean of file means; percentile bootstrap of questions within files"
    return Estimate(
        value, min(float(low), value), max(float(high), value), n=int(kept.sum()), method=method, unit="hits a question"
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
