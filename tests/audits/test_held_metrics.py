"""Every metric that an audit declares is held by another route in some control, or stands here with the reason why not.

A new metric without a hold is noticed at once; that the list is true, by the slow test, which runs all controls.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.metric_info import declared_names, metric_family
from tests.audits.held_metrics import ELSEWHERE, HELD, PARTS, WITHOUT

AUDITS = ("bias", "faithfulness", "leakage", "needle", "privacy")
CONTROLS = Path(__file__).resolve().parents[2] / "benchmarks" / "controls"


def patterns(metric: str, table: Any) -> list[str]:
    return [pattern for pattern in table if re.fullmatch(pattern, metric)]


def held(metric: str) -> bool:
    """Its own rows, or of privacy the same metric of any stage."""
    staged = re.sub(r"^privacy\.", "privacy.{stage}.", metric)
    return any("value" in HELD.get(name, ()) or patterns(name, ELSEWHERE) for name in (metric, staged))


@pytest.mark.parametrize("audit", AUDITS)
def test_every_declared_metric_has_a_hold_or_a_reason(audit: str) -> None:
    bare = [name for name in declared_names(audit) if not held(name) and not patterns(name, WITHOUT)]
    assert bare == [], "hold these in a control (docs/controls.md), or say in held_metrics.py why none can"


def test_no_reason_is_given_for_what_is_held_or_is_no_metric() -> None:
    every = [name for audit in AUDITS for name in declared_names(audit)]
    for pattern in WITHOUT:
        fitting = [name for name in every if re.fullmatch(pattern, name)]
        assert fitting, f"{pattern} fits no declared metric"
        assert [name for name in fitting if held(name)] == []
    assert [pattern for pattern in ELSEWHERE if not any(re.fullmatch(pattern, name) for name in every)] == []
    assert set(HELD) <= set(every) and {part for parts in HELD.values() for part in parts} <= set(PARTS)


def test_a_metric_without_a_hold_is_noticed() -> None:
    assert not held("privacy.new_figure") and not patterns("privacy.new_figure", WITHOUT)
    assert metric_family("bias.bbq_bias_ambig.category.Age") == "bias.bbq_bias_ambig.category.{category}"
    assert metric_family("bias.new_figure") is None


@pytest.mark.slow
@pytest.mark.parametrize("audit", AUDITS)
def test_the_list_is_what_the_controls_hold(audit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(CONTROLS))
    seen = import_module("held").held_by_controls((audit,))
    own = {name: parts for name, parts in HELD.items() if name.startswith(f"{audit}.")}
    assert {name: tuple(part for part in PARTS if part in parts) for name, parts in seen.items()} == own
