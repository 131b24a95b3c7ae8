"""What always holds for prefixes, shuffles, orders, sign flips, similarities and Min-K%."""

from __future__ import annotations

import itertools
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_audit.audits.leakage import (
    Item,
    dataset_score,
    edit_distance,
    edit_similarity,
    full_text,
    half_option_prefixes,
    min_k,
    paired_sign_flip,
    published_place_test,
    rouge_l,
    sharded_test,
    shuffle_options,
    shuffled_orders,
    start_points,
)
from lm_audit.audits.leakage.half_option.cuts import word_cut
from lm_audit.audits.leakage.items.item import LETTERS
from lm_audit.audits.leakage.items.style import follows, poisson_binomial
from lm_audit.audits.leakage.likelihood.scores import Rounding

texts = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=24)
option_lists = st.lists(texts.filter(lambda t: t.strip()), min_size=2, max_size=10)
short = st.text(alphabet="ab中 ", max_size=8)


@st.composite
def items(draw: st.DrawFn) -> Item:
    options = tuple(draw(option_lists))
    right = draw(st.sets(st.sampled_from(LETTERS[: len(options)])))
    return Item(draw(st.integers(0, 99).map(str)), "f", draw(texts), options, ",".join(sorted(right)))


@given(texts, option_lists)
def test_prefix_and_suffix_make_the_text_so_far(question: str, options: list[str]) -> None:
    pairs = half_option_prefixes(question, options)
    for k, (prefix, suffix) in enumerate(pairs):
        assert prefix + suffix == full_text(Item("1", "f", question, tuple(options[: k + 1])))
        assert len(suffix) == len(options[k]) - len(options[k]) // 2


@given(items(), st.randoms(use_true_random=False))
def test_shuffling_back_gives_the_item(item: Item, random: object) -> None:
    order = list(range(len(item.options)))
    random.shuffle(order)  # type: ignore[attr-defined]
    back = [order.index(slot) for slot in range(len(order))]
    moved = shuffle_options(item, order)
    assert shuffle_options(moved, back) == item
    right = sorted(item.options[LETTERS.index(x)] for x in item.answer.split(",") if x)
    assert right == sorted(moved.options[LETTERS.index(x)] for x in moved.answer.split(",") if x)


@given(items(), st.integers(1, 12), st.integers(0, 5))
def test_orders_are_different_permutations_and_repeatable(item: Item, count: int, seed: int) -> None:
    orders = shuffled_orders(item, count, seed=seed)
    assert orders == shuffled_orders(item, count, seed=seed)
    assert len(set(orders)) == len(orders) <= count
    published = tuple(range(len(item.options)))
    assert all(sorted(order) == list(published) and order != published for order in orders)


@given(st.text(min_size=1, max_size=30))
def test_a_word_cut_leaves_both_sides_or_the_whole(option: str) -> None:
    place = word_cut(option)
    assert 0 <= place < len(option)
    if place:
        assert option[:place] + option[place:] == option and not option[place - 1].isspace()


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=10))
def test_sign_flips_agree_with_enumeration(differences: list[int]) -> None:
    observed = sum(differences)
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    expected = sum(total >= observed for total in sums) / len(sums)
    assert paired_sign_flip(differences).value == pytest.approx(expected)
    both = paired_sign_flip(differences, alternative="two-sided").value
    assert both == pytest.approx(sum(abs(t) >= abs(observed) for t in sums) / len(sums))
    assert both == pytest.approx(paired_sign_flip([-d for d in differences], alternative="two-sided").value)


@given(st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=1, max_size=8), st.integers(1, 50))
def test_lattice_and_enumeration_agree(values: list[float], scale: int) -> None:
    whole = [round(v) for v in values]
    by_lattice = paired_sign_flip(whole).value
    # The same differences off any lattice are enumerated.
    off = paired_sign_flip([v * math.pi * scale for v in whole]).value
    assert by_lattice == pytest.approx(off)


@given(st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=5), min_size=1, max_size=6), st.integers(0, 9))
def test_the_place_test_never_gives_zero(scores: list[list[float]], seed: int) -> None:
    found = published_place_test(scores, n_resamples=99, seed=seed)
    assert found.value is None or 0 < found.value <= 1
    assert found == published_place_test(scores, n_resamples=99, seed=seed)


@given(short, short)
def test_similarities_are_symmetric_and_bounded(a: str, b: str) -> None:
    assert edit_distance(a, b) == edit_distance(b, a) <= max(len(a), len(b))
    assert (edit_distance(a, b) == 0) == (a == b)
    assert 0 <= edit_similarity(a, b) <= 1 and 0 <= rouge_l(a, b) <= 1
    assert rouge_l(a, b) == pytest.approx(rouge_l(b, a))
    if a:
        assert rouge_l(a, a) == edit_similarity(a, a) == 1


@given(short, short, short)
def test_edit_distance_obeys_the_triangle(a: str, b: str, c: str) -> None:
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


@given(st.lists(st.floats(-50, 0), min_size=1, max_size=60), st.floats(0.01, 1))
def test_min_k_lies_between_the_least_and_the_mean(logprobs: list[float], k: float) -> None:
    for rounding in get_args(Rounding):
        value = min_k(logprobs, k, rounding=rounding)
        assert value is not None
        assert min(logprobs) - 1e-9 <= value <= float(np.mean(logprobs)) + 1e-9


@given(st.integers(0, 5000), st.integers(1, 8), st.integers(1, 8), st.integers(8, 2000))
def test_start_points_stay_within_the_text(tokens: int, n: int, starts: int, longest: int) -> None:
    places = start_points(tokens, n, starts, longest=longest)
    assert (places is None) == (min(tokens, longest) - n < 2)
    if places is not None:
        assert len(places) == starts and places[0] == 2
        assert all(place >= 2 and place + n <= min(tokens, longest) for place in places)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_chances_of_successes_sum_to_one(chances: list[float]) -> None:
    table = poisson_binomial(chances)
    assert table.sum() == pytest.approx(1)
    assert (table * np.arange(len(table))).sum() == pytest.approx(sum(chances))


@given(st.lists(st.lists(st.integers(0, 4), max_size=6), min_size=1, max_size=5))
def test_equal_files_are_weighted_alike(files: list[list[int]]) -> None:
    by_files, by_items = dataset_score(files, "files"), dataset_score(files)
    assert by_files is not None
    if by_items is not None and len({len(scores) for scores in files}) == 1:
        assert by_files == pytest.approx(by_items)


@given(st.lists(st.text(alphabet="abc", min_size=1, max_size=4), min_size=2, max_size=5))
def test_a_sorted_order_is_one_of_the_orders(options: list[str]) -> None:
    ordered = sorted(options, key=len)
    assert follows(ordered, "short_to_long") == (len({len(o) for o in options}) > 1)


@settings(deadline=None)
@given(st.lists(st.floats(-100, 0), min_size=2, max_size=6), st.integers(1, 8), st.integers(0, 99))
def test_sharded_p_values_are_probabilities(canonical: list[float], permutations: int, seed: int) -> None:
    shuffled = np.random.default_rng(seed).normal(-50, 5, (len(canonical), permutations)).tolist()
    result = sharded_test(canonical, shuffled)
    assert all(1 / (permutations + 1) <= p <= 1 for p in result.rank_p)
    assert result.fisher.value is not None and 0 <= result.fisher.value <= 1
