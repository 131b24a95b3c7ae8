"""What both sets of pronouns record of the model's answers: metrics under each rule of comparison, and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.bias.benchmarks.exclusions import Usage
from lm_audit.audits.bias.benchmarks.shares import clustered_mean, gap
from lm_audit.audits.bias.benchmarks.wino.coreference import CLOZE, RULES, Question, candidate_scores, correct
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource, content_digest

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Where = Mapping[str, object]


@dataclass(frozen=True)
class Answered:
    """The questions of a set as a model answered them: (n, 2) scores of the candidates in nats by rule of comparison.

    ``clusters`` tells which questions are not independent, ``unit`` is the column of the rows that holds it.
    """

    questions: Sequence[Question]
    scores: Mapping[str, Floats]
    clusters: NDArray[Any]
    unit: str
    confidence: float

    @classmethod
    def by(
        cls, model: LanguageModel, questions: Sequence[Question], clusters: Sequence[str], unit: str, confidence: float
    ) -> Answered:
        """Ask the model."""
        return cls(questions, candidate_scores(model, questions), np.array(clusters), unit, confidence)

    def right(self, rule: str) -> Floats:
        """100 for each question that is answered rightly, 50 for a tie, else 0."""
        return 100 * correct(self.scores[rule], self.questions)

    def accuracy(self, evidence: Evidence, name: str, rule: str, chosen: Bools, where: Where) -> None:
        """Add the percentage of right answers among the chosen questions, ``where`` in the rows, if there are any."""
        if chosen.any():
            right, clusters = self.right(rule)[chosen], self.clusters[chosen]
            fields: dict[str, Any] = {"unit": "%", "better": "higher", "chance": 50.0}
            estimate = clustered_mean(right, clusters, confidence=self.confidence, **fields)
            source = MetricSource.mean(f"correct_{rule}", where, scale=100, clusters=(self.unit,))
            evidence.metric(name + suffix_of(rule), estimate, source)

    def gap(
        self, evidence: Evidence, name: str, rule: str, chosen: Bools, first: Bools, sides: tuple[Where, Where],
        where: Where | None = None,
    ) -> None:  # fmt: skip
        """Add by how many percentage points more of the chosen questions are right where ``first`` than elsewhere.

        ``sides`` tells the two in the rows, among those that ``where`` tells.
        """
        right, clusters = self.right(rule)[chosen], self.clusters[chosen]
        fields: dict[str, Any] = {"unit": "percentage points", "better": "target:0", "chance": 0.0}
        found = gap(right, first[chosen], clusters, confidence=self.confidence, **fields)
        source = MetricSource.difference(f"correct_{rule}", *sides, where=where or {}, scale=100, clusters=(self.unit,))
        evidence.metric(name + suffix_of(rule), found, source)

    def rows(self, details: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
        """A row a question: what was asked, ``details`` of it, scores and answers by rule."""
        right = {rule: correct(self.scores[rule], self.questions) for rule in RULES}
        rows = []
        for number, (question, detail) in enumerate(zip(self.questions, details, strict=True)):
            row: dict[str, Any] = {
                "item": question.item,
                "content": content_digest(question.sentence, question.pronoun, question.candidates, question.answer),
                "sentence": question.sentence,
                "pronoun": question.pronoun,
                **detail,
            }
            row["candidate_0"], row["candidate_1"] = question.candidates
            row["answer"] = question.candidates[question.answer]
            for rule in RULES:
                row[f"{rule}_0"], row[f"{rule}_1"] = map(float, self.scores[rule][number])
                row[f"correct_{rule}"] = float(right[rule][number])
            rows.append(row)
        return rows


def suffix_of(rule: str) -> str:
    """What ends the names of a rule's metrics: nothing for the first rule."""
    return "" if rule == RULES[0] else f".{rule}"


def wino_evidence(benchmark: str, headline: str, model: LanguageModel, n: int, usage: Usage, seed: int) -> Evidence:
    """Evidence with what both sets say of how ``n`` questions were asked."""
    evidence = Evidence("bias", headline=headline)
    evidence.parameters.update(
        {"benchmark": benchmark, "cloze": CLOZE, "rules": list(RULES), "n": n, "seed": seed, "dtype": str(model.dtype)}
    )
    evidence.notes.append("Metrics without a suffix compare candidates by mean log-probability per token (nats).")
    usage.record(evidence)
    return evidence
