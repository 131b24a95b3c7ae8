"""Reports of curves and scores that are known beforehand, broken on purpose: each fault must be told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lm_audit.stats as statistics
from lm_audit.audits.faithfulness import audit as faithfulness
from lm_audit.audits.faithfulness import conclusions
from lm_audit.audits.faithfulness.controls.answers_known import wrong_of_known_curves
from lm_audit.audits.privacy import audit as privacy
from lm_audit.audits.privacy.controls.known_stability import wrong_of_known_stability
from lm_audit.audits.privacy.measure import stress
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.means import studentised
from tests.audits.reporting_faults import REPORTING

Fault = Callable[[pytest.MonkeyPatch], None]


def put(module: Any, name: str, fault: Callable[..., Any]) -> Fault:
    """``fault(honest, ...)`` in place of a function, where its module uses it."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = getattr(module, name)
        patch.setattr(module, name, lambda *words, **options: fault(honest, *words, **options))

    return apply


def wide(times: float) -> Callable[..., Estimate]:
    def fault(honest: Callable[..., Estimate], *words: Any, **options: Any) -> Estimate:
        found = honest(*words, **options)
        if found.value is None or found.low is None or found.high is None:
            return found
        low, high = (found.value + times * (end - found.value) for end in (found.low, found.high))
        return replace(found, low=low, high=high)

    return fault


def at_80(honest: Callable[..., Any], *words: Any, **options: Any) -> Any:
    """Limits of 80 % that are said to be of 95."""
    return replace(honest(*words, **{**options, "confidence": 0.8}), confidence=0.95)


def without_the_first(honest: Callable[..., Any], values: Any, *words: Any, **options: Any) -> Any:
    return honest(list(values)[1:], *words, **options)


def every_value_twice(honest: Callable[..., Any], values: Any, *words: Any, **options: Any) -> Any:
    return replace(honest([*values, *values], *words, **options), n=len(list(values)))


def of_stability(name: str, change: Callable[[Estimate], Estimate]) -> Fault:
    """One of the two alone."""

    def fault(honest: Callable[..., Any], scores: Any) -> Any:
        found = honest(scores)
        return found | {name: change(found[name])}

    module = sys.modules[wrong_of_known_stability.__module__]
    return put(module, "stability_metrics", fault)


def _wide(times: float) -> Callable[[Estimate], Estimate]:
    return lambda estimate: wide(times)(lambda: estimate)


CURVES: dict[str, Fault] = {
    "gains: interval half as wide": put(conclusions, "_estimate", wide(0.5)),
    "gains: interval twice as wide": put(conclusions, "_estimate", wide(2.0)),
    "gains: interval of 80 %": put(studentised, "studentised_mean", at_80),
    "gains: every sample twice": put(studentised, "studentised_mean", every_value_twice),
    "gains: a sample lost": put(studentised, "studentised_mean", without_the_first),
    "gains: sign reversed": put(
        conclusions, "_gains", lambda honest, rows, column: [-gain for gain in honest(rows, column)]
    ),
    "gains: over samples that deletion cannot judge": put(
        conclusions, "_gains", lambda honest, rows, column: [row[column] - row["mas"] for row in rows]
    ),
    "gains: one reference for the other": put(
        conclusions, "_gains", lambda honest, rows, column: honest(rows, "mas_random")
    ),
    "means: interval half as wide": put(statistics, "mean_interval", wide(0.5)),
    "means: interval twice as wide": put(statistics, "mean_interval", wide(2.0)),
    "means: interval of 80 %": put(statistics, "mean_interval", at_80),
    "means: every sample twice": put(statistics, "mean_interval", every_value_twice),
    "means: samples that deletion cannot judge": put(
        faithfulness, "table_of", lambda honest, scored, metric: honest(scored, metric, skip_degenerate=False)
    ),
    "means: no value is 0": put(
        faithfulness,
        "table_of",
        lambda honest, scored, metric: {
            one.method: {o.sample: o.row()[metric] or 0.0 for o in scored if o.method == one.method} for one in scored
        },
    ),
    "ranking: one method's values for the other's": put(
        faithfulness, "rank_methods", lambda honest, table, *words, **o: honest(_turned(table), *words, **o)
    ),
    "share that cannot be judged: of the others": put(
        statistics, "clopper_pearson", lambda honest, hits, n, *words: honest(n - hits, n, *words)
    ),
}
CURVES |= REPORTING

STABILITY: dict[str, Fault] = {
    **{
        f"{name}: {told}": of_stability(name, change)
        for name in ("stability", "source.stability")
        for told, change in {
            "interval half as wide": _wide(0.5),
            "interval twice as wide": _wide(2.0),
            "no interval": lambda estimate: replace(estimate, low=None, high=None),
            "instability": lambda estimate: replace(estimate, value=1 - estimate.value, low=None, high=None),
        }.items()
    },
    "spread of a sample": put(
        stress,
        "instabilities",
        lambda honest, values: list(
            np.abs(np.std(np.asarray(values), axis=1, ddof=1) / np.mean(np.asarray(values), axis=1))
        ),
    ),
    "one column for both": put(
        privacy, "instability_by_canary", lambda honest, scores, column: honest(scores, "span_mean_logprob")
    ),
    "interval of 80 %": put(privacy, "mean_interval", at_80),
    "every canary twice": put(privacy, "mean_interval", every_value_twice),
    "a canary lost": put(privacy, "mean_interval", without_the_first),
} | {name: fault for name, fault in REPORTING.items() if name != "chance levels 0.1 up"}


def _turned(table: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(table, reversed(list(table.values())), strict=True))


def test_sound_reports_have_no_fault() -> None:
    assert wrong_of_known_curves() == []
    assert wrong_of_known_stability() == []


@pytest.mark.parametrize("fault", CURVES)
def test_faults_of_a_report_on_curves_are_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CURVES[fault](monkeypatch)
    assert wrong_of_known_curves()


@pytest.mark.parametrize("fault", STABILITY)
def test_faults_of_the_stability_are_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    STABILITY[fault](monkeypatch)
    assert wrong_of_known_stability()
