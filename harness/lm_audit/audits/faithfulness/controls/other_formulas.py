"""What the audit reports of a method, once more: RISE, MAS and recovery by loops, means from the samples' rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.faithfulness.audit import Settings, method_evidence
from lm_audit.audits.faithfulness.study import LEAST_GAP, Study
from lm_audit.audits.second_opinion import misreported

if TYPE_CHECKING:
    from lm_audit.audits.faithfulness.deletion.curves import DeletionCurve

SAME = 1e-9
"""Two routes over the same numbers."""

METHOD, SAMPLES = "ifr", 10
"""What is reported a second time, on so many samples: enough for an interval."""

TOP = 10
"""One of so many features counts as named by a method."""


def scores_again(curve: DeletionCurve, steps: int) -> dict[str, float]:
    """RISE, MAS and RISE+AP from a curve's log-likelihoods and weights."""
    weights, scores = [float(w) for w in curve.weights], [float(s) for s in curve.scores]
    order = sorted(range(len(weights)), key=lambda place: (-weights[place], place))
    count = min(max(1, steps), len(order))
    size, larger = divmod(len(order), count)
    left, whole = [1.0], math.fsum(weights)
    begin = 0
    for number in range(count):
        end = begin + size + (number < larger)
        share = math.fsum(weights[place] for place in order[:end]) / whole if whole > 0 else (number + 1) / count
        left.append(1 - share)
        begin = end
    fall = abs(scores[0] - scores[-1])
    response = list[float]()
    for score in scores:
        known = min(1.0, max(0.0, (score - scores[-1]) / fall)) if fall else 1.0
        response.append(min([known, *response]))
    gaps = [abs(a - b) for a, b in zip(response, left, strict=True)]
    raised = [min(1.0, a + b) for a, b in zip(response, gaps, strict=True)]
    low, high = min(raised), max(raised)
    even = [1 - step / count for step in range(count + 1)]
    stretched = [(value - low) / (high - low) for value in raised] if high > low else even
    plus = [a + b for a, b in zip(response, gaps, strict=True)]
    return {"rise": _under(response), "mas": _under(stretched), "rise_ap": _under(plus)}


def _under(curve: Sequence[float]) -> float:
    return math.fsum((a + b) / 2 for a, b in pairwise(curve)) / max(1, len(curve) - 1)


def scored_otherwise(curve: DeletionCurve, steps: int) -> float:
    """By how much the largest of a curve's scores is off; infinite where one is no number."""
    again = scores_again(curve, steps)
    apart = float(np.max([abs(getattr(curve, name) - value) for name, value in again.items()]))
    return apart if math.isfinite(apart) else math.inf


def recovered(weights: Sequence[float], gold: Sequence[int]) -> float:
    """Share of the evidence of which fewer features than a tenth of all stand ahead."""
    counted = [max(0.0, float(weight)) for weight in weights]
    most = max(1, -(-len(counted) // TOP))

    def ahead(place: int) -> int:
        own = counted[place]
        return sum(other > own or (other == own and k < place) for k, other in enumerate(counted))

    return sum(ahead(place) < most for place in gold) / len(gold)


def wrong_report(studies: Sequence[Study], *, steps: int, seed: int) -> list[str]:
    """What the audit reports of a method on these samples and does not follow from its curves and rows."""
    settings = Settings(steps=steps, seed=seed)
    evidence = method_evidence(studies, METHOD, settings)
    for name, estimate in evidence.metrics.items():
        # Of ten values that are nearly alike two bootstraps may end far from each other: value, n and chance are held.
        if name != "faithfulness.degenerate_share":
            evidence.metrics[name] = replace(estimate, low=None, high=None)
    known = [_again(study, settings, steps) for study in studies]
    faults = misreported(evidence, values=_means(known), counts=[({}, len(studies))])
    wrong = sum(not _as_known(*both) for both in zip(evidence.rows, known, strict=False))
    return [
        *faults,
        *([f"{wrong} of {len(studies)} samples are scored otherwise than by another formula"] * (wrong > 0)),
    ]


def _again(study: Study, settings: Settings, steps: int) -> dict[str, Any]:
    """A sample's row by other formulas."""
    weights = study.attribution(METHOD).prompt_weights(settings.view)
    curve = study.test("token", steps, settings.baseline).curve(weights)
    references = study.reference_curves("token", steps, settings.baseline, settings.seed)
    other = {name: scores_again(one, steps) for name, one in references.items()}
    own, draws = scores_again(curve, steps), [scores for name, scores in other.items() if name.startswith("random")]
    known: dict[str, Any] = {**own, "degenerate": not curve.scores[-1] < curve.scores[0]}
    for name in ("rise", "mas"):
        chance = math.fsum(one[name] for one in draws) / len(draws)
        best = other["gold"][name]
        known |= {f"{name}_uniform": other["uniform"][name], f"{name}_random": chance, f"{name}_gold": best}
        known[f"{name}_normalised"] = (own[name] - chance) / (best - chance) if chance - best >= LEAST_GAP else None
    known["recovery"] = recovered(list(weights), study.gold)
    return known


def _means(known: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Every number over samples that deletion can judge, and the share of those that it cannot."""
    judged = [one for one in known if not one["degenerate"]]
    found = {"faithfulness.degenerate_share": 1 - len(judged) / max(1, len(known))}
    for name in ("rise", "mas", "rise_ap", "mas_normalised", "recovery"):
        values = [float(one[name]) for one in judged if one[name] is not None]
        if values:
            found[f"faithfulness.{name}"] = math.fsum(values) / len(values)
    for name, column in (("random", "mas_random"), ("even", "mas_uniform")):
        gains = [float(one[column]) - float(one["mas"]) for one in judged]
        if gains:
            found[f"faithfulness.better_than_{name}"] = math.fsum(gains) / len(gains)
    return found


def _as_known(row: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    return all(
        row[name] is value
        if value is None or isinstance(value, bool) or row[name] is None
        else abs(row[name] - value) <= SAME * max(1.0, abs(value))
        for name, value in known.items()
    )
