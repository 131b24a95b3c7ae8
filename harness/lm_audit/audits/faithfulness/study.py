"""Study: one sample on one model, with every attribution and deletion state of it computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.attribution import Attribution
from lm_audit.audits.faithfulness.deletion.curves import DeletionCurve, DeletionTest
from lm_audit.audits.faithfulness.deletion.metrics import normalised_score, recovery
from lm_audit.audits.faithfulness.methods.explain import Explainer
from lm_audit.audits.faithfulness.passage.samples import Sample, split_thinking
from lm_audit.audits.faithfulness.passage.spans import Span, tokens_in_characters
from lm_audit.errors import DataError
from lm_audit.models.text.thinking import split_reply
from lm_audit.shared.visible import is_blank
from lm_audit.sources import content_digest

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

Vector = NDArray[np.float64]

RANDOM_ORDERS = 3
"""Random attributions whose mean stands for chance beside every score."""

LEAST_GAP = 0.02
"""By how much the gold order must beat random ones for a score between the two to mean anything."""

MAX_NEW_TOKENS = 128


@dataclass(frozen=True)
class Scored:
    """One method on one sample and unit: its deletion curve, recovery, and scores between random (0) and oracle (1)."""

    sample: str
    method: str
    unit: str
    view: str
    curve: DeletionCurve
    recovery: float | None
    rise_normalised: float | None
    mas_normalised: float | None
    content: str | None = None

    def row(self) -> dict[str, Any]:
        """A flat record."""
        return {
            "item": f"{self.sample}/{self.method}",
            "content": self.content,
            "sample": self.sample,
            "method": self.method,
            "unit": self.unit,
            "view": self.view,
            "features": len(self.curve.weights),
            "rise": self.curve.rise,
            "mas": self.curve.mas,
            "rise_ap": self.curve.rise_ap,
            "rise_normalised": self.rise_normalised,
            "mas_normalised": self.mas_normalised,
            "recovery": self.recovery,
            "degenerate": self.curve.degenerate,
            "flat": self.curve.flat,
            "score_before": float(self.curve.scores[0]),
            "score_after": float(self.curve.scores[-1]),
        }


@dataclass
class Study:
    """A sample as the model tokenises it: ``sink`` and ``thinking`` in generation tokens, ``gold`` in user tokens."""

    sample: Sample
    explainer: Explainer
    sink: Span
    thinking: Span | None
    gold: tuple[int, ...]
    attributions: dict[tuple[str, str], Attribution] = field(default_factory=dict)
    references: dict[tuple[str, int | None, str], dict[str, DeletionCurve]] = field(default_factory=dict)

    def attribution(self, method: str, **options: Any) -> Attribution:
        """The attribution of a method, made on first need."""
        key = (method, repr(sorted(options.items())))
        if key not in self.attributions:
            self.attributions[key] = self.explainer.attribute(method, sink=self.sink, thinking=self.thinking, **options)
        return self.attributions[key]

    def test(self, unit: str, steps: int | None, baseline: str) -> DeletionTest:
        """A deletion test of this passage; a curve that another case has asked for is not scored again."""
        return DeletionTest(
            self.explainer.model,
            self.explainer.passage,
            unit=unit,
            steps=steps,
            baseline=baseline,
            perturbations=self.explainer.perturbations(baseline),
        )

    def gold_units(self, unit: str) -> list[int]:
        """The features of the unit that hold evidence."""
        groups = self.explainer.passage.prompt_units(unit).tokens
        return [index for index, group in enumerate(groups) if set(group) & set(self.gold)]

    def reference_curves(self, unit: str, steps: int | None, baseline: str, seed: int) -> dict[str, DeletionCurve]:
        """Curves of a uniform, of random and (where evidence is known) of the gold-order attribution."""
        key = (unit, steps, baseline)
        if key not in self.references:
            test = self.test(unit, steps, baseline)
            self.references[key] = test.curves(reference_weights(len(test.units), self.gold_units(unit), seed))
        return self.references[key]

    def score(
        self, method: str, weights: Any, *, unit: str, view: str, steps: int | None, baseline: str, seed: int
    ) -> Scored:
        """The scores of an attribution (or plain weights) beside this sample's references."""
        test = self.test(unit, steps, baseline)
        features = test.weights(weights, view)
        curve = test.curve(features)
        references = self.reference_curves(unit, steps, baseline, seed)
        gold = self.gold_units(unit)
        return Scored(
            self.sample.name,
            method,
            unit,
            view,
            curve,
            recovery(features, gold) if gold and not curve.flat else None,
            _between(curve.rise, references, "rise"),
            _between(curve.mas, references, "mas"),
            content_digest(self.sample.prompt, self.sample.generation, self.sample.evidence, self.sample.output),
        )


