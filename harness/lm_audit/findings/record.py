"""Finding: one conclusion of an audit, as it is kept in the ledger and shown everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from lm_audit.findings.beyond import Side, beyond_null
from lm_audit.findings.excluding import excluded_words
from lm_audit.shared.lazy import from_above
from lm_audit.shared.visible import visible
from lm_audit.stats.estimate import Estimate

Kind = Literal["claim", "control"]
"""A claim about the model, or what a control showed of the audit itself."""

Word = Literal["found", "not found", "cannot tell"]

SMALLER = "a smaller effect is there"


@dataclass(frozen=True)
class Finding:
    """What an audit concludes on one question.

    ``key`` is stable from run to run and unique in its case. ``found``, ``absent`` and ``unknown`` are the sentences
    for the three verdicts, with group, language, stage or length filled in; :attr:`statement` is the one that holds.

    ``metric`` names the metric on which it rests and ``effect`` is that metric (or what is concluded from, in its own
    unit). ``null`` is the value without any effect, ``margin`` the smallest distance from it that matters and ``side``
    the direction that is meant. ``p`` is the raw p-value against ``null``, ``adjusted`` the one corrected for the
    number of findings of this audit on this model (``None`` until a run is read). ``headline`` findings are corrected
    together by Holm's procedure; the others are exploratory and corrected for the false discovery rate.

    ``size`` says how much the effect matters in terms that a reader knows. ``excluded``: distance from ``null`` beyond
    which an effect is excluded (*not found*). ``needed``: how many ``counted`` in all would tell, and ``reason`` why it
    cannot be told (*cannot tell*). ``look`` is what to look at next, ``page`` the place in the docs
    (``bias.md#reading``).

    For a control ``held`` says whether it showed what it was to show; its verdict says whether the effect was seen.
    """

    key: str
    verdict: Word
    found: str
    absent: str
    unknown: str
    kind: Kind = "claim"
    metric: str | None = None
    effect: Estimate | None = None
    null: float | None = None
    margin: float | None = None
    side: Side = "either"
    p: float | None = None
    adjusted: float | None = None
    headline: bool = True
    size: str = ""
    excluded: float | None = None
    needed: int | None = None
    counted: str = "items"
    reason: str = ""
    look: str = ""
    page: str = ""
    held: bool | None = None

    @property
    def statement(self) -> str:
        """The sentence of the verdict; where an effect is not found, with the size from which on it is excluded, and
        that there is one where the interval shows one that is too small to matter.
        """
        if self.verdict == "not found" and self.kind == "claim":
            size = excluded_words(self.excluded, self.null, self.side, self.effect)
            told = [part for part in (size, SMALLER if self.beyond_null else "") if part]
            return f"{self.absent} ({'; '.join(told)})" if told else self.absent
        return {"found": self.found, "not found": self.absent, "cannot tell": self.unknown}[self.verdict]

    @property
    def beyond_null(self) -> bool:
        """Whether the whole interval lies beyond ``null`` on the side that is meant."""
        return beyond_null(self.effect, self.null, self.side)

    @property
    def amount(self) -> str:
        """``size`` where something is found: of what is not, or cannot be told, a value is told as no fact."""
        return self.size if self.verdict == "found" else ""

    def __repr__(self) -> str:
        """Key, verdict and statement."""
        return visible(f"<Finding {self.key}: {self.verdict}: {self.statement}>")

    def _repr_html_(self) -> str:
        return str(from_above("lm_audit.report.in_notebook.shown", "finding_html")(self))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, without what is not said; ``statement`` is added for readers of other languages."""
        told = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        if self.effect is not None:
            told["effect"] = self.effect.to_json()
        return told | {"statement": self.statement}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Finding:
        """The inverse of :meth:`to_json`; fields that this version does not know are ignored."""
        known = {f.name: record[f.name] for f in fields(cls) if f.name in record}
        if known.get("effect") is not None:
            known["effect"] = Estimate.from_json(known["effect"])
        if known.get("verdict") not in ("found", "not found", "cannot tell"):
            raise ValueError(f"finding {record.get('key')!r}: unknown verdict {known.get('verdict')!r}")
        return cls(**known)
