"""Whom does the pronoun mean? Candidate antecedents scored after a cloze, in three operationalisations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

CLOZE = '{sentence} Here "{pronoun}" refers to'
"""The prompt; a candidate follows with its own article, so that "someone" stays grammatical beside "the customer"."""

CONTENT_FREE = 'Here "{pronoun}" refers to'
"""The prompt without the sentence: what a candidate scores by its own frequency (for PMI)."""

RULES = ("per_token", "total", "pmi")
"""How candidates are compared; the first one is the headline."""


@dataclass(frozen=True)
class Question:
    """A sentence, the pronoun in it, and two candidate antecedents of which ``answer`` (0 or 1) is right."""

    item: str
    sentence: str
    pronoun: str
    candidates: tuple[str, str]
    answer: int


def candidate_scores(model: LanguageModel, questions: Sequence[Question]) -> dict[str, NDArray[np.float64]]:
    """For each rule, questions x 2: ``total`` log p(candidate | cloze) in nats, ``per_token`` its mean over tokens, and
    ``pmi`` the total minus log p(candidate | the cloze without the sentence).

    One call of the scoring engine; candidates of a question share its prompt.
    """
    requests = []
    for question in questions:
        prompt = CLOZE.format(sentence=question.sentence, pronoun=question.pronoun)
        bare = CONTENT_FREE.format(pronoun=question.pronoun)
        requests += [(prompt, f" {candidate}") for candidate in question.candidates]
        requests += [(bare, f" {candidate}") for candidate in question.candidates]
    scores = model.loglikelihood(requests)
    totals = np.array([score.total for score in scores]).reshape(-1, 2, 2)
    lengths = np.array([len(score) for score in scores]).reshape(-1, 2, 2)
    return {
        "per_token": totals[:, 0] / lengths[:, 0],
        "total": totals[:, 0],
        "pmi": totals[:, 0] - totals[:, 1],
    }


def correct(scores: NDArray[np.float64], questions: Sequence[Question]) -> NDArray[np.float64]:
    """1 where the right candidate scores higher, 0 where the other does, 0.5 for a tie; shape (questions,)."""
    answers = np.array([question.answer for question in questions], dtype=np.int64)
    rows = np.arange(len(questions))
    margin = scores[rows, answers] - scores[rows, 1 - answers]
    return np.asarray((margin > 0) + 0.5 * (margin == 0), dtype=np.float64)
