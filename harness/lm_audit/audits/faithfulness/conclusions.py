"""What the faithfulness audit concludes of a method, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_audit.evidence import Evidence
from lm_audit.findings import Finding, claim
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate

MARGIN = 0.05
"""Area under the deletion curve: a smaller gain over random orders does not matter."""
METRIC = "faithfulness.better_than_random"
EVEN_METRIC = "faithfulness.better_than_even"
REFERENCES = {METRIC: "mas_random", EVEN_METRIC: "mas_uniform"}
"""What a method must beat: orders that chance gave, and weights that are all alike, which MAS rewards."""


_NAMED = 3
"""More names than these are those of single samples."""
_WORDS = ("not found", "cannot tell", "found")


def record_gain(evidence: Evidence, rows: Sequence[Mapping[str, Any]], method: str, unit: str, seed: int) -> None:
    """Add the gains of a method over its references, paired by sample, and what is concluded from the two.

    Both must be found. Where one is not, the finding rests on that one: an effect excluded before one that cannot be
    told; of two alike on the smaller.
    """
    gains = {name: _gains(rows, column) for name, column in REFERENCES.items()}
    for name, values in gains.items():
        source = MetricSource.column_difference(REFERENCES[name], "mas", {"degenerate": False})
        evidence.metric(name, _estimate(values, len(rows), seed), source)
    kinds = _kinds(rows)
    place = f"on {kinds or len(rows)} samples, {unit} by {unit}"
    # The question is the same with more samples: their number is no part of its key.
    key = f"faithfulness.{method}.on {kinds and kinds + ' '}samples, {unit} by {unit}"
    alone = [
        _gain(evidence.metrics[name], _p({name: values}, seed), method, (key, place), rows, name)
        for name, values in sorted(gains.items(), key=lambda entry: sum(entry[1]))
    ]
    rests = min(alone, key=lambda finding: _WORDS.index(finding.verdict))
    assert rests.metric is not None
    evidence.finding(_gain(evidence.metrics[rests.metric], _p(gains, seed), method, (key, place), rows, rests.metric))


def _kinds(rows: Sequence[Mapping[str, Any]]) -> str:
    """The samples' common names without their numbers; empty where these are many, or none was given."""
    names = list(dict.fromkeys(str(row["sample"]).rpartition("-")[0] or str(row["sample"]) for row in rows))
    return "" if len(names) > _NAMED or names == ["line"] else ", ".join(names)


def _gains(rows: Sequence[Mapping[str, Any]], column: str) -> list[float]:
    return [row[column] - row["mas"] for row in rows if not row["degenerate"]]


def _estimate(gains: Sequence[float], n: int, seed: int) -> Estimate:
    from lm_audit.stats.means.studentised import studentised_mean

    fields: dict[str, Any] = {"better": "higher", "chance": 0.0}
    if not gains:
        reason = "every sample is one that deletion cannot judge: deleting everything does not lower the score"
        return Estimate.not_estimable(reason, n=n, **fields)
    return Estimate.from_json(studentised_mean(gains, seed=seed).to_json() | fields)


def _p(gains: Mapping[str, Sequence[float]], seed: int) -> float | None:
    """Both must be beaten, so the larger p-value counts."""
    from lm_audit.stats import sign_flip_test

    found = [sign_flip_test(values, seed=seed).value for values in gains.values() if values]
    return None if not found or None in found else max(p for p in found if p is not None)


def _gain(
    estimate: Estimate,
    p: float | None,
    method: str,
    question: tuple[str, str],
    rows: Sequence[Mapping[str, Any]],
    metric: str,
) -> Finding:
    """``question``: its key, the same in every run that asks it, and where it was asked, in words."""
    key, place = question
    known = [row for row in rows if not row["degenerate"]]
    size = ""
    if known:
        own, random, even = (
            sum(row[column] for row in known) / len(known) for column in ("mas", "mas_random", "mas_uniform")
        )
        size = f"area under the deletion curve {own:.3g}, of random orders {random:.3g}, of even weights {even:.3g}"
        size += "; lower is better"
    than = "random deletion" if metric == METRIC else "even weights"
    return claim(
        key,
        estimate,
        found=f"{method} explains better than random deletion and even weights {place}",
        absent=f"{method} explains no better than {than} {place}",
        unknown=f"Whether {method} explains better than {than} {place} cannot be told",
        null=0.0,
        margin=MARGIN,
        side="above",
        p=p,
        metric=metric,
        size=size,
        counted="samples",
        look="the deletion curves beside their references, and the comparison of methods",
        page="faithfulness.md#how-to-read-it",
    )
