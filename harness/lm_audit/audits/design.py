"""Design: what an audit can say, before anything runs, of a metric that a case will record.

An audit declares its designs in ``lm_audit/audits/<audit>/planning.py``::

    def designs(test: str, params: Mapping[str, Any], options: PlanOptions) -> Iterable[Design]

``test`` is the name of the test function and ``params`` are those of the case; a test that the audit says nothing of
has no designs. ``lm-audit plan`` finds the modules by looking and knows none of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from lm_audit.models.text.tokenizer import Tokenizer

Kind = Literal["share", "shares", "mean", "difference", "auc", "bound", "test"]
"""What the metric is: a share of yes-no answers, the largest difference between shares of answers to the same requests,
a mean, a difference of two groups' means, an AUC, a bound (one-sided, or one of ``steps``), or a test whose p-value has
no interval."""


class PlanOptions(Protocol):
    """What a plan is made from: the options of a run, and what is known of the case's model before it loads."""

    @property
    def size(self) -> str:
        """``--size``."""
        ...

    @property
    def seed(self) -> int:
        """``--seed``."""
        ...

    @property
    def thinking_tokens(self) -> int:
        """``--thinking-tokens``: how much a model may think before an answer."""
        ...

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The model's tokenizer, None where it is not on this machine or the case has no model."""
        ...

    @property
    def context(self) -> int | None:
        """Tokens that the model reads at most, None where nobody says."""
        ...

    def items(self, of_size: int | None, own: int | None = None) -> int | None:
        """How many items of a set are measured: by the audit's own option, ``--limit`` or the size."""

    def option(self, name: str) -> Any:
        """An audit's own option."""


@dataclass(frozen=True)
class Design:
    """A metric that a case will record, and how much will stand behind it.

    ``metric`` may be a glob (``bias.contrast.*``). ``units`` counts independent units (``counted`` says of what: the
    smaller side where two are compared), ``None`` where only the run can tell. ``sd`` is the standard deviation of one
    unit's value in ``unit``, as measured on an ordinary model; without it half widths are given in standard deviations.
    ``others`` counts the units of the larger side of two (of "difference" and "auc"), ``None`` where it has as many.
    ``low`` and ``high`` bound the metric, ``chance`` is what chance gives. ``fewest`` as in ``Estimate``. ``never``
    says why no verdict can come of it at this size, whatever the model does. ``reach``: how far from chance the mean of
    a unit that was not drawn may lie, for which the interval allows.

    How wide an interval becomes: ``tails`` is whether it reaches further where few values look skewed (of means and
    differences of values, and of shares of several draws; not of crossed tables and of other shares). ``crossed``
    counts the levels of the other factor of a table. ``looks`` counts the differences of which the largest is reported.
    ``answers``: of a share over clusters, how many independent answers they are worth
    (:func:`lm_audit.stats.shares.clustered_share.expected_answers`). ``steps``: the few values that a metric can take,
    in order, which are the ends of its interval too.
    """

    metric: str
    kind: Kind
    units: int | None
    counted: str = "items"
    sd: float | None = None
    unit: str = ""
    chance: float | None = None
    low: float | None = None
    high: float | None = None
    fewest: int | None = None
    others: int | None = None
    headline: bool = False
    never: str | None = None
    reach: float | None = None
    tails: bool = True
    crossed: int | None = None
    looks: int = 1
    answers: float | None = None
    steps: tuple[float, ...] = ()

    def many(self, units: int) -> str:
        """``units`` with what they are: "8 samples", "1 sample"."""
        first, space, rest = self.counted.partition(" ")
        if units == 1:
            first = re.sub(r"ies$", "y", first) if first.endswith("ies") else re.sub(r"(?<=ch)es$|s$", "", first)
        return f"{units} {first}{space}{rest}"
