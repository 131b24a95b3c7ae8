"""The memorisation test: published order against shuffled ones, every score beside what language alone would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lm_audit.audits.leakage.averages import clusters_of, record_these_files
from lm_audit.audits.leakage.evidence.conclusions import file_findings, order_findings
from lm_audit.audits.leakage.evidence.describing import describe, note_unreachable
from lm_audit.audits.leakage.evidence.memory_figures import memorisation_figures
from lm_audit.audits.leakage.half_option.conditions import (
    UNITS,
    Effect,
    baseline_effect,
    order_effect,
    question_scores,
)
from lm_audit.audits.leakage.half_option.cuts import Cut
from lm_audit.audits.leakage.half_option.passes import OnRows, measure_conditions, usable_items
from lm_audit.audits.leakage.half_option.scores import mitigation_share
from lm_audit.audits.leakage.half_option.single_files import LARGEST_FILE
from lm_audit.audits.leakage.half_option.variants import BASELINES, ORIGINAL, OTHER_ITEM, SHUFFLED
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import Item
from lm_audit.audits.leakage.items.style import sorted_items, style_shares, too_many_sorted
from lm_audit.audits.leakage.measured_memory import Memorisation
from lm_audit.audits.leakage.orders.permutations import is_shufflable
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.models import LanguageModel


def measure_memorisation(
    model: LanguageModel,
    benchmark: Benchmark,
    *,
    orders: int = 3,
    cut: Cut = "token",
    opening: str = "",
    seed: int = 0,
    on_rows: OnRows | None = None,
) -> Memorisation:
    """Probe every usable item in its published order, in ``orders`` shuffled ones, and beside two baselines.

    ``other_question``: the same options under another item's question; ``other_item``: one option alone after another
    item's question and options, which is what language alone gives. ``opening`` (of a chat template) stands before
    every text. ``on_rows`` gets item rows as they are measured. Raises ``DataError`` where no item can be used.
    """
    items, excluded = usable_items(model, benchmark.items, opening)
    if not items:
        raise DataError(f"no item can be used: {sorted(set(excluded.values()))}", file=benchmark.name)
    measured = measure_conditions(model, items, orders=orders, cut=cut, opening=opening, seed=seed, on_rows=on_rows)
    parameters = {"orders": orders, "cut": cut, "rule": "bytes", "mode": "template" if opening else "raw"}
    return memorisation_of(measured, items, benchmark, seed=seed, excluded=excluded, parameters=parameters)


def memorisation_of(
    measured: pd.DataFrame,
    items: Sequence[Item],
    benchmark: Benchmark,
    *,
    seed: int = 0,
    excluded: Mapping[str, str] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Memorisation:
    """The effects of a probe table of all conditions of these ``items`` of the ``benchmark``."""
    scores = question_scores(measured, items)
    plain = [not in_order for in_order in sorted_items(items)]
    return Memorisation(
        benchmark,
        measured,
        scores,
        dict(excluded or {}),
        {name: order_effect(scores, name, benchmark, seed=seed) for name in UNITS},
        {name: order_effect(scores, name, benchmark, seed=seed, keep=plain) for name in UNITS},
        style_shares(items),
        dict(parameters or {}),
        seed,
    )


def memorisation_evidence(result: Memorisation) -> Evidence:
    """Scores of all conditions, order effects, baselines, style, smallest detectable effect, and the figures."""
    evidence = measured_effects(result)
    describe(evidence, result.benchmark, result.excluded, result.parameters)
    evidence.finding(*order_findings(evidence, result.benchmark.name, by_style=result.by_style))
    evidence.finding(
        *file_findings(evidence, result.telling_effects["logprob"], result.benchmark.name, result.by_style)
    )
    _note_coverage(evidence, result)
    note_unreachable(evidence)
    evidence.figures += memorisation_figures(result)
    return evidence


def measured_effects(result: Memorisation) -> Evidence:
    """The metrics alone, with their sources."""
    evidence = Evidence("leakage", headline="leakage.order_effect.logprob")
    clusters = clusters_of(result.scores.files)
    for measure in UNITS:
        for condition in (ORIGINAL, SHUFFLED, *BASELINES):
            source = condition_source(measure, condition, result, clusters)
            evidence.metric(f"leakage.{measure}.{condition}", result.mean(measure, condition), source)
        for name, effects, where in (
            ("order_effect", result.effects, {}),
            ("order_effect_unsorted", result.unsorted_effects, {"sorted": False}),
        ):
            source = effect_source(measure, ORDERS, result, clusters, where)
            _record_effect(evidence, f"leakage.{name}.{measure}", effects[measure], source)
        for baseline in BASELINES:
            effect = baseline_effect(result.scores, measure, baseline, seed=result.seed)
            source = effect_source(measure, (baseline,), result, clusters)
            evidence.metric(f"leakage.above_{baseline}.{measure}", effect.mean, source)
            evidence.metric(f"leakage.above_{baseline}.{measure}.p", effect.sign_flip)
    _record_mitigation(evidence, result, clusters)
    return evidence


ORDERS = tuple(f"{SHUFFLED}-{k}" for k in range(1, 100))
"""All names that a shuffled condition may bear."""

QUESTIONS = ("question",)
"""What a function of rows has as its clusters where files are too few: the rows of a question hang together."""

COLUMNS = {"hits": "hit", "logprob": "logprob_per_byte"}


def condition_source(
    measure: str, condition: str, result: Memorisation, clusters: tuple[str, ...]
) -> MetricSource | None:
    """The mean over questions of the mean over a question's options; none where no row has the condition."""
    there = _there(result, ORDERS if condition == SHUFFLED else (condition,))
    if not there:
        return None
    return MetricSource.mean(COLUMNS[measure], {"condition": there}, unit=("question",), clusters=clusters)


