"""What must hold for every grid, swap and public score."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lm_audit.audits.bias.benchmarks.bbq.scores import bbq_scores
from lm_audit.audits.bias.benchmarks.shares import preference_share
from lm_audit.audits.bias.benchmarks.stereoset.scores import stereoset_scores
from lm_audit.audits.bias.generated.swap import swap_gender
from lm_audit.audits.bias.grid.lexicon.linting import lint
from lm_audit.audits.bias.grid.lexicon.parts import SLOT, Axis, PreferenceSet, WordPair, normalise_slot, render
from lm_audit.errors import DataError
from tests.audits.bias.test_bias_known_answers import balanced_items
from tests.present import present

VOCABULARY = "he she him her his hers man woman king queen book saw the quickly , and"
WORDS = st.lists(st.sampled_from(VOCABULARY.split()), max_size=9)
SCORES = arrays(np.float64, st.tuples(st.integers(1, 30), st.just(3)), elements=st.floats(-50, 0))


@given(WORDS)
def test_a_swap_is_an_involution_or_refused(words: list[str]) -> None:
    text = " ".join(words)
    try:
        swapped = swap_gender(text)
    except DataError:
        return
    assert swap_gender(swapped.text).text == text
    assert swapped.text != text


@given(WORDS)
def test_a_swap_touches_listed_spans_only(words: list[str]) -> None:
    text = " ".join(words)
    try:
        swapped = swap_gender(text)
    except DataError:
        return
    ends = [0, *(end for _, end in swapped.spans)]
    starts = [*(start for start, _ in swapped.spans), len(text)]
    kept = zip(ends, starts, strict=True)
    position = 0
    for end, start in kept:
        piece = text[end:start]
        position = swapped.text.index(piece, position) + len(piece)


@given(st.text(min_size=1), st.sampled_from(["{group}", "{GROUP}", "{g}", "{}"]))
def test_render_fills_the_slot_and_leaves_no_trailing_space(group: str, slot: str) -> None:
    prompt = render(f"The {slot} is  ", group)
    assert prompt == f"The {group} is"
    assert normalise_slot(f"The {slot} is").count(SLOT) == 1


@given(st.lists(st.sampled_from(["man", "woman", "child"]), max_size=4))
def test_lint_accepts_an_axis_only_with_two_different_groups(groups: list[str]) -> None:
    if not groups:
        return
    grid = PreferenceSet(
        "en", " ", ("The {group} is", "The {group} was"), (Axis.of("axis", groups),), (WordPair("a", "b"),), "person"
    )
    assert (lint(grid) == []) == (len(groups) >= 2 and len(set(groups)) == len(groups))


@given(SCORES)
def test_stereoset_scores_stay_in_range_and_mirror(table: np.ndarray) -> None:
    targets = [f"t{i % 3}" for i in range(len(table))]
    scores = stereoset_scores(table, targets)
    for value in (scores.ss, scores.lms, scores.icat, scores.ss_micro, scores.lms_micro, scores.icat_micro):
        assert -1e-9 <= value <= 100 + 1e-9
    mirrored = stereoset_scores(table[:, [1, 0, 2]], targets)
    assert np.isclose(mirrored.ss, 100 - scores.ss)
    assert np.isclose(mirrored.lms, scores.lms) and np.isclose(mirrored.icat, scores.icat)


@given(arrays(np.float64, st.tuples(st.integers(1, 30), st.just(2)), elements=st.floats(-9, 0)))
def test_preference_shares_of_swapped_pairs_add_up(pairs: np.ndarray) -> None:
    assert np.all(preference_share(pairs) + preference_share(pairs[:, ::-1]) == 100)


@given(st.data())
def test_bbq_bias_is_bounded_and_flips_with_the_answerer(data: st.DataObject) -> None:
    items = balanced_items()
    choices = [[data.draw(st.sampled_from([0, 1, 2, None]))] for _ in items]
    scores = bbq_scores(items, choices)
    other = [
        [None if c is None else c if c == item.unknown else ({0, 1, 2} - {c, item.unknown}).pop() for c in given_]
        for item, given_ in zip(items, choices, strict=True)
    ]
    mirrored = bbq_scores(items, other)
    if scores.bias_disambig is None:
        assert mirrored.bias_disambig is None
    else:
        assert -1 <= scores.bias_disambig <= 1
        assert np.isclose(present(mirrored.bias_disambig), -scores.bias_disambig)
