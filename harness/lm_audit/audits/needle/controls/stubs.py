"""Controls: stub answerers of known behaviour, and prompts without a needle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.audits.needle.answers.answerers import Answer
from lm_audit.audits.needle.answers.evaluation import answered, grid_evidence
from lm_audit.audits.needle.controls.answers_known import wrong_of_known_answers
from lm_audit.audits.needle.grid.cells import Scored, by_cell, share
from lm_audit.audits.needle.haystack.sources import embedded_essay
from lm_audit.audits.needle.haystack.text import Haystack
from lm_audit.audits.needle.samples.building import build_sample
from lm_audit.audits.needle.samples.lookup import lookup
from lm_audit.audits.needle.samples.sample import Sample
from lm_audit.audits.needle.samples.task import NeedleTask
from lm_audit.audits.second_opinion import held_by_its_rows, misreported
from lm_audit.evidence import Control, Evidence
from lm_audit.sources import MetricSource
from lm_audit.sources.record import Where

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

STUB_LENGTHS = (2048, 4096)
STUB_DEPTHS = (0.0, 25.0, 50.0, 75.0, 100.0)
THRESHOLD = 0.6
"""Accuracy that ten samples of a length, all answered, show, and of which two show that they fall short."""


class NeedleReader:
    """Reads the question and looks its keys up in the text: what a perfect model does."""

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        """Every value that the prompt states of a key that its question names."""
        return [Answer(", ".join(lookup(sample.prompt, sample.prompt)), "eos") for sample in samples]


class MiddleReader:
    """Sees nothing but the middle of the prompt, ``seen`` of its characters, and the question."""

    def __init__(self, seen: float = 0.2):
        self.seen = seen

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        """What the middle of each prompt states of the keys asked for."""
        return [Answer(", ".join(lookup(sample.prompt, self._middle(sample.input))), "eos") for sample in samples]

    def _middle(self, text: str) -> str:
        half = int(len(text) * self.seen / 2)
        return text[len(text) // 2 - half : len(text) // 2 + half]


def stub_samples(seed: int, *, samples: int = 2, lengths: Sequence[int] = STUB_LENGTHS) -> list[Sample]:
    """Samples for the stubs, in tokens that are bytes: no model is needed."""
    from lm_audit.models.text.byte_tokenizer import byte_tokenizer

    text = embedded_essay().text[: 10 * max(STUB_LENGTHS)]
    haystack = Haystack(text, byte_tokenizer(max(STUB_LENGTHS)))
    return [
        build_sample(
            haystack,
            length=length,
            depth=depth,
            needle=NeedleTask(),
            seed=seed,
            index=index,
            template="base",
            tokens_to_generate=32,
            boundary="word",
        )
        for length in lengths
        for depth in STUB_DEPTHS
        for index in range(samples)
    ]


def _asked(samples: int = 2, lengths: Sequence[int] = STUB_LENGTHS) -> list[tuple[Where, int]]:
    """How many rows of each length and depth :func:`stub_samples` ask for."""
    return [({"length": length, "depth": depth}, samples) for length in lengths for depth in STUB_DEPTHS]


def reader_control(seed: int) -> Evidence:
    """Positive control: a stub that reads the needle scores 1.0 in every cell, by every scorer.

    Its samples must be what the grid says: of their length, no two alike in text or value, needles at their depth. Of
    answers that are known beforehand the audit must report what they are.
    """
    samples = stub_samples(seed)
    scored = answered(NeedleReader(), samples)
    worst = min(one.score(name) for one in scored for name in one.scores)
    alike = len(samples) - min(len({one.prompt for one in samples}), len({one.outputs for one in samples}))
    short = max(abs(one.length - 1 - one.actual_length) for one in samples)
    return _with_control(
        scored,
        worst == 1.0 and not alike and short <= 1,
        "1.0 in every cell by every scorer, no two samples alike, each at most 2 tokens below its length",
        f"lowest score {worst:g} of {len(scored)} samples, {alike} alike, lengths within {short + 1:g}",
        _asked(),
        longest=max(STUB_LENGTHS),
        also=wrong_of_known_answers(samples),
    )


def middle_control(seed: int) -> Evidence:
    """Positive control: a stub that sees the middle fifth finds needles at 50 percent and no others."""
    return _middle(answered(MiddleReader(), stub_samples(seed)), _asked())


def planted_control(seed: int) -> Evidence:
    """Positive control: a language model that looks needles up, through tokenizer, prompt ids, decoding and scoring.

    It must find every value, and give each the log-probability that it was built to give: a prompt of another sample,
    a token too few, a shifted target or answers in another order show in one of the two.
    """
    from lm_audit.audits.needle.controls.planted import SURE, planted_model

    scored = answered(planted_model(), stub_samples(seed, lengths=STUB_LENGTHS[:1], samples=1))
    worst = min(one.score(name) for one in scored for name in one.scores)
    off = max(_distance(one, math.log(SURE)) for one in scored)
    return _with_control(
        scored,
        worst == 1.0 and off < 1e-4,
        f"1.0 in every cell by every scorer, values at {math.log(SURE):.4f} nats a token, each the likeliest",
        f"lowest score {worst:g} of {len(scored)} samples, at most {off:.2g} nats a token off",
        _asked(1, STUB_LENGTHS[:1]),
    )


def planted_middle_control(seed: int) -> Evidence:
    """Positive control: the same language model, seeing the middle fifth alone, finds needles at 50 percent only."""
    from lm_audit.audits.needle.controls.planted import planted_model

    samples = stub_samples(seed, lengths=STUB_LENGTHS[:1], samples=1)
    return _middle(answered(planted_model(MiddleReader().seen), samples), _asked(1, STUB_LENGTHS[:1]))


def _distance(one: Scored, per_token: float) -> float:
    answer = one.answer
    if answer.value_logprob is None or not answer.value_tokens or not answer.value_greedy:
        return math.inf
    distance = abs(answer.value_logprob / answer.value_tokens - per_token)
    return distance if math.isfinite(distance) else math.inf


def _middle(scored: Sequence[Scored], asked: Sequence[tuple[Where, int]] = ()) -> Evidence:
    cells = {cell: share(one.score("all") for one in group).value for cell, group in by_cell(scored).items()}
    wrong = [f"L{length} D{depth:g}: {value:g}" for (length, depth), value in cells.items() if value != (depth == 50.0)]
    observed = "; ".join(wrong) or "as expected in every cell"
    return _with_control(scored, not wrong, "1.0 at depth 50, 0.0 at every other", observed, asked)


CHANCE = 1e-5
"""Probability that an answer holds a value of seven digits by chance, with ten numbers in it."""
LEVEL = 1e-3
"""Probability with which the negative control fails a sound instrument."""


def chance_evidence(model: LanguageModel | Any, samples: Sequence[Sample]) -> Evidence:
    """Negative control: prompts without their needle. The share of answers that hold the value anyway.

    It fails where so many hits come by chance with a probability below 0.001, which one of 99 does.
    """
    scored = answered(model, samples)
    chance = share(one.score("any") for one in scored)
    hits = sum(one.score("any") > 0 for one in scored)
    evidence = grid_evidence(scored)
    faults = misreported(evidence)
    evidence.metrics, evidence.sources = {}, {}
    evidence.metric("needle.chance_rate", chance, MetricSource.mean("any"))
    evidence.headline = "needle.chance_rate"
    evidence.figures = []
    evidence.control = Control(
        "negative",
        silent(hits, len(scored)),
        f"no answer holds a value that its prompt does not (more hits than chance gives in {LEVEL:.1%} of runs fail)",
        f"{hits} of {len(scored)} do, at most {chance.high:.3f} at 95%",
    )
    return held_by_its_rows(evidence, also=faults, counts=[({}, len(samples))])


def silent(hits: int, n: int) -> bool:
    """Whether so many hits of ``n`` answers are what chance gives."""
    return hits == 0 or _by_chance(hits, n) >= LEVEL


def _by_chance(hits: int, n: int) -> float:
    """The probability of so many hits or more."""
    from scipy.stats import binom

    return float(binom.sf(hits - 1, n, CHANCE))


def _with_control(
    scored: Sequence[Scored],
    passed: bool,
    expected: str,
    observed: str,
    asked: Sequence[tuple[Where, int]] = (),
    longest: int | None = None,
    also: Sequence[str] = (),
) -> Evidence:
    evidence = grid_evidence(scored, threshold=THRESHOLD)
    faults = [*misreported(evidence), *_wrong_cliff(evidence, longest), *also]
    # Under a name of its own: a gate on accuracy is meant for models.
    accuracy = evidence.metrics["needle.accuracy"]
    evidence.metrics, evidence.sources = {}, {}
    evidence.metric("needle.control_accuracy", accuracy, MetricSource.mean("all"))
    evidence.headline = "needle.control_accuracy"
    evidence.control = Control("positive", passed, expected, observed)
    return held_by_its_rows(evidence, also=faults, counts=asked)


def _wrong_cliff(evidence: Evidence, longest: int | None) -> list[str]:
    """A cliff that is not ``longest``, up to which every answer holds its needle (``None`` where too few do)."""
    found = evidence.metrics["needle.cliff"].value
    return [] if found == longest else [f"needle.cliff is {found} tokens, by construction it is {longest}"]