def effect_source(
    measure: str,
    against: Sequence[str],
    result: Memorisation,
    clusters: tuple[str, ...],
    where: Mapping[str, object] | None = None,
) -> MetricSource | None:
    """The mean over questions of the published order minus the conditions ``against``."""
    there = _there(result, against)
    if not there:
        return None
    return MetricSource.paired_difference(
        COLUMNS[measure],
        ("question",),
        {"condition": ORIGINAL},
        {"condition": there},
        where=where or {},
        clusters=clusters,
    )


def _there(result: Memorisation, conditions: Sequence[str]) -> list[str]:
    return [name for name in conditions if name in result.scores.conditions]


def _record_effect(evidence: Evidence, name: str, effect: Effect, source: MetricSource | None) -> None:
    evidence.metric(name, effect.mean, source)
    record_these_files(evidence, name, effect.these_files, source)
    if effect.single_files is not None:
        largest = None if source is None else as_statistic("leakage.largest_file", replace(source, clusters=()))
        evidence.metric(f"{name}.{LARGEST_FILE}", effect.single_files.largest, largest)
    if effect.placed is not None:
        evidence.metric(f"{name}.p", effect.placed)
    evidence.metric(f"{name}.p_sign_flip", effect.sign_flip)
    evidence.metric(
        f"{name}.detectable",
        effect.detectable,
        None if source is None else as_statistic("leakage.detectable", source),
    )


def as_statistic(name: str, source: MetricSource, **options: object) -> MetricSource:
    """A statistic of this audit's own (``statistics.py``) on what ``source`` takes the mean of."""
    options = {"of": source.to_json(), **options}
    return MetricSource(name, where=source.where, clusters=source.clusters or QUESTIONS, options=options)


def _record_mitigation(evidence: Evidence, result: Memorisation, clusters: tuple[str, ...]) -> None:
    original, shuffled, chance = (result.mean("hits", c).value for c in (ORIGINAL, SHUFFLED, OTHER_ITEM))
    share = None if None in (original, shuffled, chance) else mitigation_share(original, shuffled, chance)  # type: ignore[arg-type]
    n = len(result.scores.items)
    estimate = (
        Estimate.not_estimable("the original score does not exceed chance", n=n, unit="share", chance=0.0)
        if share is None
        else Estimate(share, n=n, confidence=None, method="of the means", unit="share", chance=0.0)
    )
    effect = effect_source("hits", ORDERS, result, clusters)
    evidence.metric("leakage.mitigation", result.effects["hits"].mean, effect)
    names = {"original": ORIGINAL, "shuffled": SHUFFLED, "chance": OTHER_ITEM}
    parts = {name: condition_source("hits", condition, result, clusters) for name, condition in names.items()}
    evidence.metric("leakage.mitigation_share", replace(estimate, better="lower"), share_source(parts, clusters))


def share_source(parts: Mapping[str, MetricSource | None], clusters: tuple[str, ...]) -> MetricSource | None:
    """Of the means ``original``, ``shuffled`` and ``chance`` the share that mixing takes away."""
    known = {name: source.to_json() for name, source in parts.items() if source is not None}
    if len(known) < len(parts):
        return None
    return MetricSource("leakage.mitigation_share", clusters=clusters or QUESTIONS, options=known)


def _note_coverage(evidence: Evidence, result: Memorisation) -> None:
    items = result.scores.items
    fixed = [item.key for item in items if not is_shufflable(item)]
    if fixed:
        evidence.notes.append(
            f"{len(fixed)} items cannot be shuffled (their options name each other) and are in no order effect: "
            + ", ".join(fixed[:20])
        )
    if biased := too_many_sorted(result.styles):
        names = ", ".join(style.replace("_", " ") for style in biased)
        evidence.notes.append(
            f"The published order follows a style more often than by chance ({names}), which any model knows: what is "
            f"found rests on the unsorted items ({sum(not one for one in sorted_items(items))} of {len(items)})."
        )


def memorisation(
    model: LanguageModel, benchmark: Benchmark, *, orders: int = 3, cut: Cut = "token", opening: str = "", seed: int = 0
) -> Evidence:
    """:func:`measure_memorisation` as evidence, rows included."""
    rows: list[dict[str, Any]] = []
    result = measure_memorisation(
        model,
        benchmark,
        orders=orders,
        cut=cut,
        opening=opening,
        seed=seed,
        on_rows=lambda some: rows.extend(map(dict, some)),
    )
    evidence = memorisation_evidence(result)
    evidence.rows = rows
    return evidence
