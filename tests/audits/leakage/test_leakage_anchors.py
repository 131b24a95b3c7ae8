"""Options that name others keep their place; nothing is shuffled wrongly."""

from __future__ import annotations

import pytest

from lm_audit.audits.leakage import Item, anchored_slots, is_order_dependent, shuffle_options, shuffled_orders
from lm_audit.audits.leakage.orders.permutations import is_shufflable, orders_to_rank
from lm_audit.errors import DataError, UsageError

ANCHORED = [
    "以上都对", "以上均是", "以上选项均不正确", "上述各项均正确", "A和B", "A、B、C", "选项A、C均正确", "AB都对",
    "仅A", "都不对", "All of the above", "None of the above.", "Any of the above", "two of the above",
    "Both A and B", "Neither A nor C", "(a) and (b)", "A only", "Only B", "B and C only", "A and C are correct",
    "Options A and B", "None of these.",
]  # fmt: skip
FREE = [
    "60天以上", "1%以上10%以下", "18岁以上", "县级以上人民政府", "以上年度净利润为基础计算", "以上海为例",
    "都江堰", "均衡价格", "甲和乙", "A", "AB", "Vitamin A and B", "Hepatitis A", "A major chord",
    "C major and A minor", "I and II", "3 and 4", "both assets and liabilities", "Neither party",
    "the above-ground biomass", "Apple and Banana", "Both",
]  # fmt: skip


@pytest.mark.parametrize("option", ANCHORED)
def test_options_that_depend_on_the_order(option: str) -> None:
    assert is_order_dependent(option)


@pytest.mark.parametrize("option", FREE)
def test_options_that_do_not(option: str) -> None:
    assert not is_order_dependent(option)


def test_what_an_option_names_stays_too() -> None:
    both = Item("1", "f", "q", ("red", "blue", "green", "Both A and B"), "D")
    assert anchored_slots(both) == {0, 1, 3}
    assert not is_shufflable(both)
    assert shuffled_orders(both, 5, seed=0) == []
    above = Item("2", "f", "q", ("red", "blue", "green", "None of the above"), "A,C")
    assert anchored_slots(above) == {3}
    for last in ("N/A", "None", "-"):
        assert anchored_slots(Item("3", "f", "q", ("red", "-", "green", last), "A")) == {3}
    orders = shuffled_orders(above, 9, seed=0)
    assert len(orders) == 5
    assert all(order[3] == 3 for order in orders)


def test_answers_move_with_their_options() -> None:
    item = Item("1", "f", "q", ("one", "two", "three", "four"), "A,C")
    for order in shuffled_orders(item, 23, seed=3):
        moved = shuffle_options(item, order)
        right = {moved.options["ABCD".index(letter)] for letter in moved.answer.split(",")}
        assert right == {"one", "three"}


def test_the_first_orders_make_a_latin_square() -> None:
    item = Item("1", "f", "q", ("one", "two", "three", "four"), "A")
    table = [(0, 1, 2, 3), *shuffled_orders(item, 3, seed=5)]
    assert all(sorted(column) == [0, 1, 2, 3] for column in zip(*table, strict=True))


def test_orders_of_long_items_are_sampled() -> None:
    item = Item("1", "f", "q", tuple("abcdefgh"), "A")
    orders = orders_to_rank(item, 24, seed=0)
    assert orders[0] == tuple(range(8))
    assert len(set(orders)) == len(orders) == 24
    assert len(orders_to_rank(Item("1", "f", "q", tuple("abc")), 24, seed=0)) == 6
    assert orders_to_rank(Item("1", "f", "q", tuple("abc")), [(2, 1, 0), (0, 1, 2)], seed=0) == [(0, 1, 2), (2, 1, 0)]


def test_wrong_orders_and_answers() -> None:
    item = Item("7", "f", "q", ("one", "two", "three"), "E")
    with pytest.raises(UsageError, match=r"order \[0, 0, 1\] is no permutation of the 3 options of item f:7"):
        shuffle_options(item, [0, 0, 1])
    with pytest.raises(DataError, match="item 7: answer 'E' names 'E', the options are A to C"):
        shuffle_options(item, [0, 2, 1])
