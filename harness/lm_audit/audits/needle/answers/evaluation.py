"""From samples and answers to evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lm_audit.audits.needle.answers.answerers import Answerer, ModelAnswerer
from lm_audit.audits.needle.conclusions import cell_findings, length_findings
from lm_audit.audits.needle.figures import grid_figures
from lm_audit.audits.needle.grid.cells import SCORERS, Scored, by_length, score_sample, share, stretches
from lm_audit.audits.needle.grid.cliff import THRESHOLD, cliff, possible_level, samples_needed
from lm_audit.audits.needle.samples.sample import GENERATOR_VERSION, Sample
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.models.text.thinking import closed_thoughts
from lm_audit.sources import MetricSource
from lm_audit.stats import clustered_mean, studentised_mean

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel


def evaluate(
    model: LanguageModel | Answerer,
    samples: Iterable[Sample],
    *,
    scorer: str = "all",
    threshold: float = THRESHOLD,
    seed: int = 0,
) -> Evidence:
    """What ``model`` (or any :class:`Answerer`) finds in the samples; see :func:`grid_evidence`.

    Raises ``DataError`` for no samples, and for one beyond the model's context or made for another tokenizer.
    """
    every = list(samples)
    evidence = grid_evidence(answered(model, every), scorer=scorer, threshold=threshold, seed=seed)
    evidence.parameters.update(parameters_of(every))
    return evidence


def answered(model: LanguageModel | Answerer, samples: Sequence[Sample]) -> list[Scored]:
    """The samples with the model's answers, scored."""
    answerer: Answerer = model if hasattr(model, "answer") else ModelAnswerer(model)
    answers = answerer.answer(samples)
    return [score_sample(sample, answer) for sample, answer in zip(samples, answers, strict=True)]


def grid_evidence(
    scored: Sequence[Scored], *, scorer: str = "all", threshold: float = THRESHOLD, seed: int = 0
) -> Evidence:
    """Accuracy by every scorer and length, the values' log-probability, the cliff, heatmap and worst cells.

    ``scorer`` is the score that lengths, cells and cliff go by: ``all`` (share of references found), ``any``, or
    ``boundary`` (as whole words).
    """
    if not scored:
        raise DataError("no samples were given; expected at least one")
    if scorer not in SCORERS:
        raise DataError(f"scorer {scorer!r} is unknown; expected one of {', '.join(SCORERS)}")
    evidence = Evidence("needle", headline="needle.accuracy")
    evidence.extend_rows(_row(one) for one in scored)
    _shares(evidence, scored, scorer)
    _logprob(evidence, seed)
    lengths = {
        length: share((one.score(scorer) for one in group), stretches(group))
        for length, group in by_length(scored).items()
    }
    for length, estimate in lengths.items():
        if len(lengths) > 1:
            source = _source(scored, scorer, {"length": length})
            evidence.metric(f"needle.accuracy.L{length:06d}", estimate, source)
    wide = possible_level(len(lengths))
    possible = {
        length: share([one.score(scorer) for one in group], stretches(group), confidence=wide)
        for length, group in by_length(scored).items()
    }
    grouped = ("stretch",) if stretches(scored) else ()
    options = {"score": scorer, "threshold": threshold}
    source = MetricSource("needle.cliff", scorer, clusters=grouped, options=options)
    evidence.metric("needle.cliff", cliff(lengths, threshold, possible), source)
    evidence.finding(*length_findings(evidence, lengths, threshold))
    evidence.figures += grid_figures(scored, scorer, threshold)
    approximate = any(one.answer.approximate for one in scored)
    evidence.parameters.update({"scorer": scorer, "threshold": threshold})
    if approximate:
        evidence.parameters["lengths"] = "approximate"
    _remarks(evidence, scored)
    few = samples_needed(threshold)
    if len(lengths) > 1 and max(estimate.n or 0 for estimate in lengths.values()) < few:
        evidence.notes.append(
            f"this size can show no cliff: fewer than {few} samples a length, however they are answered, leave "
            f"{threshold:g} undecided; ask for {few} or more (samples a cell times depths)"
        )
    return evidence


def cell_evidence(
    scored: Sequence[Scored], *, scorer: str = "all", threshold: float = THRESHOLD, seed: int = 0
) -> Evidence:
    """The same for one cell: no cliff, and of the figures the table with its worst sample."""
    evidence = grid_evidence(scored, scorer=scorer, threshold=threshold, seed=seed)
    del evidence.metrics["needle.cliff"], evidence.sources["needle.cliff"], evidence.parameters["threshold"]
    evidence.findings = ()
    evidence.finding(*cell_findings(evidence, scored[0].length, scored[0].depth, threshold))
    low = share([1.0] * len(scored)).low or 0.0
    if low < threshold:
        evidence.notes.append(
            f"{len(scored)} samples, all found, show an accuracy of {low:.2f} at least: no verdict on this cell alone "
            f"can hold a limit above that; the grid's case holds all cells together"
        )
    return evidence


