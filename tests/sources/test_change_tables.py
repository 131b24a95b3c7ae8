"""The table of compared statistics is renewed row by row, and a row that ran out of time says how much it had."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmark_script import benchmark_script


@pytest.fixture(scope="module")
def changes() -> Any:
    return benchmark_script("coverage_changes")


def test_a_row_takes_the_place_of_its_namesake_in_the_order_of_kinds(changes: Any) -> None:
    old = ["| share | 12 items | 1 | 2 |", "| mean | 6 items | 3 | 4 |", "| gone | 6 items | 5 | 6 |"]
    before = changes.table(old)
    assert changes.renewed(before, ["| mean | 6 items | 7 | 8 |", "| mean | 8 items | 9 | 0 |"]) == [
        "| mean | 6 items | 7 | 8 |",
        "| mean | 8 items | 9 | 0 |",
        "| share | 12 items | 1 | 2 |",
    ]


def test_kinds_are_told_apart_by_name_and_design(changes: Any) -> None:
    names = [(kind.name, kind.setting) for kind in changes.kinds()]
    assert len(set(names)) == len(names)


def test_a_row_without_time_has_twenty_comparisons_of_each(changes: Any) -> None:
    without, with_effect = changes.rates((1, 10_000, 10_000, 0.0))
    assert (without.runs, with_effect.runs) == (20, 20) and with_effect.rate > without.rate
    assert changes.rates((1, 30, 25, 60.0))[0].runs == 30
    assert (without.method, without.setting) == ("mean", "8 items")
