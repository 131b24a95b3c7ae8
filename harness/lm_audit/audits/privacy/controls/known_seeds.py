"""Figures of several seeds and of a design, of numbers that are known beforehand: no model is trained.

The sums are other ones than those that the audit makes: ranks of signs are counted out, power is looked up in the
noncentral t.
"""

from __future__ import annotations

import math
from itertools import product

from lm_audit.audits.privacy.data.canaries import Canary
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.second_opinion import VALUE_OFF, misreported
from lm_audit.evidence import Evidence
from lm_audit.stats.estimate import Estimate

SEEDS = (0.42, -0.11, 0.3, 0.08, 0.0, 0.71, -0.2, 0.25, 0.16, 0.5)
"""What a step added under each seed: seven up, two down, one as before."""

METRIC = "privacy.Base_to_SFT.did"

SIZES = (15, 260)
"""Members of a design, as many as twins where two groups are compared."""

POWER, LEVEL, EFFECTS = 0.8, 0.05, (0.2, 0.5, 0.8)


def wrong_of_known_seeds() -> list[str]:
    """What is reported of these seeds together and is not so."""
    from lm_audit.audits.privacy.stages.seeds import combine_seeds

    each = {}
    for seed, value in enumerate(SEEDS):
        each[seed] = Evidence("privacy")
        each[seed].metric(METRIC, Estimate(value, value - 0.3, value + 0.3, n=30, unit="nats"))
    evidence = combine_seeds(each, METRIC)
    mean, agreement = f"{METRIC}.over_seeds", f"{METRIC}.direction_consistency"
    moved = [value for value in SEEDS if value]
    up = sum(value > 0 for value in moved)
    values = {mean: math.fsum(SEEDS) / len(SEEDS), agreement: max(up, len(moved) - up) / len(moved)}
    drawn = [abs(sum(signs)) for signs in product((-1, 1), repeat=len(moved))]
    chance = 0.5 + math.fsum(drawn) / len(drawn) / (2 * len(moved))
    faults = misreported(evidence, values=values, chances={agreement: chance}, counts=[({}, len(SEEDS))])
    if evidence.metrics[mean].low is None:
        faults.append(f"{mean} of {len(SEEDS)} seeds has no interval")
    return faults


def wrong_power() -> list[str]:
    """What is said that so many canaries can show and is not so."""
    from lm_audit.audits.privacy.audit import record_power

    faults = []
    for size in SIZES:
        canaries = [Canary(f"made-{number}", "made", "a b", "b", (2, 3)) for number in range(size)]
        evidence = Evidence("privacy")
        record_power(evidence, Manifest(tuple(canaries), seed=0))
        found = {name.removeprefix("privacy.power."): one.value for name, one in evidence.metrics.items()}
        effect, area = found.get("detectable_d"), found.get("detectable_auc")
        if effect is None or not abs(_power_of_t(effect, size) - POWER) <= VALUE_OFF:
            faults.append(f"{size} pairs are said to find an effect of {effect}, which has another power")
        if area is None or not abs(_power_of_auc(area, size) - POWER) <= VALUE_OFF:
            faults.append(
                f"{size} members and as many twins are said to find an AUC of {area}, which has another power"
            )
        for wanted in EFFECTS:
            pairs = found.get(f"canaries_for_d{wanted}")
            if pairs is None or not _power_of_t(wanted, pairs - 1) < POWER <= _power_of_t(wanted, pairs):
                faults.append(f"{pairs} pairs are said to be the fewest that find an effect of {wanted}, and are not")
    return faults


def _power_of_t(effect: float, pairs: float) -> float:
    """How often a two-sided t test of so many pairs finds a mean of ``effect`` standard deviations."""
    from scipy.stats import nct, t

    limit, away = t.isf(LEVEL / 2, pairs - 1), effect * math.sqrt(pairs)
    return float(nct.sf(limit, pairs - 1, away) + nct.cdf(-limit, pairs - 1, away))


def _power_of_auc(area: float, each: int) -> float:
    """How often an AUC is found that two groups of exponential scores have, by the normal law."""
    from scipy.stats import norm

    # Where nothing is there: Mann and Whitney's variance of all ranks.
    null = math.sqrt((2 * each + 1) / (12 * each**2))
    odds = area / (1 - area)
    one_twin, one_member = odds / (2 + odds), 2 * odds**2 / ((1 + odds) * (1 + 2 * odds))
    variance = area / (1 + odds) + (each - 1) * (one_twin + one_member - 2 * area**2)
    return float(norm.sf((norm.isf(LEVEL / 2) * null - (area - 0.5)) * each / math.sqrt(variance)))
