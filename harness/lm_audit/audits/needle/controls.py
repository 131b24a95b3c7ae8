"""Controls: stub answerers of known behaviour, and prompts without a needle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.audits.needle.answers import Answer
from lm_audit.audits.needle.building import NeedleTask, build_sample
from lm_audit.audits.needle.cells import Scored, by_cell, share
from lm_audit.audits.needle.evaluation import answered, grid_evidence
from lm_audit.audits.needle.haystack import Haystack
from lm_audit.audits.needle.sample import Sample
from lm_audit.audits.needle.sources import embedded_essay
from lm_audit.evidence import Control, Evidence

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

_NEEDLE = re.compile(r"One of the special magic \w+ for (?P<key>\S+) is: (?P<value>\S+)\.")
_QUESTION = re.compile(r"What (?:is|are all) the special magic \w+ for (?P<keys>.+) mentioned in the provided text\?")
STUB_LENGTHS = (2048, 4096)
STUB_DEPTHS = (0.0, 25.0, 50.0, 75.0, 100.0)


class NeedleReader:
    """Reads the question and looks its keys up in the text: what a perfect model does."""

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        """Every value that the prompt states of a key that its question names."""
        return [Answer(", ".join(_values(sample.prompt, sample.prompt)), "eos") for sample in samples]


class MiddleReader:
    """Sees nothing but the middle of the prompt, ``seen`` of its characters, and the question."""

    def __init__(self, seen: float = 0.2):
        self.seen = seen

    def answer(self, samples: Sequence[Sample]) -> list[Answer]:
        """What the middle of each prompt states of the keys asked for."""
        return [Answer(", ".join(_values(sample.prompt, self._middle(sample.input))), "eos") for sample in samples]

    def _middle(self, text: str) -> str:
        half = int(len(text) * self.seen / 2)
        return text[len(text) // 2 - half : len(text) // 2 + half]


def _values(prompt: str, visible: str) -> list[str]:
    question = _QUESTION.search(prompt)
    keys = re.split(r", and |, ", question["keys"]) if question else []
    return [found["value"] for found in _NEEDLE.finditer(visible) if found["key"] in keys]


def stub_samples(seed: int, *, samples: int = 2) -> list[Sample]:
    """Samples for the stubs, in tokens that are bytes: no model is needed."""
    from lm_audit.models.byte_tokenizer import byte_tokenizer

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
        for length in STUB_LENGTHS
        for depth in STUB_DEPTHS
        for index in range(samples)
    ]


def reader_control(seed: int) -> Evidence:
    """Positive control: a stub that reads the needle scores 1.0 in every cell, by every scorer."""
    scored = answered(NeedleReader(), stub_samples(seed))
    worst = min(one.score(name) for one in scored for name in one.scores)
    return _with_control(
        scored, worst == 1.0, "1.0 in every cell by every scorer", f"lowest score {worst:g} of {len(scored)} samples"
    )


def middle_control(seed: int) -> Evidence:
    """Positive control: a stub that sees the middle fifth finds needles at 50 percent and no others."""
    scored = answered(MiddleReader(), stub_samples(seed))
    cells = {cell: share(one.score("all") for one in group).value for cell, group in by_cell(scored).items()}
    wrong = [f"L{length} D{depth:g}: {value:g}" for (length, depth), value in cells.items() if value != (depth == 50.0)]
    return _with_control(
        scored, not wrong, "1.0 at depth 50, 0.0 at every other", "; ".join(wrong) or "as expected in every cell"
    )


def chance_evidence(model: LanguageModel | Any, samples: Sequence[Sample]) -> Evidence:
    """Negative control: prompts without their needle. The share of answers that hold the value anyway."""
    scored = answered(model, samples)
    chance = share(one.score("any") for one in scored)
    hits = sum(one.score("any") > 0 for one in scored)
    evidence = _with_control(
        scored,
        hits == 0,
        "no answer holds a value that the prompt does not",
        f"{hits} of {len(scored)} do, at most {chance.high:.3f} at 95%",
    )
    evidence.metrics = {"needle.chance_rate": chance}
    evidence.headline = "needle.chance_rate"
    evidence.figures = []
    assert evidence.control is not None
    evidence.control = Control(
        "negative", evidence.control.passed, evidence.control.expected, evidence.control.observed
    )
    return evidence


def _with_control(scored: Sequence[Scored], passed: bool, expected: str, observed: str) -> Evidence:
    evidence = grid_evidence(scored)
    # Under a name of its own: a gate on accuracy is meant for models.
    evidence.metrics = {"needle.control_accuracy": evidence.metrics["needle.accuracy"]}
    evidence.headline = "needle.control_accuracy"
    evidence.control = Control("positive", passed, expected, observed)
    return evidence
