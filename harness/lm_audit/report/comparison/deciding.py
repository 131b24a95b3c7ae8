"""Which metrics a comparison decides by, and the adjustment for how many there are.

A case is decided by its headline (without one, by all its metrics). The headlines share 5 % hierarchically: equally
among the audits, within an audit among its cases; Holm's procedure hands on what a rejected one no longer needs.
Headlines that could not be significant at their share are left out (Tarone 1990). All other metrics are exploratory:
Benjamini and Hochberg's false discovery rate, among those that could reach it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from lm_audit.report.comparison.metric_change import LEVEL, MetricChange
from lm_audit.runstore.records import CaseRecord


def decides(case: CaseRecord, metric: str) -> bool:
    """Whether a comparison decides by this metric of the case."""
    return case.last.headline is None or case.last.headline == metric


def resolution_of(cases: Sequence[CaseRecord]) -> float:
    """The smallest p-value that matters among headlines of so many cases: the share of the smallest of them."""
    largest = max((sum(other.audit == case.audit for other in cases) for case in cases), default=1)
    audits = len({case.audit for case in cases}) or 1
    widest = max((len(case.last.metrics) for case in cases if case.last.headline is None), default=1)
    return LEVEL / (audits * max(1, largest) * max(1, widest))


def adjusted(changes: Sequence[MetricChange]) -> list[MetricChange]:
    """The changes with their adjusted p-values. Void numbers neither fail a comparison nor make it harder."""
    tested = [i for i, c in enumerate(changes) if c.p is not None and not c.void and not c.identical]
    found = list(changes)
    for i, value, able in [
        *_hierarchical([i for i in tested if changes[i].decided], changes),
        *_exploratory([i for i in tested if not changes[i].decided], changes),
    ]:
        found[i] = replace(found[i], adjusted=value, able=able)
    return found


Adjusted = list[tuple[int, float | None, bool]]


def _hierarchical(tests: Sequence[int], changes: Sequence[MetricChange]) -> Adjusted:
    from lm_audit.stats import able, family_weights, weighted_holm

    paths: list[tuple[Hashable, ...]] = [(changes[i].audit, changes[i].case_id, changes[i].metric) for i in tests]
    kept = able(paths, [changes[i].floor for i in tests], LEVEL)
    weights = family_weights([paths[k] for k in kept])
    p = [changes[tests[k]].p or 0.0 for k in kept]
    values = dict(zip(kept, weighted_holm(p, weights), strict=True))
    return [(i, values.get(k), k in values) for k, i in enumerate(tests)]


def _exploratory(tests: Sequence[int], changes: Sequence[MetricChange]) -> Adjusted:
    from lm_audit.stats import benjamini_hochberg

    # The smallest of m p-values must reach 5 % / m, the largest 5 %: what cannot reach that alone takes no part.
    kept = [i for i in tests if changes[i].floor <= LEVEL]
    values = dict(zip(kept, benjamini_hochberg([changes[i].p for i in kept]), strict=True))
    return [(i, values.get(i), i in values) for i in tests]
