"""A finding from the metric that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_audit.findings.beyond import Side
from lm_audit.findings.deciding import decided, p_of_interval
from lm_audit.findings.record import Finding
from lm_audit.stats.estimate import Estimate


def claim(
    key: str,
    effect: Estimate | None,
    *,
    found: str,
    absent: str,
    unknown: str,
    null: float | None = None,
    margin: float | None = None,
    side: Side = "either",
    p: float | None = None,
    **fields: Any,
) -> Finding:
    """A decided finding; ``null`` is the effect's chance value where it is not given.

    Without ``p`` the p-value is the one that agrees with the effect's interval. The further ``fields`` are those of
    :class:`~lm_audit.findings.record.Finding`. Raises ``ValueError`` for a negative margin, or an effect
    without a null value. An effect without a value has no ``size``.
    """
    if null is None and effect is not None:
        null = effect.chance
    if effect is not None and null is None:
        raise ValueError(f"finding {key!r}: its effect has no chance value; say with null= what no effect would give")
    if margin is not None and not margin >= 0:
        raise ValueError(f"finding {key!r}: the margin must not be negative, got {margin!r}")
    if effect is not None and effect.value is None:
        fields.pop("size", None)
    if p is None and effect is not None and null is not None:
        p = p_of_interval(effect, null, side)
    told = Finding(
        key=key, verdict="cannot tell", found=found, absent=absent, unknown=unknown, effect=effect, null=null,
        margin=margin, side=side, p=p, **fields,
    )  # fmt: skip
    return decided(told)


def claim_above(
    key: str, metrics: Mapping[str, Estimate], metric: str, *, p_of: str | None = None, **said: Any
) -> Finding:
    """A claim that the metric of this name lies above its null value; ``said`` is the rest of :func:`claim`.

    ``p_of`` names the metric that is its p-value. Where that is not there the p-value agrees with the interval. Raises
    as ``claim`` does, and ``KeyError`` without the metric.
    """
    p = None if p_of is None else metrics.get(p_of)
    return claim(key, metrics[metric], metric=metric, side="above", p=None if p is None else p.value, **said)
