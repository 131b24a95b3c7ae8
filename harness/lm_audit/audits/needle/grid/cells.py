"""Scored samples and the shares of cells, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lm_audit.audits.needle.answers.answerers import Answer
from lm_audit.audits.needle.answers.scores import precision, score_all, score_any, score_boundary
from lm_audit.audits.needle.samples.sample import Sample
from lm_audit.sources import content_digest
from lm_audit.stats import Estimate
from lm_audit.stats import share as exact_share

SCORERS: dict[str, Callable[[str, Sequence[str]], float]] = {
    "all": score_all,
    "any": score_any,
    "boundary": score_boundary,
}


@dataclass(frozen=True)
class Scored:
    """One answered sample and its scores; the prompt is kept only as an excerpt round the needle.

    ``stretch`` names the haystack's stretch where several samples share one, ``None`` where each has its own.
    """

    id: str
    length: int
    depth: float
    actual_depth: float
    scores: dict[str, float]
    precision: float | None
    answer: Answer
    outputs: tuple[str, ...]
    excerpt: str
    stretch: str | None = None
    content: str | None = None

    def score(self, scorer: str) -> float:
        """Share of references found, 0 to 1."""
        return self.scores[scorer]


def score_sample(sample: Sample, answer: Answer) -> Scored:
    """The sample with all scores of its answer; an answer that never came found nothing."""
    return Scored(
        sample.id,
        sample.length,
        sample.target_position,
        sample.actual_position,
        {name: scorer(answer.answer or "", sample.outputs) for name, scorer in SCORERS.items()},
        precision(answer.answer or "", sample.outputs),
        answer,
        sample.outputs,
        excerpt(sample),
        f"stretch {sample.index}" if sample.metadata.get("windows") == "shared" else None,
        content_digest(sample.metadata.get("haystack_type"), sample.needles or sample.input, sample.outputs),
    )


def excerpt(sample: Sample, around: int = 120) -> str:
    """The text around the first needle."""
    if not sample.needles:
        return sample.input[-2 * around :]
    at = sample.input.find(sample.needles[0])
    end = at + len(sample.needles[0])
    begin = max(0, at - around)
    return ("…" if begin else "") + sample.input[begin : end + around] + "…"


def share(scores: Iterable[float], clusters: Sequence[str] | None = None, *, confidence: float = 0.95) -> Estimate:
    """The mean of scores between 0 and 1 with the interval of :func:`lm_audit.stats.share`, and its direction.

    ``clusters``: the stretch of haystack of each sample, where samples share stretches.

    Where several references make a score a fraction, the interval is that of a yes-no answer with the same mean, which
    is wider than need be: no score between 0 and 1 varies more.
    """
    values = list(scores)
    if not values:
        return Estimate.not_estimable("no sample", n=0, method="Clopper-Pearson")
    return replace(exact_share(values, clusters, confidence=confidence), better="higher")


def stretches(scored: Sequence[Scored]) -> list[str] | None:
    """The stretch of each sample where samples share stretches: they are no independent answers then."""
    return [one.stretch or one.id for one in scored] if any(one.stretch for one in scored) else None


def by_cell(scored: Iterable[Scored]) -> dict[tuple[int, float], list[Scored]]:
    """Samples by length and depth, both ascending."""
    cells: dict[tuple[int, float], list[Scored]] = {}
    for one in scored:
        cells.setdefault((one.length, one.depth), []).append(one)
    return dict(sorted(cells.items()))


def by_length(scored: Iterable[Scored]) -> dict[int, list[Scored]]:
    """Samples by length, ascending."""
    lengths: dict[int, list[Scored]] = {}
    for one in scored:
        lengths.setdefault(one.length, []).append(one)
    return dict(sorted(lengths.items()))
