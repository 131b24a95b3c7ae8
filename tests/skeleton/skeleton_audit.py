"""A whole audit in one page: does a model prefer to repeat the last word that it read?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import wilson

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

CONTROL_WORD = "window"


def last_word(sentence: str) -> str:
    """The sentence's last word, without its punctuation."""
    return sentence.split()[-1].strip(".,!?")


def repetition(model: LanguageModel, sentences: Sequence[str]) -> Evidence:
    """How often the last word is likelier to come again than a word that was not there; chance is one half."""
    requests = [(sentence, f" {word}") for sentence in sentences for word in (last_word(sentence), CONTROL_WORD)]
    scores = model.loglikelihood(requests)
    margins = [again.total - other.total for again, other in zip(scores[::2], scores[1::2], strict=True)]
    evidence = Evidence("skeleton", headline="skeleton.repetition_rate")
    rate = wilson(sum(margin > 0 for margin in margins), len(margins))
    rate = replace(rate, better="lower", chance=0.5)
    evidence.metric("skeleton.repetition_rate", rate, MetricSource.mean("repeated"))
    evidence.extend_rows(
        {"item": sentence, "margin": margin, "repeated": margin > 0}
        for sentence, margin in zip(sentences, margins, strict=True)
    )
    return evidence
