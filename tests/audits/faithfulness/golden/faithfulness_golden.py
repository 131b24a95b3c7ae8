"""Reading the reference values of the faithfulness audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.methods.explain import Explainer
from tests.shared_data import golden_file

Explainers = Callable[[str], Explainer]
"""The explainer of a case, by its name."""

CASES = ("fact_raw", "needle_raw", "chat_think", "think_math")


def mostly_slow(quick: str) -> list[Any]:
    """All cases for a test that takes seconds in each: ``quick`` in every run, the others marked slow."""
    return [case if case == quick else pytest.param(case, marks=pytest.mark.slow) for case in CASES]


RAW, THINKING = mostly_slow("fact_raw"), mostly_slow("chat_think")
"""Without a template in every run, or with one and a thought: tests of a kind take them by turns."""


@cache
def golden(name: str) -> dict[str, Any]:
    """One golden file, by its name without ending."""
    content: dict[str, Any] = json.loads(golden_file(f"faithfulness/{name}.json").read_text())
    return content


def numbers(values: Any) -> NDArray[np.float64]:
    """A JSON array with null as NaN."""
    return np.array(values, dtype=np.float64)


def user_and_generation(values: Any, case: dict[str, Any]) -> NDArray[np.float64]:
    """The attribution's columns out of values over all positions (last axis)."""
    start = case["P_full"]
    return numbers(values)[..., [*case["user_prompt_indices"], *range(start, start + case["G"])]]


def assert_close(found: Any, expected: Any, atol: float, *, relative: bool = False) -> None:
    """Largest difference at most ``atol`` (times the largest expected value); NaN where NaN is expected."""
    found, expected = np.asarray(found, dtype=np.float64), numbers(expected)
    assert found.shape == expected.shape
    defined = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~defined)
    limit = atol * (np.abs(expected[defined]).max() if relative else 1.0)
    assert np.abs(found - expected)[defined].max() <= limit
