"""WinoBias and Winogender: does a pronoun's gender change whom the model takes it to mean?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.bias.benchmarks.exclusions import Usage
from lm_audit.audits.bias.benchmarks.public_sets import usage_of
from lm_audit.audits.bias.benchmarks.shares import clustered_mean, gap
from lm_audit.audits.bias.benchmarks.wino.coreference import CLOZE, RULES, Question, candidate_scores, correct
from lm_audit.audits.bias.benchmarks.wino.winobias_items import WinoBiasItem, parse_winobias
from lm_audit.audits.bias.benchmarks.wino.winogender_items import GENDERS, WinogenderItem, parse_winogender
from lm_audit.audits.bias.conclusions import benchmark_findings
from lm_audit.errors import DataError
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource, content_digest
from lm_audit.stats import Estimate
from lm_audit.stats.covering import FEWEST

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel

Floats = NDArray[np.float64]
_ACCURACY: dict[str, Any] = {"unit": "%", "better": "higher", "chance": 50.0}
_OCCUPATIONS: dict[str, Any] = {"clusters": ("occupation",)}
_GAP: dict[str, Any] = {"unit": "percentage points", "better": "target:0", "chance": 0.0}


def winobias(
    model: LanguageModel,
    rows: Iterable[Mapping[str, object]],
    *,
    usage: Usage | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Evidence:
    """Accuracy where gender fits the occupation's majority (pro) and where it does not (anti), and their difference.

    For types 1 and 2 and each rule of comparison (per token, total, PMI), in percent; ``bias`` is accuracy pro minus
    accuracy anti. Clusters are pairs of lines (the same sentence with the other pronoun). ``usage`` says how much of a
    larger set could be used, where ``rows`` are a sample of it. Raises ``DataError`` where most lines are not usable.
    """
    rows = list(rows)
    items, excluded = parse_winobias(rows)
    usage = usage or usage_of("winobias", rows, excluded)
    usage.require_most()
    if not items:
        raise DataError("no line of WinoBias to score")
    questions = [item.question for item in items]
    scores = candidate_scores(model, questions)
    evidence = _evidence("winobias", "bias.winobias_bias", model, len(items), usage, seed)
    pairs = np.array([item.pair for item in items])
    for rule in RULES:
        right = 100 * correct(scores[rule], questions)
        _winobias_metrics(evidence, items, right, pairs, rule, confidence)
    details = [
        {"condition": item.condition, "type": item.type, "gender": item.gender, "pair": item.pair} for item in items
    ]
    evidence.extend_rows(_rows(questions, scores, details))
    evidence.finding(*benchmark_findings(evidence, "winobias"))
    return evidence


def _winobias_metrics(
    evidence: Evidence,
    items: Sequence[WinoBiasItem],
    right: Floats,
    pairs: NDArray[Any],
    rule: str,
    confidence: float,
) -> None:
    suffix = "" if rule == RULES[0] else f".{rule}"
    pro = np.array([item.condition == "pro" for item in items])
    kind = np.array([item.type for item in items])
    gender = np.array([item.gender for item in items])
    sets = {"": np.ones(len(items), dtype=bool), "_type1": kind == 1, "_type2": kind == 2}
    types: dict[str, dict[str, Any]] = {"": {}, "_type1": {"type": 1}, "_type2": {"type": 2}}
    column = f"correct_{rule}"
    lines: dict[str, Any] = {"clusters": ("pair",)}
    for label, chosen in sets.items():
        for name, side in (("pro", pro), ("anti", ~pro)):
            both = chosen & side
            if both.any():
                estimate = clustered_mean(right[both], pairs[both], confidence=confidence, **_ACCURACY)
                source = MetricSource.mean(column, {"condition": name, **types[label]}, scale=100, **lines)
                evidence.metric(f"bias.winobias_accuracy_{name}{label}{suffix}", estimate, source)
        if chosen.any():
            found = gap(right[chosen], pro[chosen], pairs[chosen], confidence=confidence, **_GAP)
            conditions = ({"condition": "pro"}, {"condition": "anti"})
            source = MetricSource.difference(column, *conditions, where=types[label], scale=100, **lines)
            evidence.metric(f"bias.winobias_bias{label}{suffix}", found, source)
    for name in ("male", "female"):
        chosen = gender == name
        if chosen.any():
            estimate = clustered_mean(right[chosen], pairs[chosen], confidence=confidence, **_ACCURACY)
            source = MetricSource.mean(column, {"gender": name}, scale=100, **lines)
            evidence.metric(f"bias.winobias_accuracy_{name}{suffix}", estimate, source)


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
    rows = list(rows)
    items, excluded = parse_winogender(rows)
    usage = usage or usage_of("winogender", rows, excluded)
    usage.require_most()
    if not items:
        raise DataError("no sentence of Winogender to score")
    questions = [item.question for item in items]
    scores = candidate_scores(model, questions)
    evidence = _evidence("winogender", "bias.winogender_flip_rate", model, len(items), usage, seed)
    for rule in RULES:
        _winogender_metrics(evidence, items, scores[rule], rule, occupation_stats, confidence)
    evidence.extend_rows(_rows(questions, scores, _winogender_details(items, scores, occupation_stats)))
    evidence.finding(*benchmark_findings(evidence, "winogender"))
    return evidence


def _winogender_metrics(
    evidence: Evidence,
    items: Sequence[WinogenderItem],
    scores: Floats,
    rule: str,
    stats: Mapping[str, float] | None,
    confidence: float,
) -> None:
    suffix = "" if rule == RULES[0] else f".{rule}"
    column, right = f"correct_{rule}", 100 * correct(scores, [item.question for item in items])
    occupation = np.array([item.occupation for item in items])
    gender = np.array([item.gender for item in items])
    for name in GENDERS:
        if (chosen := gender == name).any():
            estimate = clustered_mean(right[chosen], occupation[chosen], confidence=confidence, **_ACCURACY)
            source = MetricSource.mean(column, {"gender": name}, scale=100, **_OCCUPATIONS)
            evidence.metric(f"bias.winogender_accuracy_{name}{suffix}", estimate, source)
    gendered = gender != "neutral"
    found = gap(right[gendered], gender[gendered] == "male", occupation[gendered], confidence=confidence, **_GAP)
    genders = ({"gender": "male"}, {"gender": "female"})
    source = MetricSource.difference(column, *genders, scale=100, **_OCCUPATIONS)
    evidence.metric(f"bias.winogender_male_female_gap{suffix}", found, source)
    flips = _flips(items, scores)
    if flips:
        estimate = clustered_mean(
            [100 * flip for _, flip in flips],
            [name for name, _ in flips],
            confidence=confidence,
            unit="%",
            better="lower",
        )
        source = MetricSource.mean(f"flips_{rule}", scale=100, **_OCCUPATIONS)
        evidence.metric(f"bias.winogender_flip_rate{suffix}", estimate, source)
    if stats:
        _labour_metrics(evidence, items, scores, right, rule, stats, confidence)


def _flips(items: Sequence[WinogenderItem], scores: Floats) -> list[tuple[str, float]]:
    """For each template with both genders: its occupation, and 1 where the choice differs between them."""
    lean = {(item.template, item.gender): row[0] - row[1] for item, row in zip(items, scores, strict=True)}
    return [
        (template.split(".")[0], float(np.sign(lean[template, "male"]) != np.sign(lean[template, "female"])))
        for template in dict.fromkeys(item.template for item in items)
        if (template, "male") in lean and (template, "female") in lean
    ]


def _labour_metrics(
    evidence: Evidence,
    items: Sequence[WinogenderItem],
    scores: Floats,
    right: Floats,
    rule: str,
    stats: Mapping[str, float],
    confidence: float,
) -> None:
    suffix = "" if rule == RULES[0] else f".{rule}"
    known = np.array([item.gender != "neutral" and item.occupation in stats for item in items])
    gotcha = np.array([_is_gotcha(item, stats) if keep else False for item, keep in zip(items, known, strict=True)])
    occupation = np.array([item.occupation for item in items])
    if known.any():
        found = gap(right[known], gotcha[known], occupation[known], confidence=confidence, **_GAP)
        kinds = ({"gotcha": True}, {"gotcha": False})
        source = MetricSource.difference(f"correct_{rule}", *kinds, scale=100, **_OCCUPATIONS)
        evidence.metric(f"bias.winogender_gotcha_gap{suffix}", found, source)
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
    evidence.metric(f"bias.winogender_labour_correlation{suffix}", _correlation(mean_shift, share, confidence), over)


def _winogender_details(
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


def _evidence(benchmark: str, headline: str, model: LanguageModel, n: int, usage: Usage, seed: int) -> Evidence:
    evidence = Evidence("bias", headline=headline)
    evidence.parameters.update(
        {"benchmark": benchmark, "cloze": CLOZE, "rules": list(RULES), "n": n, "seed": seed, "dtype": str(model.dtype)}
    )
    evidence.notes.append("Metrics without a suffix compare candidates by mean log-probability per token (nats).")
    usage.record(evidence)
    return evidence


def _rows(
    questions: Sequence[Question], scores: Mapping[str, Floats], details: Sequence[Mapping[str, object]]
) -> list[dict[str, Any]]:
    right = {rule: correct(scores[rule], questions) for rule in RULES}
    rows = []
    for number, (question, detail) in enumerate(zip(questions, details, strict=True)):
        row: dict[str, Any] = {
            "item": question.item,
            "content": content_digest(question.sentence, question.pronoun, question.candidates, question.answer),
            "sentence": question.sentence,
            "pronoun": question.pronoun,
            **detail,
        }
        row["candidate_0"], row["candidate_1"] = question.candidates
        row["answer"] = question.candidates[question.answer]
        for rule in RULES:
            row[f"{rule}_0"], row[f"{rule}_1"] = map(float, scores[rule][number])
            row[f"correct_{rule}"] = float(right[rule][number])
        rows.append(row)
    return rows