def parameters_of(samples: Sequence[Sample]) -> dict[str, Any]:
    """How the samples were made, where they agree."""
    names = ("haystack_type", "needle_type_k", "needle_type_v", "template", "boundary")
    found = {name: sorted({str(sample.metadata.get(name)) for sample in samples}) for name in names}
    return {name: values[0] if len(values) == 1 else ", ".join(values) for name, values in found.items()} | {
        "tokens_to_generate": max(sample.tokens_to_generate for sample in samples),
        "actual_lengths": [min(s.actual_length for s in samples), max(s.actual_length for s in samples)],
        "generator_version": GENERATOR_VERSION,
    }


def _source(scored: Sequence[Scored], column: str, where: Mapping[str, object] | None = None) -> MetricSource:
    return MetricSource.mean(column, where or {}, clusters=("stretch",) if stretches(scored) else ())


_LOWER = {"cut": "needle.cut_answers", "empty": "needle.empty_answers", "no_answer": "needle.no_answer"}
"""Columns whose share is better the lower it is, and what it is called."""


def _shares(evidence: Evidence, scored: Sequence[Scored], scorer: str) -> None:
    names = {"needle.accuracy": scorer, **{f"needle.{name}": name for name in SCORERS}}
    names |= {"needle.precision": "precision", "needle.value_greedy": "value_greedy"}
    names |= {name: column for column, name in _LOWER.items()}
    labels = stretches(scored)
    for name, column in names.items():
        known = [number for number, row in enumerate(evidence.rows) if row[column] is not None]
        if not known:
            continue
        values = [float(evidence.rows[number][column]) for number in known]
        estimate = share(values, [labels[number] for number in known] if labels else None)
        if column in _LOWER:
            estimate = replace(estimate, better="lower")
        evidence.metric(name, estimate, _source(scored, column))


def _logprob(evidence: Evidence, seed: int) -> None:
    rows = [row for row in evidence.rows if row["value_logprob"] is not None]
    if not rows:
        return
    values, clusters = [row["value_logprob"] for row in rows], sorted({row["stretch"] for row in rows} - {None})
    labels = [row["stretch"] for row in rows]
    mean = clustered_mean(values, labels) if clusters else studentised_mean(values, seed=seed)
    source = MetricSource.mean("value_logprob", clusters=("stretch",) if clusters else ())
    evidence.metric("needle.value_logprob", replace(mean, unit="nats", better="higher"), source)


def _row(one: Scored) -> dict[str, Any]:
    answer = one.answer
    return {
        "item": one.id,
        "content": one.content,
        "stretch": one.stretch,
        "length": one.length,
        "depth": one.depth,
        "actual_depth": round(one.actual_depth, 4),
        **one.scores,
        "precision": one.precision,
        "value_logprob": answer.value_logprob,
        "value_greedy": answer.value_greedy,
        "finish": answer.finish,
        "answer_tokens": answer.tokens,
        **({} if answer.prompt_tokens is None else {"prompt_tokens": answer.prompt_tokens}),
        "truth": " | ".join(one.outputs),
        "answer": answer.answer,
        "no_answer": answer.answer is None,
        "empty": answer.answer is not None and not answer.answer.strip(),
        "cut": None if answer.finish == "unknown" else answer.finish == "length",
        "thought": answer.thought,
        "thought_cut": answer.thought_cut,
        "around_needle": one.excerpt,
    }


def _remarks(evidence: Evidence, scored: Sequence[Scored]) -> None:
    empty = sum(one.answer.answer is not None and not one.answer.answer.strip() for one in scored)
    if empty:
        evidence.notes.append(f"{empty} of {len(scored)} answers are empty: look at the template before the accuracy")
    never = sum(one.answer.answer is None for one in scored)
    if never:
        evidence.notes.append(
            f"{never} of {len(scored)} replies ended inside their thought: no answer, so nothing was found; more "
            "--thinking-tokens (or a longer context) let it come"
        )
    evidence.notes += closed_thoughts([one.answer.thought_cut for one in scored])
    cut = sum(one.answer.finish == "length" for one in scored)
    if cut:
        evidence.notes.append(f"{cut} of {len(scored)} answers were cut at the token limit")
    counted = [one.answer.prompt_tokens for one in scored if one.answer.approximate and one.answer.prompt_tokens]
    if any(one.answer.approximate for one in scored):
        told = f"by its usage, prompts have {min(counted)} to {max(counted)} tokens" if counted else "it counts none"
        evidence.notes.append(
            f"approximate lengths: nobody here knows the server's tokenizer; {told}. Name a tokenizer with --tokenizer"
        )
    merged = [one.id for one in scored if abs(one.actual_depth - one.depth) > 1 and one.actual_depth >= 0]
    if merged:
        worst = max(abs(one.actual_depth - one.depth) for one in scored if one.actual_depth >= 0)
        evidence.notes.append(
            f"{len(merged)} of {len(scored)} needles stand more than 1 percent from their depth (worst "
            f"{math.ceil(worst * 10) / 10}): sentences are long beside the prompt; boundary 'word' comes nearer"
        )
