"""Findings: what an audit concludes, in plain words, how sure that is, and what to do next.

An audit makes them with :func:`claim`; those of one audit on one model are corrected for their number when a run is
read (:mod:`lm_audit.findings.family`).
"""

from __future__ import annotations

from lm_audit.findings.amounts import more_of_hundred, of_hundred
from lm_audit.findings.beyond import Side
from lm_audit.findings.claims import claim, claim_above
from lm_audit.findings.controls import control_finding
from lm_audit.findings.factor import times, times_text
from lm_audit.findings.record import Finding, Kind, Word

__all__ = [
    "Finding", "Kind", "Side", "Word", "claim", "claim_above", "control_finding", "more_of_hundred", "of_hundred",
    "times", "times_text",
]  # fmt: skip
