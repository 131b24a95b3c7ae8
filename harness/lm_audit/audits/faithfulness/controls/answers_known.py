"""What the audit reports of deletion curves that are known beforehand: every mean, gain and ranking with its interval.

No model is asked. On the few samples of a control gains may be nearly alike, and two right bootstraps of such values
lie far apart; here they differ as they do on real samples, so that intervals are held too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from lm_audit.audits.faithfulness.audit import Settings, record_method, record_ranking
from lm_audit.audits.faithfulness.deletion.curves import curve_from_scores
from lm_audit.audits.faithfulness.study import Scored
from lm_audit.audits.second_opinion import misreported
from lm_audit.evidence import Evidence

SAMPLES, FEATURES, STEPS = 24, 12, 6
METHODS = ("first", "second")
DEGENERATE = (5, 17)
"""Samples in which deleting everything does not lower the score."""

Row = Mapping[str, float]


def made_curves() -> tuple[list[Scored], list[Row]]:
    """Samples x methods, the samples of one method after those of the other, and what references score on each."""
    rng = np.random.default_rng(5)
    scored, references = [], list[Row]()
    for place, method in enumerate(METHODS):
        for number in range(SAMPLES):
            fall = np.linspace(0.0, 1.0, STEPS + 1) ** rng.uniform(0.2, 1.2 + 0.4 * place)
            scores = -1.0 - rng.uniform(3.0, 9.0) * (fall if number not in DEGENERATE else -fall)
            curve = curve_from_scores(rng.exponential(size=FEATURES), scores, STEPS)
            recovery = float(rng.integers(0, 4)) / 3
            normalised = float(rng.normal(0.6, 0.3)) if number % 7 else None
            scored.append(
                Scored(f"made-{number}", method, "token", "row", curve, recovery, None, normalised, f"{number}")
            )
            above = {name: float(rng.gamma(4.0, 0.03)) for name in ("uniform", "random")}
            row = dict[str, float]()
            for score, own in (("rise", curve.rise), ("mas", curve.mas)):
                row |= {f"{score}_{name}": own + gain for name, gain in above.items()}
                row[f"{score}_gold"] = own / 2
            references.append(row)
    return scored, references


def wrong_of_known_curves() -> list[str]:
    """What is reported of the made curves and does not follow from them."""
    scored, references = made_curves()
    settings = Settings(steps=STEPS, seed=0)
    alone, ranked = Evidence("faithfulness"), Evidence("faithfulness")
    record_method(alone, scored[:SAMPLES], references[:SAMPLES], settings)
    record_ranking(ranked, scored, settings)
    chances = {f"faithfulness.better_than_{name}": 0.0 for name in ("random", "even")}
    faults = misreported(alone, values=_means(scored[:SAMPLES], references), chances=chances, counts=[({}, SAMPLES)])
    places = {f"faithfulness.mas.{method}": _mean_of(scored, method) for method in METHODS}
    counts = [({"method": method}, SAMPLES) for method in METHODS]
    return [*faults, *misreported(ranked, values=places, counts=counts)]


def _judged(scored: Sequence[Scored]) -> list[int]:
    return [number for number, one in enumerate(scored) if one.curve.scores[-1] < one.curve.scores[0]]


def _mean_of(scored: Sequence[Scored], method: str) -> float:
    own = [one for one in scored if one.method == method]
    values = [own[number].curve.mas for number in _judged(own)]
    return math.fsum(values) / len(values)


def _means(scored: Sequence[Scored], references: Sequence[Row]) -> dict[str, float]:
    judged = _judged(scored)
    columns = {name: [getattr(scored[k].curve, name) for k in judged] for name in ("rise", "mas", "rise_ap")}
    columns |= {name: [getattr(scored[k], name) for k in judged] for name in ("mas_normalised", "recovery")}
    for name, column in (("random", "mas_random"), ("even", "mas_uniform")):
        columns[f"better_than_{name}"] = [references[k][column] - scored[k].curve.mas for k in judged]
    known = {name: [value for value in values if value is not None] for name, values in columns.items()}
    found = {f"faithfulness.{name}": math.fsum(values) / len(values) for name, values in known.items()}
    return found | {"faithfulness.degenerate_share": 1 - len(judged) / len(scored)}