def reference_weights(features: int, gold: Sequence[int], seed: int) -> dict[str, Vector]:
    """Uniform weights, ``RANDOM_ORDERS`` random ones, and 1 on gold features (left out where there are none)."""
    rng = np.random.default_rng([seed, features])
    weights: dict[str, Vector] = {"uniform": np.ones(features)}
    weights |= {f"random-{number}": rng.random(features) for number in range(RANDOM_ORDERS)}
    if gold:
        weights["gold"] = np.isin(np.arange(features), list(gold)).astype(np.float64)
    return weights


def _between(value: float, references: Mapping[str, DeletionCurve], metric: str) -> float | None:
    """A score between the mean of random orders (0) and the gold order (1).

    ``None`` where no evidence is known, or where the gold order itself is no better than random orders.
    """
    if "gold" not in references:
        return None
    chance = float(np.mean([getattr(curve, metric) for name, curve in references.items() if "random" in name]))
    oracle = float(getattr(references["gold"], metric))
    return normalised_score(value, chance, oracle) if chance - oracle >= LEAST_GAP else None


class NoAnswerError(DataError):
    """A sample to which the model gives no answer that could be explained."""


def prepare_all(
    model: LanguageModel, samples: Sequence[Sample], *, chat: bool = False
) -> tuple[list[Study], list[str]]:
    """The studies of samples, and what is to be noted of those to which the model gives no answer: they are left out.

    Raises what :func:`prepare` raises, ``DataError`` also where no sample has an answer.
    """
    studies: list[Study] = []
    without: list[NoAnswerError] = []
    for sample in samples:
        try:
            studies.append(prepare(model, sample, chat=chat))
        except NoAnswerError as error:
            without.append(error)
    if not studies:
        raise without[0]
    said = f"Warning: {len(without)} of {len(samples)} samples have no answer and are left out; the first: "
    return studies, [f"{said}{without[0]}"] if without else []


def prepare(model: LanguageModel, sample: Sample, *, chat: bool = False, max_new_tokens: int = MAX_NEW_TOKENS) -> Study:
    """The study of a sample; the model generates where the sample has no generation.

    ``DataError`` where a span holds no token, :class:`NoAnswerError` where the model generates nothing, or no answer
    follows its thought.
    """
    generation, opened = sample.generation, None
    if generation is None:
        reply = model.generate([sample.prompt], max_new_tokens=max_new_tokens, chat=chat)[0]
        generation, opened = reply.text, reply.opened
        if is_blank(generation):
            raise NoAnswerError(f"sample {sample.name}: the model writes nothing that can be seen or explained")
    explainer = Explainer(model, sample.prompt, generation, chat=chat)
    thinking, output = sample.thinking, sample.output
    if output is None:
        answer = split_reply(generation, opened=opened).answer
        if answer is None or not answer.strip():
            raise NoAnswerError(
                f"sample {sample.name}: the generation ends inside its thought, so there is no answer to explain; "
                "allow more --thinking-tokens, or give output_span"
            )
        found, output = split_thinking(generation, getattr(model.tokenizer, "chat_template", None))
        thinking = thinking or found
    sink = _token_span(explainer, sample, output, "output_span")
    inner = None if thinking is None else _token_span(explainer, sample, thinking, "thinking_span")
    if inner is not None and inner[1] >= sink[0] > inner[0]:
        inner = (inner[0], sink[0] - 1)  # a token that straddles both belongs to the answer
    offsets = explainer.passage.user_offsets
    gold = sorted({token for first, last in sample.evidence for token in tokens_in_characters(offsets, first, last)})
    return Study(sample, explainer, sink, inner, tuple(gold))


def _token_span(explainer: Explainer, sample: Sample, characters: tuple[int, int], name: str) -> Span:
    tokens = tokens_in_characters(explainer.passage.generation_offsets, *characters)
    if not tokens:
        raise DataError(f"sample {sample.name}: {name} {characters} holds no token of the generation")
    return tokens[0], tokens[-1]
