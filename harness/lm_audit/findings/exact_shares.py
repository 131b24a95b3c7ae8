"""Which effects are shares with the exact interval: a binomial test decides on them."""

from __future__ import annotations

from lm_audit.stats.estimate import Estimate


def exact_share(effect: Estimate) -> bool:
    """Whether the interval is the exact one of a share, whose width does not go with the root of the number."""
    known = effect.value is not None and 0 <= effect.value <= 1 and None not in (effect.confidence, effect.n)
    return known and effect.fewest == 1 and effect.unit == "share" and effect.units in (None, effect.n)
