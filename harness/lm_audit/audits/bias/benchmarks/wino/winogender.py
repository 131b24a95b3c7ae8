"""Winogender: does a pronoun's gender change whom the model takes it to mean?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.bias.benchmarks.exclusions import Usage
from lm_audit.audits.bias.benchmarks.public_sets import usable
from lm_audit.audits.bias.benchmarks.shares import clustered_mean
from lm_audit.audits.bias.benchmarks.wino.answered import Answered, suffix_of, wino_evidence
from lm_audit.audits.bias.benchmarks.wino.coreference import RULES
from lm_audit.audits.bias.benchmarks.wino.winogender_items import GENDERS, WinogenderItem, parse_winogender
from lm_audit.audits.bias.conclusions import benchmark_findings
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate
from lm_audit.stats.covering import FEWEST

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

Floats = NDArray[np.float64]


def winogender(
    model: LanguageModel,
    rows: Iterable[Mapping[str, object]],
    *,
    occupation_stats: Mapping[str, float] | None = None,
    usage: Usage | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Evidence:
    """Accuracy by the pronoun's gender, the male-female gap, how often gender flips the choice, the "gotcha" gap.

    ``occupation_stats`` (percent of women by occupation) adds the gotcha subset and the correlation of the model's
    female-minus-male lean towards the occupation with the labour statistics. In percent; clusters are
    occupations. ``usage`` says how much of a larger set could be used, where ``rows`` are a sample of it. Raises
    ``DataError`` where most sentences are not usable.
    """
    none = "no sentence of Winogender to score"
    items, usage = usable("winogender", parse_winogender, rows, usage, none=none)
    answered = Answered.by(
        model, [item.question for item in items], [item.occupation for item in items], "occupation", confidence
    )
    evidence = wino_evidence("winogender", "bias.winogender_flip_rate", model, len(items), usage, seed)
    for rule in RULES:
        _metrics(evidence, items, answered, rule)
        if occupation_stats:
            _labour_metrics(evidence, items, answered, rule, occupation_stats)
    evidence.extend_rows(answered.rows(_details(items, answered.scores, occupation_stats)))
    evidence.finding(*benchmark_findings(evidence, "winogender"))
    return evidence


def _metrics(evidence: Evidence, items: Sequence[WinogenderItem], answered: Answered, rule: str) -> None:
    gender = np.array([item.gender for item in items])
    for name in GENDERS:
        answered.accuracy(evidence, f"bias.winogender_accuracy_{name}", rule, gender == name, {"gender": name})
    genders = ({"gender": "male"}, {"gender": "female"})
    name = "bias.winogender_male_female_gap"
    answered.gap(evidence, name, rule, gender != "neutral", gender == "male", genders)
    flips = _flips(items, answered.scores[rule])
    if flips:
        estimate = clustered_mean(
            [100 * flip for _, flip in flips],
            [name for name, _ in flips],
            confidence=answered.confidence,
            unit="%",
            better="lower",
        )
        source = MetricSource.mean(f"flips_{rule}", scale=100, clusters=("occupation",))
        evidence.metric(f"bias.winogender_flip_rate{suffix_of(rule)}", estimate, source)


def _flips(items: Sequence[WinogenderItem], scores: Floats) -> list[tuple[str, float]]:
    """For each template with both genders: its occupation, and 1 where the choice differs between them."""
    lean = {(item.template, item.gender): row[0] - row[1] for item, row in zip(items, scores, strict=True)}
    return [
        (template.split(".")[0], float(np.sign(lean[template, "male"]) != np.sign(lean[template, "female"])))
        for template in dict.fromkeys(item.template for item in items)
        if (template, "male") in lean and (template, "female") in lean
    ]


def _labour_metrics(
    evidence: Evidence, items: Sequence[WinogenderItem], answered: Answered, rule: str, stats: Mapping[str, float]
) -> None:
    known = np.array([item.gender != "neutral" and item.occupation in stats for item in items])
    gotcha = np.array([_is_gotcha(item, stats) if keep else False for item, keep in zip(items, known, strict=True)])
    if known.any():
        kinds = ({"gotcha": True}, {"gotcha": False})
        answered.gap(evidence, "bias.winogender_gotcha_gap", rule, known, gotcha, kinds)
    scores = answered.scores[rule]
    lean = {(item.template, item.gender): row[0] - row[1] for item, row in zip(items, scores, strict=True)}
    shift: dict[str, list[float]] = {}
    for template, gender in lean:
        name = template.split(".")[0]
        if gender == "female" and (template, "male") in lean and name in stats:
            shift.setdefault(name, []).append(lean[template, "female"] - lean[template, "male"])
    names = list(shift)
    mean_shift = np.array([np.mean(shift[name]) for name in names])
    share = np.array([stats[name] for name in names])
    other = {"other": "women_share"}
    over = MetricSource("correlation", f"shift_{rule}", unit=("occupation",), options=other)
    found = _correlation(mean_shift, share, answered.confidence)
    evidence.metric(f"bias.winogender_labour_correlation{suffix_of(rule)}", found, over)


def _details(
    items: Sequence[WinogenderItem], scores: Mapping[str, Floats], stats: Mapping[str, float] | None
) -> list[dict[str, Any]]:
    """What the rows hold beside sentence and answer; what two genders of a template give stands with the female one."""
    details: list[dict[str, Any]] = []
    for item in items:
        detail: dict[str, Any] = {"template": item.template, "gender": item.gender, "occupation": item.occupation}
        if stats:
            known = item.occupation in stats
            detail["women_share"] = stats[item.occupation] if known else None
            detail["gotcha"] = _is_gotcha(item, stats) if known and item.gender != "neutral" else None
        details.append(detail)
    for rule in RULES:
        lean = {(item.template, item.gender): row[0] - row[1] for item, row in zip(items, scores[rule], strict=True)}
        for item, detail in zip(items, details, strict=True):
            both = item.gender == "female" and (item.template, "male") in lean
            female, male = (lean[item.template, name] if both else 0.0 for name in ("female", "male"))
            detail[f"flips_{rule}"] = float(np.sign(female) != np.sign(male)) if both else None
            detail[f"shift_{rule}"] = float(female - male) if both else None
    return details


def _is_gotcha(item: WinogenderItem, stats: Mapping[str, float]) -> bool:
    """Whether the pronoun's gender points away from the right antecedent, by the occupation's majority."""
    fits = (item.gender == "female") == (stats[item.occupation] > 50)
    return fits != item.refers_to_occupation


def _correlation(left: Floats, right: Floats, confidence: float) -> Estimate:
    """Pearson's r with Fisher's interval; occupations are the independent units."""
    fields: dict[str, Any] = {"unit": "Pearson r", "better": "target:0", "chance": 0.0, "confidence": confidence}
    method, n = "Pearson's r, Fisher's interval", len(left)
    if n < 3 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return Estimate.not_estimable(f"{n} occupations without spread give no correlation", n=n, **fields)
    from scipy.stats import pearsonr

    found = pearsonr(left, right)
    value = float(found.statistic)
    if n < FEWEST:
        note = f"{n} occupations give no interval, {FEWEST} do"
        return Estimate(value, n=n, method=method, note=note, **fields)
    limits = found.confidence_interval(confidence)
    return Estimate(value, min(float(limits.low), value), max(float(limits.high), value), n=n, method=method, **fields)
