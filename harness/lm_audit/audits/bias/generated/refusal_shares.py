"""Refusal rates of groups and their differences: requests are the independent units, draws of one hang together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource
from lm_audit.stats import Estimate, holm, share, sign_flip_test
from lm_audit.stats.covering import FEWEST
from lm_audit.stats.means.studentised import studentised_mean
from lm_audit.stats.shares.share_differences import clustered_share_difference

Floats = NDArray[np.float64]
_DIFFERENCE: dict[str, Any] = {"better": "target:0", "chance": 0.0}
CHANCE_DRAWS = 1000


@dataclass(frozen=True)
class RefusalTable:
    """``refused`` (requests, groups, draws) is 1, 0, or NaN without an answer; ``lean`` (requests, groups) in nats, NaN
    where the model gives none.
    """

    groups: Sequence[str]
    refused: Floats
    lean: Floats

    def answers(self, group: int) -> tuple[Floats, NDArray[np.int64]]:
        """The answers about a group, and the request of each."""
        values = self.refused[:, group].ravel()
        requests = np.repeat(np.arange(len(self.refused)), self.refused.shape[2])
        known = ~np.isnan(values)
        return values[known], requests[known]


def record_rates(
    evidence: Evidence, table: RefusalTable, *, confidence: float, seed: int
) -> list[tuple[str, str, float | None]]:
    """Put rates, shares without an answer, differences, tests and leans of all groups into evidence.

    Returns the groups of each difference and its p-value before it is adjusted.
    """
    request: dict[str, Any] = {"clusters": ("request",)}
    for g, group in enumerate(table.groups):
        values, requests = table.answers(g)
        rate = share(values, requests, scale=100, confidence=confidence)
        evidence.metric(
            f"bias.refusal_rate.{group}",
            replace(rate, better="lower"),
            MetricSource.mean("refused", {"group": group}, scale=100, **request),
        )
    missing = np.isnan(table.refused).astype(np.float64)
    cluster = np.broadcast_to(np.arange(len(missing))[:, None, None], missing.shape)
    evidence.metric(
        "bias.refusal_no_answer",
        replace(share(missing.ravel(), cluster.ravel(), scale=100, confidence=confidence), better="lower"),
        MetricSource.mean("answered", scale=-100, offset=100, **request),
    )
    pairs = list(combinations(range(len(table.groups)), 2))
    raw = [_test(table, a, b, seed) for a, b in pairs]
    tests = holm(raw)
    for (a, b), adjusted in zip(pairs, tests, strict=True):
        first, second = table.groups[b], table.groups[a]
        difference = _difference(table, b, a, confidence)
        note = difference.note or (None if adjusted is None else f"sign flip over requests, Holm: p = {adjusted:.3g}")
        evidence.metric(
            f"bias.refusal_difference.{first}|{second}",
            replace(difference, note=note, **_DIFFERENCE),
            MetricSource.difference("refused", {"group": first}, {"group": second}, scale=100, **request),
        )
        if np.isnan(table.lean).all():
            continue
        evidence.metric(
            f"bias.refusal_lean.{first}|{second}",
            _lean(table.lean[:, b] - table.lean[:, a], confidence, seed),
            MetricSource.paired_difference("lean", ("request",), {"group": first}, {"group": second}),
        )
    _record_widest(evidence, table, pairs, tests, confidence, seed)
    return [(table.groups[b], table.groups[a], p) for (a, b), p in zip(pairs, raw, strict=True)]


def _test(table: RefusalTable, a: int, b: int, seed: int) -> float | None:
    """Sign flip over requests of the difference of their mean answers: exact, whatever the draws of one share."""
    means = _by_request(table)
    both = means[:, b] - means[:, a]
    both = both[~np.isnan(both)]
    if not len(both):
        return None
    return sign_flip_test(both, seed=seed).value if both.any() else 1.0


def _by_request(table: RefusalTable) -> Floats:
    known = ~np.isnan(table.refused)
    counts = known.sum(axis=2)
    sums = np.where(known, table.refused, 0.0).sum(axis=2)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _difference(table: RefusalTable, one: int, other: int, confidence: float) -> Estimate:
    (first, first_requests), (second, second_requests) = table.answers(one), table.answers(other)
    return clustered_share_difference(
        np.concatenate([first, second]),
        np.repeat([True, False], [len(first), len(second)]),
        np.concatenate([first_requests, second_requests]),
        scale=100,
        confidence=confidence,
    )


def _lean(shift: Floats, confidence: float, seed: int) -> Estimate:
    found = replace(studentised_mean(shift, confidence=confidence, seed=seed), unit="nats", **_DIFFERENCE)
    if len(shift) >= FEWEST or found.value is None:
        return found
    return replace(found, low=None, high=None, note=f"{len(shift)} requests give no interval, {FEWEST} do")


def _record_widest(
    evidence: Evidence,
    table: RefusalTable,
    pairs: Sequence[tuple[int, int]],
    tests: Sequence[float | None],
    confidence: float,
    seed: int,
) -> None:
    """Largest minus smallest rate; its limits hold for all differences at once, since the two are chosen by looking."""
    if not pairs:
        return
    level = 1 - (1 - confidence) / len(pairs)
    found = [_difference(table, b, a, level) for a, b in pairs]
    if any(one.value is None for one in found):
        estimate = Estimate.not_estimable("a group has no answer", n=table.refused.size, unit="percentage points")
        evidence.metric("bias.refusal_max_difference", replace(estimate, better="lower"))
        return
    value = max(abs(one.value or 0.0) for one in found)
    smallest = min((p for p in tests if p is not None), default=None)
    note = f"largest minus smallest of {len(table.groups)} rates" + (
        "" if smallest is None else f"; smallest Holm-adjusted p of {len(pairs)} differences = {smallest:.3g}"
    )
    low: float | None = None
    high: float | None = None
    if all(one.low is not None and one.high is not None for one in found):
        low = min(value, max(0.0, *(max(one.low or 0.0, -(one.high or 0.0)) for one in found)))
        high = max(value, *(max(one.high or 0.0, -(one.low or 0.0)) for one in found))
    else:
        note = next(one.note for one in found if one.note) or note
    method = f"{found[0].method}, Bonferroni over {len(pairs)}"
    estimate = replace(found[0], value=value, low=low, high=high, confidence=confidence, method=method, note=note)
    evidence.metric(
        "bias.refusal_max_difference",
        replace(estimate, n=int((~np.isnan(table.refused)).sum()), better="lower", chance=_chance(table, seed)),
        MetricSource("max_min", "refused", options={"group": "group"}, scale=100, clusters=("request",)),
    )


def _chance(table: RefusalTable, seed: int) -> float:
    """The mean of the largest difference when groups are permuted within each request."""
    means = _by_request(table)
    means = means[~np.isnan(means).any(axis=1)]
    if not len(means):
        return 0.0
    rng = np.random.default_rng(seed)
    drawn = rng.permuted(np.broadcast_to(means, (CHANCE_DRAWS, *means.shape)), axis=2).mean(axis=1)
    return 100 * float(np.ptp(drawn, axis=1).mean())
