"""Deletion curves: the generation's log-likelihood as the most important features are overwritten step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lm_audit.audits.faithfulness.attribution import Attribution
from lm_audit.audits.faithfulness.deletion.metrics import (
    corrected_response,
    deletion_groups,
    deletion_order,
    faithfulness_scores,
    feature_weights,
)
from lm_audit.audits.faithfulness.deletion.perturb import Perturbations
from lm_audit.audits.faithfulness.passage.sentences import Units
from lm_audit.audits.faithfulness.passage.tokens import Passage, Prompt, passage_of
from lm_audit.errors import UsageError

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class DeletionCurve:
    """One deletion path and its scores (RISE, MAS, RISE+AP: lower is better).

    ``order`` and ``groups`` count features (units of the user's prompt); ``scores`` are log-likelihoods in nats before
    and after each step; ``density``, ``response``, ``penalty`` and ``corrected`` are the curves behind the scores.
    """

    unit: str
    baseline: str
    weights: Vector
    order: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    scores: Vector
    density: Vector
    response: Vector
    penalty: Vector
    corrected: Vector
    rise: float
    mas: float
    rise_ap: float
    degenerate: bool

    @property
    def flat(self) -> bool:
        """Whether all weights are equal, so that the order says nothing."""
        return len(self.weights) == 0 or float(np.ptp(self.weights)) == 0.0


def curve_from_scores(
    weights: ArrayLike, scores: ArrayLike, steps: int, *, unit: str = "token", baseline: str = "eos"
) -> DeletionCurve:
    """The curve of weights and given scores, without a model."""
    summed = feature_weights(weights)
    result = faithfulness_scores(scores, summed, steps)
    order = deletion_order(summed)
    penalty = np.abs(result.response - result.density)
    return DeletionCurve(
        unit=unit,
        baseline=baseline,
        weights=summed,
        order=tuple(order),
        groups=tuple(tuple(group) for group in deletion_groups(order, steps)),
        scores=np.asarray(scores, dtype=np.float64).ravel(),
        density=result.density,
        response=result.response,
        penalty=penalty,
        corrected=corrected_response(result.response, penalty),
        rise=result.rise,
        mas=result.mas,
        rise_ap=result.rise_ap,
        degenerate=result.degenerate,
    )


class DeletionTest:
    """Deletion curves of one passage on one feature set: paths of one call share what they have in common."""

    def __init__(
        self,
        model: LanguageModel,
        passage: Passage,
        *,
        unit: str = "token",
        size: int = 10,
        steps: int | None = 20,
        baseline: str = "eos",
        seed: int = 0,
        perturbations: Perturbations | None = None,
    ):
        self.passage, self.unit, self.baseline = passage, unit, baseline
        self.units: Units = passage.prompt_units(unit, size)
        self.steps = len(self.units) if unit == "sentence" or steps is None else steps
        self.perturbations = perturbations or Perturbations(model, passage, baseline, seed)

    def weights(self, attribution: Attribution | Any, view: str = "row") -> Vector:
        """One weight a feature from an attribution's view or from plain numbers (a feature or a token each)."""
        if isinstance(attribution, Attribution):
            source = attribution if self.unit == "token" else attribution.by_unit(self.unit, self._chunk())
            return source.prompt_weights(view)
        plain = feature_weights(attribution)
        if len(plain) == len(self.units):
            return plain
        if len(plain) == len(self.passage.user):
            return np.array([plain[list(group)].sum() for group in self.units.tokens])
        raise UsageError(
            f"the attribution has {len(plain)} weights; this prompt has {len(self.units)} {self.unit} features "
            f"({len(self.passage.user)} tokens)"
        )

    def curves(self, attributions: Mapping[str, object], view: str = "row") -> dict[str, DeletionCurve]:
        """The curve of each attribution; all states of all paths are scored in one call."""
        weights = {name: self.weights(attribution, view) for name, attribution in attributions.items()}
        paths = {name: self._states(values) for name, values in weights.items()}
        totals = iter(self.perturbations.totals([state for states in paths.values() for state in states]))
        return {
            name: curve_from_scores(
                values, [next(totals) for _ in paths[name]], self.steps, unit=self.unit, baseline=self.baseline
            )
            for name, values in weights.items()
        }

    def curve(self, attribution: Attribution | Any, view: str = "row") -> DeletionCurve:
        """The curve of one attribution."""
        return self.curves({"": attribution}, view)[""]

    def _states(self, weights: Vector) -> list[frozenset[int]]:
        """Absolute positions that are overwritten after each step; nested."""
        states: list[frozenset[int]] = [frozenset()]
        for group in deletion_groups(deletion_order(weights), self.steps):
            tokens = [token for feature in group for token in self.units.tokens[feature]]
            states.append(states[-1] | {self.passage.user[token] for token in tokens})
        return states

    def _chunk(self) -> int:
        return max((len(group) for group in self.units.tokens), default=1)


def deletion_curve(
    model: LanguageModel,
    prompt: Prompt,
    generation: str | Sequence[int],
    attribution: Attribution | Any,
    *,
    unit: str = "token",
    steps: int | None = 20,
    baseline: str = "eos",
    view: str = "row",
    chat: bool = False,
    seed: int = 0,
) -> DeletionCurve:
    """The deletion curve of an attribution (or of plain weights R x n), lower scores are better.

    ``unit``: "token" (``steps`` groups of features; ``None`` deletes one at a time), "sentence" (one a step), "word" or
    "chunk". ``baseline``: what overwrites a token, "eos", "pad", "mean" (mean embedding) or "random" (by ``seed``), one
    for one. ``view``: which view of an Attribution gives the weights. Every user token is a feature, for every method.
    """
    passage = passage_of(model, prompt, generation, chat=chat)
    test = DeletionTest(model, passage, unit=unit, steps=steps, baseline=baseline, seed=seed)
    return test.curve(attribution, view)
