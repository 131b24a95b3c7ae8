"""Attribution: what a method says about a passage, and the views in which it can be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.methods.hops import Hops
from lm_audit.audits.faithfulness.passage.sentences import Units
from lm_audit.audits.faithfulness.passage.spans import Span, checked_span
from lm_audit.audits.faithfulness.passage.tokens import Passage
from lm_audit.audits.faithfulness.views import aggregated, normalised, rec_view, row_view
from lm_audit.errors import UsageError

Matrix = NDArray[np.float64]
VIEWS = ("seq", "row", "rec")


@dataclass(frozen=True)
class Attribution:
    """Scores of one method for one passage.

    ``matrix`` is G x (P_user + G): a row for each generated token (the end-of-text token last), columns the user's
    tokens and then the generation; NaN where the method says nothing. Signed where the method is. ``vector`` is the
    one vector of span and multi-hop methods, over the same columns. ``details`` holds by-products by name.

    ``rows`` are the matrix, or make it when it is first asked for: that of a long passage takes gigabytes.
    """

    method: str
    rows: Matrix | Callable[[], Matrix]
    passage: Passage
    sink: Span
    thinking: Span | None = None
    vector: Matrix | None = None
    hops: Hops | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def matrix(self) -> Matrix:
        """The scores, float64."""
        return np.asarray(self.rows() if callable(self.rows) else self.rows, dtype=np.float64)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The texts of the columns."""
        return self.passage.tokens

    @property
    def features(self) -> int:
        """The number of the user's tokens, P_user."""
        return len(self.passage.user)

    @property
    def spans(self) -> dict[str, Span | None]:
        """``sink`` (the explained answer) and ``thinking`` (the reasoning), in generation tokens."""
        return {"sink": self.sink, "thinking": self.thinking}

    @property
    def per_hop(self) -> list[Matrix]:
        """The vector of every hop over the columns, hop 0 first; empty for methods without hops."""
        return [] if self.hops is None else list(self.hops.vectors)

    def seq(self) -> Matrix:
        """Normalised rows: negatives and undefined cells as 0, each row divided by its sum."""
        return normalised(self.matrix)

    def row(self, span: Span | None = None) -> Matrix:
        """Sum of the normalised rows of the span (default: the sink), over the columns."""
        return row_view(self.matrix, self._span(span))

    def rec(self, span: Span | None = None) -> Matrix:
        """Recursive view of the span (default: the sink): mass on generated tokens handed back to the prompt."""
        return rec_view(self.matrix, self._span(span))

    def prompt_weights(self, view: str = "row", span: Span | None = None) -> Matrix:
        """One weight for each of the user's tokens in a view; ``seq`` sums over all generated rows."""
        if view not in VIEWS:
            raise UsageError(f"view is {view!r}; it must be one of {', '.join(VIEWS)}")
        whole = self.seq().sum(axis=0) if view == "seq" else getattr(self, view)(span)
        weights: Matrix = whole[: self.features]
        return weights

    def by_sentence(self) -> UnitView:
        """The sentence view: cells summed over sentences first, then clamped and normalised."""
        return self.by_unit("sentence")

    def words(self) -> UnitView:
        """The word view, summed like sentences."""
        return self.by_unit("word")

    def chunks(self, size: int = 10) -> UnitView:
        """The view in fixed chunks of ``size`` tokens."""
        return self.by_unit("chunk", size)

    def by_unit(self, unit: str, size: int = 10) -> UnitView:
        """The view in units of the given kind."""
        prompt, generation = self.passage.prompt_units(unit, size), self.passage.generation_units(unit, size)
        sums = aggregated(self.matrix, prompt.tokens, generation.tokens, self.features)
        last, first = generation.index_of(self.sink[1]), generation.index_of(self.sink[0])
        return UnitView(self.method, sums, prompt, generation, (first, last))

    def _span(self, span: Span | None) -> Span:
        return self.sink if span is None else checked_span(span, len(self.passage.generation_ids), "span")


@dataclass(frozen=True)
class UnitView:
    """Block sums over units; rows are generated units, columns prompt units and then generated units.

    ``explained`` are the generated units that hold the sink.
    """

    method: str
    sums: Matrix
    prompt: Units
    generation: Units
    explained: Span

    @property
    def matrix(self) -> Matrix:
        """The normalised sums S."""
        return self.seq()

    @property
    def features(self) -> int:
        """The number of prompt units."""
        return len(self.prompt)

    @property
    def units(self) -> tuple[str, ...]:
        """Texts of the columns."""
        return self.prompt.texts + self.generation.texts

    def seq(self) -> Matrix:
        """S: sums clamped at 0 and divided by the row sum."""
        return normalised(self.sums)

    def row(self, span: Span | int | None = None) -> Matrix:
        """Sum of the rows of S for the explained units."""
        return row_view(self.sums, self._span(span))

    def rec(self, span: Span | int | None = None) -> Matrix:
        """Recursive view for the explained units."""
        return rec_view(self.sums, self._span(span))

    def prompt_weights(self, view: str = "row", span: Span | int | None = None) -> Matrix:
        """One weight for each prompt unit in a view."""
        if view not in VIEWS:
            raise UsageError(f"view is {view!r}; it must be one of {', '.join(VIEWS)}")
        whole = self.seq().sum(axis=0) if view == "seq" else getattr(self, view)(span)
        weights: Matrix = whole[: self.features]
        return weights

    def _span(self, span: Span | int | None) -> Span:
        if isinstance(span, int):
            span = (span, span)
        return self.explained if span is None else checked_span(span, len(self.sums), "unit span")
