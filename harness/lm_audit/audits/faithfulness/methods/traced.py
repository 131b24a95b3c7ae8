"""A model and a passage whose forward pass is made once, and what a method makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.deletion.perturb import Perturbations
from lm_audit.audits.faithfulness.methods.hops import Hops
from lm_audit.audits.faithfulness.methods.method_options import Options
from lm_audit.audits.faithfulness.passage.spans import Span
from lm_audit.audits.faithfulness.passage.tokens import Passage, Prompt, passage_of

if TYPE_CHECKING:
    from lm_audit.audits.faithfulness.methods.kept import KeptTensors
    from lm_audit.audits.faithfulness.methods.trace import Trace
    from lm_audit.models.language_model import LanguageModel

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What a method returns: a matrix over the columns (or what makes it), and what it may have besides."""

    matrix: Vector | Callable[[], Vector]
    vector: Vector | None = None
    hops: Hops | None = None
    details: dict[str, Any] | None = None


Method = Callable[["TracedPassage", Options], Outcome]


class TracedPassage:
    """A model and a passage; the forward pass is made on first need and then serves every method."""

    def __init__(
        self, model: LanguageModel, prompt: Prompt, generation: str | Sequence[int], *, chat: bool = False
    ) -> None:
        self._begin(model, passage_of(model, prompt, generation, chat=chat))

    @classmethod
    def of(cls, model: LanguageModel, passage: Passage) -> Self:
        """That of a passage that is tokenised already."""
        made = cls.__new__(cls)
        made._begin(model, passage)
        return made

    def _begin(self, model: LanguageModel, passage: Passage) -> None:
        self.model, self.passage = model, passage
        self._perturbations: dict[tuple[str, int], Perturbations] = {}

    @property
    def rows(self) -> list[int]:
        """Absolute positions of the generation tokens."""
        start = len(self.passage.prompt_ids)
        return list(range(start, start + len(self.passage.generation_ids)))

    @cached_property
    def trace(self) -> Trace:
        """The passage's forward pass."""
        from lm_audit.audits.faithfulness.methods.trace import trace_passage

        return trace_passage(self.model.module, self.passage.ids)

    def kept(self, method: str, *settings: object) -> KeptTensors:
        """Where an attribution of this passage keeps what it computes; ``settings`` are all that it hangs on beside."""
        from lm_audit.audits.faithfulness.methods.kept import KeptTensors

        return KeptTensors(self.passage.ids, method, *settings)

    def perturbations(self, baseline: str = "eos", seed: int = 0) -> Perturbations:
        """Scores of this passage with positions overwritten, shared by ablations and deletion curves."""
        return self._perturbations.setdefault((baseline, seed), Perturbations(self.model, self.passage, baseline, seed))

    def positions(self, span: Span) -> list[int]:
        """Absolute positions of a span."""
        start = len(self.passage.prompt_ids)
        return list(range(start + span[0], start + span[1] + 1))
