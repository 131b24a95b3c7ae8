"""Arrays built from their buffers are those that ``pyarrow.array`` makes of the same values."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lm_audit.report.tables.arrow import booleans, floats, integers, texts

Value = TypeVar("Value")


def lists(values: st.SearchStrategy[Value]) -> st.SearchStrategy[list[Value | None]]:
    return st.lists(st.none() | values)


@given(lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_texts_are_arrows_strings(values: list[str | None]) -> None:
    built = texts(values)
    built.validate(full=True)
    assert built.equals(pa.array(values, pa.string()))


@given(lists(st.floats(allow_nan=False)))
def test_floats_are_arrows_doubles(values: list[float | None]) -> None:
    assert floats(values).equals(pa.array(values, pa.float64()))


@given(lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_arrows(values: list[int | None]) -> None:
    assert integers(values).equals(pa.array(values, pa.int64()))


@given(lists(st.booleans()))
def test_booleans_are_arrows(values: list[bool | None]) -> None:
    assert booleans(values).equals(pa.array(values, pa.bool_()))
