"""The correction of findings for their number: those of one audit on one model make up a family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from lm_audit.findings.deciding import decided
from lm_audit.findings.record import Finding

Placed = tuple[Hashable, Finding]
"""A finding with the case that it comes from."""


def corrected(family: Sequence[Placed]) -> list[Finding]:
    """The findings of one audit on one model with adjusted p-values and the verdicts that these give.

    Headline findings share 5 % equally among cases, and within a case among its findings (Holm 1979, weighted); the
    others are corrected together for the false discovery rate (Benjamini and Hochberg 1995). Controls, and findings
    without a p-value, stay as they are and count for nothing.
    """
    answer = [finding for _, finding in family]
    tested = [i for i, (_, finding) in enumerate(family) if finding.kind == "claim" and finding.p is not None]
    leading = [i for i in tested if answer[i].headline]
    rest = [i for i in tested if not answer[i].headline]
    for i, value in [*_holm(leading, family), *_false_discovery(rest, answer)]:
        answer[i] = decided(replace(answer[i], adjusted=value))
    return answer


def _holm(tests: Sequence[int], family: Sequence[Placed]) -> list[tuple[int, float]]:
    from lm_audit.stats.multiplicity.families import weighted_holm

    if not tests:
        return []
    own = Counter(family[i][0] for i in tests)
    weights = [1 / (len(own) * own[family[i][0]]) for i in tests]
    return list(zip(tests, weighted_holm([family[i][1].p or 0.0 for i in tests], weights), strict=True))


def _false_discovery(tests: Sequence[int], findings: Sequence[Finding]) -> list[tuple[int, float]]:
    from lm_audit.stats.multiplicity.adjustment import benjamini_hochberg

    adjusted = benjamini_hochberg([findings[i].p for i in tests])
    return [(i, value) for i, value in zip(tests, adjusted, strict=True) if value is not None]
