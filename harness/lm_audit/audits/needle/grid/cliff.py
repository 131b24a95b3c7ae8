"""The cliff: the longest length up to which accuracy is shown to stay above a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_audit.stats import Estimate, share_limits

THRESHOLD = 0.85
"""Share of references found that counts as good; RULER's threshold is 0.856, NoLiMa's 0.85 of the base score."""


def possible_level(lengths: int) -> float:
    """The confidence of each length's interval from which the cliff's far end is told: it ends at the first length that
    is shown to fall short, and of five lengths at the threshold itself one is by chance in 11 % at 95 % each."""
    return 1 - 0.05 / max(1, lengths)


def cliff(
    accuracy: Mapping[int, Estimate],
    threshold: float = THRESHOLD,
    possible_accuracy: Mapping[int, Estimate] | None = None,
) -> Estimate:
    """The longest length at which, and at every shorter one, the lower bound of accuracy is at least ``threshold``.

    ``high`` is the longest length up to which the upper bound is, by ``possible_accuracy`` (``accuracy`` where not
    given): the same with intervals of :func:`possible_level`; ``None`` where that is the longest that was measured,
    since the cliff may lie beyond. Both ends are lengths of the grid, and may be one. No value where the shortest
    length already falls short, with the reason: too few samples ever to show it, undecided, or below.
    """
    lengths = sorted(accuracy)
    shown = _leading(lengths, accuracy, threshold, "low")
    possible = _leading(lengths, possible_accuracy or accuracy, threshold, "high")
    total = sum(estimate.n or 0 for estimate in accuracy.values())
    fields: dict[str, Any] = {
        "n": total,
        "method": f"lower bound >= {threshold:g}",
        "unit": "tokens",
        "better": "higher",
        "fewest": 1,
    }
    if shown is None:
        return Estimate.not_estimable(_reason(lengths, accuracy, threshold), **fields)
    note = None if shown == lengths[-1] else f"next length: {_describe(lengths[lengths.index(shown) + 1], accuracy)}"
    if shown == lengths[-1]:
        note = "the longest length that was measured; the cliff lies beyond"
    furthest = max(shown, possible or shown)
    return Estimate(
        float(shown), float(shown), None if furthest == lengths[-1] else float(furthest), note=note, **fields
    )


def samples_needed(threshold: float) -> int:
    """The fewest samples of a length, all answered, whose lower bound reaches the threshold."""
    if not 0 < threshold < 1:
        raise ValueError(f"threshold is {threshold}; expected a share between 0 and 1")
    n = 1
    while (share_limits(1.0, n)[0]) < threshold:
        n += 1
    return n


def _leading(lengths: list[int], accuracy: Mapping[int, Estimate], threshold: float, bound: str) -> int | None:
    last = None
    for length in lengths:
        value = getattr(accuracy[length], bound)
        if value is None or value < threshold:
            break
        last = length
    return last


def _reason(lengths: list[int], accuracy: Mapping[int, Estimate], threshold: float) -> str:
    if not lengths:
        return "no length was measured"
    first, needed = accuracy[lengths[0]], samples_needed(threshold)
    if (first.n or 0) < needed:
        return f"{first.n} samples a length cannot show {threshold:g} at 95%: {needed}, all answered, are needed"
    if first.high is not None and first.high < threshold:
        return f"already below {threshold:g} at the shortest length: {_describe(lengths[0], accuracy)}"
    return f"undecided at the shortest length: {_describe(lengths[0], accuracy)}"


def _describe(length: int, accuracy: Mapping[int, Estimate]) -> str:
    one = accuracy[length]
    if one.value is None:
        return f"{length} tokens, {one.note or 'no accuracy'}"
    within = "no interval" if one.low is None or one.high is None else f"[{one.low:.3f}, {one.high:.3f}]"
    return f"{length} tokens, {one.value:.3f} {within}, n = {one.n}"
