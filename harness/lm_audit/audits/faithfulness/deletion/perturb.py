"""Perturbed passages and their scores: tokens overwritten by a baseline token, one for one, length unchanged.

Scores come from the scoring engine, which computes each distinct prefix once. What is remembered is a whole call: the
last digits of a score depend on what is computed with it, and a case must not depend on the cases before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.passage.tokens import Passage
from lm_audit.errors import UsageError
from lm_audit.models.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

Vector = NDArray[np.float64]
_Key = tuple[frozenset[int], int]
BASELINES = ("eos", "pad", "mean", "random")


def baseline_ids(tokenizer: Tokenizer, baseline: str, length: int, seed: int = 0) -> list[int]:
    """The replacement id of each of ``length`` positions for the baselines "eos", "pad" and "random".

    "pad" falls back to the end-of-text token; "random" draws from the ordinary vocabulary, the same for the same seed.
    """
    if baseline == "random":
        special = set(tokenizer.all_special_ids)
        ordinary = [index for index in range(len(tokenizer)) if index not in special]
        return [int(index) for index in np.random.default_rng(seed).choice(ordinary, size=length)]
    if baseline not in ("eos", "pad"):
        raise UsageError(f"baseline is {baseline!r}; it must be one of {', '.join(BASELINES)}")
    single = tokenizer.eos_token_id
    if baseline == "pad" and tokenizer.pad_token_id is not None:
        single = tokenizer.pad_token_id
    if single is None:
        raise UsageError(
            f"baseline {baseline!r} needs a token that this tokenizer does not have; use 'random' or 'mean'"
        )
    return [int(single)] * length


@dataclass(frozen=True)
class Scores:
    """What the model says about generation tokens: log-probabilities, and (where asked) their vocabulary's mean."""

    logprobs: Vector
    means: Vector | None = None


@dataclass
class Perturbations:
    """Scores of a passage with some positions overwritten; positions are absolute, in prompt or generation."""

    model: LanguageModel
    passage: Passage
    baseline: str = "eos"
    seed: int = 0
    known: dict[tuple[tuple[_Key, ...], bool], dict[_Key, Scores]] = field(default_factory=dict)
    sequences: int = 0

    def score(self, changes: Sequence[tuple[Iterable[int], int]], *, means: bool = False) -> list[Scores]:
        """Scores of the generation tokens from ``start`` on for each ``(positions, start)``, in one call.

        States that are asked for twice within it are scored once, and so is a call that is made again.

        ``means=True`` also gives the mean log-probability of the vocabulary, which the CLP score needs.
        """
        keys = [(frozenset(positions), start) for positions, start in changes]
        distinct = tuple(dict.fromkeys(keys))
        call = (distinct, means)
        if distinct and call not in self.known:
            self.sequences += len(distinct)
            self.known[call] = dict(zip(distinct, self._compute(distinct, means), strict=True))
        return [self.known[call][key] for key in keys]

    def totals(self, changes: Sequence[Iterable[int]]) -> Vector:
        """Log-likelihood of the whole generation for each set of overwritten positions."""
        return np.array([scores.logprobs.sum() for scores in self.score([(change, 0) for change in changes])])

    def _compute(self, keys: Sequence[_Key], means: bool) -> list[Scores]:
        ids = self.passage.ids
        mean_embedding = self.baseline == "mean"
        replacement = None if mean_embedding else baseline_ids(self.model.tokenizer, self.baseline, len(ids), self.seed)
        if means or replacement is None:
            from lm_audit.audits.faithfulness.deletion.direct import direct_scores

            return [Scores(*pair) for pair in direct_scores(self.model, self.passage, keys, replacement)]
        requests = []
        for positions, start in keys:
            changed = [replacement[i] if i in positions else token for i, token in enumerate(ids)]
            cut = len(self.passage.prompt_ids) + start
            requests.append((changed[:cut], changed[cut:]))
        results = self.model.loglikelihood(requests, bos="none")
        return [Scores(np.asarray(result.logprobs, dtype=np.float64)) for result in results]
