"""The audit's options: what cannot be used is refused before a model loads, and nothing counts as "not given"."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

import pytest

from lm_audit.audits.leakage.options import OPTIONS

TYPES = {option.flag: option.type for option in OPTIONS}


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--leakage-limit", "0"),
        ("--leakage-limit", "-3"),
        ("--leakage-limit", "nan"),
        ("--leakage-limit", "1.5"),
        ("--leakage-limit", "9" * 5000),
        ("--leakage-orders", "0"),
        ("--leakage-orders", "-1"),
        ("--leakage-orders", "100"),
        ("--leakage-orders", "inf"),
        ("--leakage-clean", " "),
        ("--leakage-columns", ""),
        ("--benchmark", ""),
    ],
)
def test_values_that_are_none(flag: str, value: str) -> None:
    with pytest.raises(ArgumentTypeError) as error:
        TYPES[flag](value)
    assert len(str(error.value)) < 120


@pytest.mark.parametrize(("flag", "value", "read"), [("--leakage-limit", "1", 1), ("--leakage-orders", "99", 99)])
def test_values_at_the_edge(flag: str, value: str, read: Any) -> None:
    assert TYPES[flag](value) == read
