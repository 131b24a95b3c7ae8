"""What holds for every attribution matrix: normalisation, recursion, unit sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.passage.sentences import (
    chunk_units,
    group_tokens,
    sentence_bounds,
    sentence_units,
    word_units,
)
from lm_audit.audits.faithfulness.passage.spans import near_equal_ranges
from lm_audit.audits.faithfulness.views import aggregated, normalised, rec_view, row_view

Attribution = tuple[NDArray[np.float64], int]
"""A row for each generated token, columns of all tokens; how many of these are of the prompt."""

values = st.one_of(st.just(np.nan), st.floats(-10, 10, width=32))


@st.composite
def matrices(draw: st.DrawFn, low: float | None = 0.0) -> Attribution:
    rows, features = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    cells = values if low is None else st.floats(low, 10, width=32)
    return draw(hnp.arrays(np.float64, (rows, features + rows), elements=cells)), features


def _slow_rec(matrix: NDArray[np.float64], span: tuple[int, int]) -> NDArray[np.float64]:
    """Token by token, as the definition says it."""
    rows = normalised(matrix)
    features = rows.shape[1] - len(rows)
    total = np.zeros(rows.shape[1])
    for index in range(span[0], span[1] + 1):
        row = rows[index].copy()
        for earlier in range(index - 1, -1, -1):
            share = row[features + earlier]
            row += share * rows[earlier]
            row[features + earlier] = 0.0
            # What the added row holds at or after its own place was added above; the definition clears only its own.
        total += row
    return total


@given(matrices(low=None))
def test_rows_are_shares(case: Attribution) -> None:
    rows = normalised(case[0])
    assert (rows >= 0).all() and (rows.sum(axis=1) <= 1 + 1e-9).all() and np.isfinite(rows).all()


@given(matrices(low=None), st.data())
def test_rec_equals_the_token_by_token_definition(case: Attribution, data: st.DataObject) -> None:
    matrix, features = case
    matrix[:, features:] = np.tril(np.nan_to_num(matrix[:, features:]))
    first = data.draw(st.integers(0, len(matrix) - 1))
    last = data.draw(st.integers(first, len(matrix) - 1))
    found = rec_view(matrix, (first, last))
    np.testing.assert_allclose(found[:features], _slow_rec(matrix, (first, last))[:features], atol=1e-9)


@given(matrices(low=0.0078125))
def test_without_a_diagonal_rec_keeps_all_mass(case: Attribution) -> None:
    matrix, features = case
    matrix[:, features:] = np.tril(matrix[:, features:], -1)
    span = (0, len(matrix) - 1)
    rolled = rec_view(matrix, span)
    assert abs(rolled[:features].sum() - len(matrix)) < 1e-5
    assert np.abs(rolled[features:]).max() == 0.0


@given(matrices(low=0.0), st.floats(0.1, 100))
def test_views_do_not_depend_on_scale(case: Attribution, factor: float) -> None:
    matrix, _ = case
    matrix = matrix + 1.0
    span = (0, len(matrix) - 1)
    np.testing.assert_allclose(row_view(matrix * factor, span), row_view(matrix, span), atol=1e-6)


@given(matrices(low=None), st.integers(1, 4))
def test_unit_sums_add_up_to_what_lies_before_the_unit(case: Attribution, size: int) -> None:
    matrix, features = case
    prompt = chunk_units(["a"] * features, size).tokens
    generation = chunk_units(["a"] * len(matrix), size).tokens
    sums = aggregated(matrix, prompt, generation, features)
    filled = np.nan_to_num(matrix)
    for row, group in enumerate(generation):
        before = filled[list(group)][:, : features + group[0]].sum()
        assert abs(sums[row].sum() - before) < 1e-6


@given(st.text(st.sampled_from("aB .!?\n1é。"), max_size=60))
def test_sentences_cover_the_text_without_gaps(text: str) -> None:
    bounds = sentence_bounds(text)
    assert "".join(text[first:last] for first, last in bounds) == text
    assert all(first < last for first, last in bounds)


@given(st.text(st.sampled_from("aB .!?\n"), min_size=1, max_size=60), st.data())
def test_every_token_belongs_to_exactly_one_sentence(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=20)) | {0, len(text)})
    offsets = [(first, last) for first, last in pairwise(cuts) if last > first]
    units = sentence_units(text, offsets)
    assert [token for group in units.tokens for token in group] == list(range(len(offsets)))
    assert sum(len(group) for group in group_tokens(offsets, sentence_bounds(text))) == len(offsets)


@given(st.lists(st.sampled_from(["a", " b", "\n", "c ", ""]), max_size=20))
def test_words_partition_the_tokens(tokens: list[str]) -> None:
    units = word_units(tokens)
    assert [token for group in units.tokens for token in group] == list(range(len(tokens)))
    assert "".join(units.texts) == "".join(tokens)


@given(st.integers(0, 50), st.integers(-3, 60))
@settings(max_examples=200)
def test_near_equal_ranges(length: int, parts: int) -> None:
    ranges = near_equal_ranges(length, parts)
    sizes = [last - first for first, last in ranges]
    assert sum(sizes) == length and all(sizes) and sizes == sorted(sizes, reverse=True)
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert len(ranges) == (min(max(1, parts), length) if length else 0)
