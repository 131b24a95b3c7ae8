"""From samples and answers to evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.audits.needle.answers import Answer, Answerer, ModelAnswerer
from lm_audit.audits.needle.cells import SCORERS, Scored, by_length, score_sample, share
from lm_audit.audits.needle.cliff import THRESHOLD, cliff
from lm_audit.audits.needle.figures import grid_figures
from lm_audit.audits.needle.sample import GENERATOR_VERSION, Sample
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.stats import Estimate, bootstrap_ci

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
    _accuracy(evidence, scored, scorer)
    _answer_metrics(evidence, [one.answer for one in scored], seed)
    lengths = {length: share(one.score(scorer) for one in group) for length, group in by_length(scored).items()}
    for length, estimate in lengths.items():
        if len(lengths) > 1:
            evidence.metric(f"needle.accuracy.L{length:06d}", estimate)
    evidence.metric("needle.cliff", cliff(lengths, threshold))
    evidence.extend_rows(_row(one) for one in scored)
    evidence.figures += grid_figures(scored, scorer, threshold)
    evidence.parameters.update({"scorer": scorer, "threshold": threshold})
    _remarks(evidence, scored)
    return evidence


def cell_evidence(scored: Sequence[Scored], *, scorer: str = "all", seed: int = 0) -> Evidence:
    """The same for one cell: no cliff, and of the figures the table with its worst sample."""
    evidence = grid_evidence(scored, scorer=scorer, seed=seed)
    del evidence.metrics["needle.cliff"], evidence.parameters["threshold"]
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


def _accuracy(evidence: Evidence, scored: Sequence[Scored], scorer: str) -> None:
    evidence.metric("needle.accuracy", share(one.score(scorer) for one in scored))
    for name in SCORERS:
        evidence.metric(f"needle.{name}", share(one.score(name) for one in scored))
    named = [one.precision for one in scored if one.precision is not None]
    if named:
        evidence.metric("needle.precision", share(named))


def _answer_metrics(evidence: Evidence, answers: Sequence[Answer], seed: int) -> None:
    logprobs = [answer.value_logprob for answer in answers if answer.value_logprob is not None]
    if logprobs:
        mean = bootstrap_ci(logprobs, seed=seed)
        evidence.metric("needle.value_logprob", _with(mean, unit="nats", better="higher"))
        evidence.metric("needle.value_greedy", share(float(bool(answer.value_greedy)) for answer in answers))
    known = [answer for answer in answers if answer.finish != "unknown"]
    if known:
        cut = share(float(answer.finish == "length") for answer in known)
        evidence.metric("needle.cut_answers", _with(cut, unit="share", better="lower"))
    empty = [float(answer.answer is not None and not answer.answer.strip()) for answer in answers]
    evidence.metric("needle.empty_answers", _with(share(empty), better="lower"))
    never = share(float(answer.answer is None) for answer in answers)
    evidence.metric("needle.no_answer", _with(never, better="lower"))


def _with(estimate: Estimate, **changes: Any) -> Estimate:
    from dataclasses import replace

    return replace(estimate, **changes)


def _row(one: Scored) -> dict[str, Any]:
    answer = one.answer
    return {
        "item": one.id,
        "length": one.length,
        "depth": one.depth,
        "actual_depth": round(one.actual_depth, 4),
        **one.scores,
        "precision": one.precision,
        "value_logprob": answer.value_logprob,
        "value_greedy": answer.value_greedy,
        "finish": answer.finish,
        "answer_tokens": answer.tokens,
        "truth": " | ".join(one.outputs),
        "answer": answer.answer,
        "no_answer": answer.answer is None,
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
    closed = sum(one.answer.thought_cut for one in scored)
    if closed:
        evidence.notes.append(f"{closed} of {len(scored)} thoughts were closed at --thinking-tokens")
    cut = sum(one.answer.finish == "length" for one in scored)
    if cut:
        evidence.notes.append(f"{cut} of {len(scored)} answers were cut at the token limit")
    merged = [one.id for one in scored if abs(one.actual_depth - one.depth) > 1 and one.actual_depth >= 0]
    if merged:
        worst = max(abs(one.actual_depth - one.depth) for one in scored if one.actual_depth >= 0)
        evidence.notes.append(
            f"{len(merged)} of {len(scored)} needles stand more than 1 percent from their depth (worst "
            f"{math.ceil(worst * 10) / 10}): sentences are long beside the prompt; boundary 'word' comes nearer"
        )
