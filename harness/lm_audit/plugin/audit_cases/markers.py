"""The plugin's markers."""

from __future__ import annotations

import pytest

from lm_audit.plugin.options.audit_options import audit_names

MARKERS = {
    "control": "shows that an audit finds a planted effect, or stays silent without one",
    "cpu": "runs on the CPU",
    "cuda": "runs on an NVIDIA GPU",
    "mps": "runs on an Apple GPU",
    "endpoint": "asks a model behind a server",
    "slow": "takes minutes; audits so marked run at --size standard or full",
}
AUDITS = ("privacy", "leakage", "bias", "needle", "faithfulness")


def register(config: pytest.Config) -> None:
    """Register one marker an audit, those that come with further audits included, and the others."""
    for audit in dict.fromkeys((*AUDITS, *audit_names())):
        config.addinivalue_line("markers", f"{audit}: belongs to the {audit} audit")
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def control_role(item: pytest.Item, declared: str | None) -> str | None:
    """The control role of an item: what its case declares, else ``positive`` for one that bears the marker alone."""
    return declared or ("positive" if item.get_closest_marker("control") else None)


def audit_of(item: pytest.Item) -> str | None:
    """The audit whose marker the item carries, the nearest one first."""
    known = {*AUDITS, *audit_names()}
    return next((mark.name for mark in item.iter_markers() if mark.name in known), None)
