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


def record_gain(evidence: Evidence, rows: Sequence[Mapping[str, Any]], method: str, unit: str, seed: int) -> None:
    """Add the gain of a method over random deletion, paired by sample, and what is concluded from it."""
    from lm_audit.stats import sign_flip_test
    from lm_audit.stats.means.studentised import studentised_mean

    gains = [row["mas_random"] - row["mas"] for row in rows if not row["degenerate"]]
    source = MetricSource.column_difference("mas_random", "mas", {"degenerate": False})
    fields: dict[str, Any] = {"better": "higher", "chance": 0.0}
    p = None
    if gains:
        found = studentised_mean(gains, seed=seed)
        estimate = Estimate.from_json(found.to_json() | fields)
        p = sign_flip_test(gains, seed=seed).value
    else:
        reason = "every sample is one that deletion cannot judge: deleting everything does not lower the score"
        estimate = Estimate.not_estimable(reason, n=len(rows), **fields)
    evidence.metric(METRIC, estimate, source)
    samples = ", ".join(dict.fromkeys(str(row["sample"]).rpartition("-")[0] or str(row["sample"]) for row in rows))
    evidence.finding(_gain(estimate, p, method, f"on {samples} samples, {unit} by {unit}", rows))


def _gain(estimate: Estimate, p: float | None, method: str, place: str, rows: Sequence[Mapping[str, Any]]) -> Finding:
    known = [row for row in rows if not row["degenerate"]]
    size = ""
    if known:
        own, random = (sum(row[column] for row in known) / len(known) for column in ("mas", "mas_random"))
        size = f"area under the deletion curve {own:.3g}, of random orders {random:.3g}; lower is better"
    return claim(
        f"faithfulness.{method}.{place}",
        estimate,
        found=f"{method} explains better than random deletion {place}",
        absent=f"{method} explains no better than random deletion {place}",
        unknown=f"Whether {method} explains better than random deletion {place} cannot be told",
        null=0.0,
        margin=MARGIN,
        side="above",
        p=p,
        metric=METRIC,
        size=size,
        counted="samples",
        look="the deletion curves beside their references, and the comparison of methods",
        page="faithfulness.md#how-to-read-it",
    )
