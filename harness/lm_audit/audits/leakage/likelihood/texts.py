"""Likelihood of the benchmark's texts: n-gram accuracy, perplexity, Min-K%; against clean texts if there are any."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.averages import clusters_of, mean_of
from lm_audit.audits.leakage.evidence.conclusions import text_findings
from lm_audit.audits.leakage.evidence.describing import describe
from lm_audit.audits.leakage.evidence.figures import distribution, forest
from lm_audit.audits.leakage.half_option.passes import OnRows, fitting
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.clean import SHARED, asked, without
from lm_audit.audits.leakage.items.item import LETTERS, Item, full_text, letters_of
from lm_audit.audits.leakage.likelihood.scores import ngram_accuracy
from lm_audit.errors import TOO_LONG, ContextError
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate, mann_whitney_p, roc_auc

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

MEMBERSHIP = {"mean_logprob": "nats a token", "min_k20": "nats a token", "min_k20_plus": "standard deviations"}
CHUNK = 32


def answered_text(item: Item) -> tuple[str, str]:
    """Question with options, and the text of the right options (all of them where the set gives no answer)."""
    right = [item.options[LETTERS.index(letter)] for letter in letters_of(item.answer)]
    return full_text(item), " ".join(right or item.options)


def text_likelihood(
    model: LanguageModel,
    benchmark: Benchmark,
    *,
    clean: Benchmark | None = None,
    n: int = 5,
    seed: int = 0,
    on_rows: OnRows | None = None,
) -> Evidence:
    """n-gram accuracy, perplexity, Min-K% and Min-K%++ of each item's text; one forward pass an item.

    With ``clean``, items that the model cannot have seen, each membership score has its AUC (benchmark above clean),
    DeLong's interval and a Mann-Whitney p-value; without them no threshold is offered, since none is known. Clean items
    that the benchmark asks too are left out with a note; ``DataError`` where that is more than half of them.
    """
    if clean is not None:
        clean = without(clean, {asked(item) for item in benchmark.items}, benchmark.name)
    rows = _scored(model, benchmark.items, n, "benchmark", on_rows)
    if not rows:
        raise ContextError(f"every item is {TOO_LONG}", file=benchmark.name)
    reference = _scored(model, clean.items, n, "clean", on_rows) if clean is not None else []
    evidence = Evidence("leakage", headline="leakage.ngram_accuracy")
    _record(evidence, rows, seed)
    if reference:
        _compare(evidence, rows, reference, seed)
    else:
        evidence.notes.append("No clean items were given (--leakage-clean): membership scores have no AUC.")
    evidence.finding(*text_findings(evidence, benchmark.name))
    if clean is not None and (shared := clean.excluded.get(SHARED)):
        evidence.notes.append(f"Warning: {shared} clean items were left out: {SHARED}.")
    describe(evidence, benchmark, {}, {"n": n, "clean": None if clean is None else clean.name})
    evidence.rows = [] if on_rows is not None else [*rows, *reference]
    return evidence


def _scored(
    model: LanguageModel, items: Sequence[Item], n: int, role: str, on_rows: OnRows | None
) -> list[dict[str, Any]]:
    kept = [item for item, fits in zip(items, fitting(model, items), strict=True) if fits]
    rows: list[dict[str, Any]] = []
    for begin in range(0, len(kept), CHUNK):
        part = kept[begin : begin + CHUNK]
        table = ngram_accuracy(model, [answered_text(item) for item in part], n)
        new = [_row(item, entry, role) for item, entry in zip(part, table.to_dict("records"), strict=True)]
        if on_rows is not None:
            on_rows(new)
        rows += new
    return rows


def _row(item: Item, entry: dict[Any, Any], role: str) -> dict[str, Any]:
    kept = ("n_tokens", "accuracy", "mean_logprob", "perplexity", "min_k20", "min_k20_plus", "skipped")
    values = {key: _plain(entry[key]) for key in kept}
    name, content = f"{item.key}:{role}", item.content
    return {"item": name, "content": content, "question": item.key, "file": item.file, "role": role, **values}


def _plain(value: object) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _values(rows: Sequence[dict[str, Any]], name: str) -> np.ndarray:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)


def _record(evidence: Evidence, rows: Sequence[dict[str, Any]], seed: int) -> None:
    files = [row["file"] for row in rows]
    clusters, own = clusters_of(files), {"role": "benchmark"}
    accuracy = mean_of(
        _values(rows, "accuracy"),
        files,
        unit="share of places",
        seed=seed,
        better="lower",
        kind="counts",
        limits=(0.0, 1.0),
    )
    evidence.metric("leakage.ngram_accuracy", accuracy, MetricSource.mean("accuracy", own, clusters=clusters))
    # A better model finds any text likelier, so that no level of likelihood is worse than another.
    for name, unit in MEMBERSHIP.items():
        # Of a log-probability the end is known: a text that is certain has 0.
        unseen = (-math.inf, 0.0) if unit.startswith("nats") else None
        level = mean_of(_values(rows, name), files, unit=unit, seed=seed, better="neither", unseen=unseen)
        evidence.metric(f"leakage.text.{name}", level, MetricSource.mean(name, own, clusters=clusters))
    source = MetricSource("perplexity", "mean_logprob", own, options={"weight": "n_tokens"}, clusters=clusters)
    evidence.metric("leakage.text.perplexity", _perplexity(rows), source)
    skipped = [row["question"] for row in rows if row["skipped"]]
    if skipped:
        evidence.notes.append(f"{len(skipped)} texts are too short for n-grams: {', '.join(skipped[:20])}")


def _perplexity(rows: Sequence[dict[str, Any]]) -> Estimate:
    """Of all tokens together, exp of minus their mean log-probability."""
    weights = np.array([row["n_tokens"] for row in rows], dtype=np.float64)
    mean = float(np.average(_values(rows, "mean_logprob"), weights=weights))
    found = Estimate(float(np.exp(-mean)), n=len(rows), confidence=None, method="over all tokens", unit="perplexity")
    return replace(found, better="neither")


def _compare(
    evidence: Evidence, rows: Sequence[dict[str, Any]], reference: Sequence[dict[str, Any]], seed: int
) -> None:
    aucs = {}
    for name in (*MEMBERSHIP, "accuracy"):
        members, controls = _values(rows, name), _values(reference, name)
        members, controls = members[np.isfinite(members)], controls[np.isfinite(controls)]
        source = MetricSource.members(
            "auc",
            name,
            {"role": "benchmark"},
            {"role": "clean"},
            clusters=clusters_of([row["file"] for row in (*rows, *reference)]),
        )
        evidence.metric(f"leakage.text.{name}.auc", replace(roc_auc(members, controls), better="lower"), source)
        evidence.metric(f"leakage.text.{name}.p", mann_whitney_p(members, controls))
        aucs[name.replace("_", " ")] = evidence.metrics[f"leakage.text.{name}.auc"]
    caption = "How well each score tells the benchmark's items from the clean ones. Dashed: chance."
    evidence.figures.append(forest("membership", "Benchmark against clean items", aucs, "AUC", 0.5, caption))
    values = {"benchmark": _values(rows, "min_k20"), "clean": _values(reference, "min_k20")}
    chance = float(np.nanmean(values["clean"]))
    evidence.figures.append(
        distribution(
            "min_k", "Min-K% of the items", values, "Min-20%, nats", chance, "Dashed: mean of the clean items."
        )
    )
