"""Estimate: a number together with what is known of its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lm_audit.shared.lazy import from_above

BETTER = ("higher", "lower", "neither")
"""Legal directions; besides them ``"target:X"`` with a number X. ``"neither"`` declares that no direction is better (a
baseline, a noise floor); ``None`` says nothing."""

_LATER = ("units", "fewest")
"""Fields that older ledgers lack: left out where they say nothing, so that old and new records look alike."""

_NUMBERS = ("value", "low", "high", "chance", "confidence", "n", "units", "fewest")
_TOLD = ("low", "high", "n", "method", "unit", "better", "note", "chance", "units", "fewest")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, sample size and the method that gave them.

    ``value``, ``low``, ``high`` are in ``unit``; ``None`` where not estimable, and then ``note`` gives the reason.
    ``chance`` is the value that chance alone would give, ``None`` where the metric has no such value.

    ``n`` counts what was measured, ``units`` how many of it are independent: the clusters where values come in
    clusters, the smaller side where two are compared; ``None`` where that is ``n``. ``fewest`` is the number of units
    from which on this interval covers what it says, ``None`` for :data:`~lm_audit.stats.covering.FEWEST`, 1 for an
    exact interval.
    Numbers of other libraries (a numpy or torch scalar) become Python's own, which alone JSON takes.
    Raises ``ValueError`` for NaN or infinite numbers, a count below 0, a confidence that is no share, an interval
    upside down, or a missing reason.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    confidence: float | None = 0.95
    method: str = ""
    unit: str | None = None
    better: str | None = None
    note: str | None = None
    chance: float | None = None
    units: int | None = None
    fewest: int | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None and type(number) not in (float, int) and hasattr(number, "item"):
                object.__setattr__(self, name, number.item())
        for name in ("value", "low", "high", "chance"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise ValueError(
                    f"Estimate.{name} must be finite or None, got {number!r}; use None and say why in note"
                )
        for name in ("n", "units", "fewest"):
            count = getattr(self, name)
            if count is not None and count < 0:
                raise ValueError(f"Estimate.{name} is a count and must be at least 0, got {count!r}")
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise ValueError(f"Estimate.confidence is a share, such as 0.95, got {self.confidence!r}")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"Estimate interval is upside down: low {self.low!r} > high {self.high!r}")
        if self.value is None and not self.note:
            raise ValueError("Estimate without a value needs a note that gives the reason")
        if self.better is not None and self.better not in BETTER and not _is_target(self.better):
            raise ValueError(
                f"Estimate.better must be 'higher', 'lower', 'neither', 'target:NUMBER' or None, got {self.better!r}"
            )

    def __repr__(self) -> str:
        """The value and every field that says something."""
        told = [f"{name}={getattr(self, name)!r}" for name in _TOLD if getattr(self, name) not in (None, "")]
        return f"Estimate({', '.join([repr(self.value), *told])})"

    def _repr_html_(self) -> str:
        return str(from_above("lm_audit.report.in_notebook.shown", "estimate_html")(self))

    @classmethod
    def not_estimable(cls, reason: str, *, n: int | None = None, method: str = "", **fields: Any) -> Estimate:
        """An estimate without a value, with the reason in ``note``."""
        return cls(None, n=n, method=method, note=reason, **fields)

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return {name: value for name, value in asdict(self).items() if value is not None or name not in _LATER}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Estimate:
        """The inverse of :meth:`to_json`; fields this version does not know are ignored."""
        return cls(**{name: record[name] for name in cls.__slots__ if name in record})


def _is_target(better: str) -> bool:
    head, _, number = better.partition(":")
    try:
        return head == "target" and math.isfinite(float(number))
    except ValueError:
        return False
