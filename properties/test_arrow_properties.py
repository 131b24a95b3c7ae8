"""Arrays built from their buffers are those that ``pyarrow.array`` makes of the same values."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lm_audit.report.tables.arrow import booleans, floats, integers, texts


def lists(values: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(st.none() | values)


@given(lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_texts_are_arrows_strings(values) -> None:
    built = texts(values)
    built.validate(full=True)
    assert built.equals(pa.array(values, pa.string()))


@given(lists(st.floats(allow_nan=False)))
def test_floats_are_arrows_doubles(values) -> None:
    assert floats(values).equals(pa.array(values, pa.float64()))


@given(lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_arrows(values) -> None:
    assert integers(values).equals(pa.array(values, pa.int64()))


@given(lists(st.booleans()))
def test_booleans_are_arrows(values) -> None:
    assert booleans(values).equals(pa.array(values, pa.bool_()))
