"""What a control concludes, in the same form as a claim."""

from __future__ import annotations

from typing import Any

from lm_audit.findings.record import Finding


def control_finding(control: Any, page: str = "") -> Finding:
    """The finding of an :class:`lm_audit.evidence.Control`: whether the effect was seen, and whether it should be."""
    seen = control.passed if control.role == "positive" else not control.passed
    planted = "a planted effect" if control.role == "positive" else "no effect was planted"
    held = f"Control held ({planted}): expected {control.expected}; observed {control.observed}"
    failed = f"CONTROL FAILED ({planted}), this audit is void: expected {control.expected}; observed {control.observed}"
    text = held if control.passed else failed
    return Finding(
        key=f"control.{control.role}",
        verdict="found" if seen else "not found",
        found=text,
        absent=text,
        unknown=text,
        kind="control",
        headline=False,
        held=bool(control.passed),
        page=page,
    )
