"""The rule of verdicts, the turn of a comparison and the checks of numbers hold for whatever numbers they are given."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lm_audit.errors import UsageError
from lm_audit.findings import Finding, Side
from lm_audit.findings.beyond import LEVEL
from lm_audit.findings.deciding import decided, excluded_above, p_of_interval
from lm_audit.report.comparison.direction import turn
from lm_audit.report.comparison.margins import margin_of
from lm_audit.shared.number_checks import (
    LARGEST_SEED,
    check_number,
    check_whole,
    real_number,
    seed_number,
    whole_number,
)
from lm_audit.stats import Estimate

MIRRORED: dict[Side, Side] = {"above": "below", "below": "above", "either": "either"}
SIDES = st.sampled_from(["above", "below", "either"])
POINTS = st.lists(st.floats(-10, 10).map(lambda x: round(x, 3)), min_size=3, max_size=3, unique=True).map(sorted)
P_VALUES = st.floats(0, 1) | st.none()


def finding(points: list[float], side: Side, margin: float | None, p: float | None, n: int = 40) -> Finding:
    low, value, high = points
    effect = Estimate(value, low, high, n=n, unit="nats")
    return Finding("k", "cannot tell", "a", "b", "c", effect=effect, null=0.0, margin=margin, side=side, p=p)


def mirrored(one: Finding) -> Finding:
    assert one.effect is not None
    value, low, high = (-float(x or 0.0) for x in (one.effect.value, one.effect.high, one.effect.low))
    return replace(one, effect=replace(one.effect, value=value, low=low, high=high), side=MIRRORED[one.side])


@given(POINTS, SIDES, st.floats(0.001, 10) | st.none(), P_VALUES)
def test_a_verdict_follows_from_the_interval_the_margin_and_the_p_value(
    points: list[float], side: Side, margin: float | None, p: float | None
) -> None:
    one = decided(finding(points, side, margin, p))
    low, _, high = points
    beyond = {"above": low > 0, "below": high < 0, "either": low > 0 or high < 0}[side]
    far = {"above": max(0.0, high), "below": max(0.0, -low), "either": max(high, -low)}[side]
    within = margin is not None and far <= margin
    assert (one.verdict == "not found") == within
    assert (one.verdict == "found") == (beyond and not within and p is not None and p <= LEVEL)
    assert bool(one.reason) == (one.verdict == "cannot tell")
    assert (one.excluded is not None) == (one.verdict == "not found")
    assert one.needed is None or (one.verdict == "cannot tell" and one.needed > 40)


@given(POINTS, SIDES, st.floats(0.001, 10) | st.none(), P_VALUES)
def test_which_side_is_called_positive_changes_no_verdict(
    points: list[float], side: Side, margin: float | None, p: float | None
) -> None:
    one, other = decided(finding(points, side, margin, p)), decided(mirrored(finding(points, side, margin, p)))
    assert (one.verdict, one.excluded, one.needed) == (other.verdict, other.excluded, other.needed)
    assert excluded_above(one) == excluded_above(other)


@given(POINTS, SIDES, st.floats(0.001, 10), st.integers(1, 7))
def test_what_does_not_cover_is_never_told(points: list[float], side: Side, margin: float, n: int) -> None:
    one = decided(finding(points, side, margin, 0.0, n))
    assert one.verdict == "cannot tell" and f"{n} item" in one.reason and one.needed == 8


@given(st.floats(-5, 5), st.floats(0.01, 5), st.integers(8, 500))
def test_the_p_value_of_an_interval_agrees_with_it(value: float, half: float, n: int) -> None:
    assume(abs(abs(value) - half) > 1e-6 * half)  # At the very limit rounding decides.
    effect = Estimate(value, value - half, value + half, n=n, confidence=0.95)
    p = p_of_interval(effect, 0.0, "either")
    assert p is not None and 0 <= p <= 1
    assert (p < 0.05) == (abs(value) > half)
    for side, benign in (("above", value <= 0), ("below", value >= 0)):
        told = p_of_interval(effect, 0.0, side)  # type: ignore[arg-type]
        assert told == (1.0 if benign else p)


@pytest.mark.parametrize(
    "effect",
    [
        Estimate(None, note="nothing was measured"),
        Estimate(0.3, n=40),
        Estimate(0.3, 0.3, 0.3, n=40),
        Estimate(0.3, 0.1, 0.5, n=7),
        Estimate(0.3, None, 0.5, n=40),  # no bound towards the null value
    ],
)
def test_an_interval_that_says_nothing_has_no_p_value(effect: Estimate) -> None:
    assert p_of_interval(effect, 0.0, "either") is None


@given(st.floats(-100, 100), st.floats(-100, 100), st.sampled_from(["lower", "higher"]))
def test_a_turned_value_is_larger_where_it_is_worse(one: float, other: float, better: str) -> None:
    turned = turn(Estimate(one, better=better))
    worse = one > other if better == "lower" else one < other
    assert (turned.apply(one) > turned.apply(other)) == worse


@given(st.floats(-100, 100), st.floats(-100, 100))
def test_a_target_is_missed_by_the_distance_on_its_side(value: float, target: float) -> None:
    turned = turn(Estimate(value, value - 1, value + 1, better=f"target:{target}"))
    low, high = (
        math.copysign(x, 1) if x == 0 else x for x in turned.estimate(Estimate(value, value - 1, value + 1))[1:]
    )
    assert turned.apply(value) == pytest.approx(abs(value - target))
    assert low is not None and high is not None and low <= high
    assert turn(Estimate(value, better="neither")).apply(value) == 0


@pytest.mark.parametrize(
    ("unit", "declared", "margin"),
    [
        ("%", None, 5.0),
        ("percentage points", None, 5.0),
        ("share", None, 0.05),
        ("share of items", None, 0.05),
        ("AUC", None, 0.05),
        ("ap", None, 0.05),
        ("nats", None, None),
        (None, None, None),
        ("nats", 0.2, 0.2),
        ("share", 0.0, 0.0),
    ],
)
def test_what_matters_is_what_was_declared_or_five_points(
    unit: str | None, declared: float | None, margin: float | None
) -> None:
    assert margin_of(Estimate(0.5, unit=unit), declared) == margin


ODD: list[Any] = [True, False, math.nan, math.inf, -math.inf, None, "3", 10**400, -(10**400), [1], 1 + 0j]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_what_is_no_number_is_refused_by_name(value: Any) -> None:
    for check in (check_whole, check_number):
        with pytest.raises(UsageError, match=r"^--size must be") as told:
            check("--size", value)
        assert len(str(told.value)) < 200


@given(st.integers(-50, 50), st.integers(-20, 20), st.integers(0, 20))
def test_options_and_arguments_have_the_same_limits(value: int, least: int, room: int) -> None:
    allowed = least <= value <= least + room
    parse = whole_number(least, least + room)
    if allowed:
        assert parse(str(value)) == parse(f" {value} ") == value
        check_whole("n", value, least, least + room)
        check_number("n", value, least=least, most=least + room)
        assert real_number(least=least, most=least + room)(str(value)) == value
        return
    with pytest.raises(ArgumentTypeError, match=f"'{value}' is not a whole number"):
        parse(str(value))
    with pytest.raises(UsageError, match=f"got {value}$"):
        check_whole("n", value, least, least + room)
    with pytest.raises(UsageError, match=f"got {value}$"):
        check_number("n", value, least=least, most=least + room)


@given(st.floats(0, 1))
def test_open_limits_leave_the_limit_itself_out(value: float) -> None:
    parse = real_number(above=0, below=1, unit="the whole")
    if 0 < value < 1:
        assert parse(repr(value)) == value
    else:
        with pytest.raises(ArgumentTypeError, match="a number of the whole above 0 and below 1"):
            parse(repr(value))


@pytest.mark.parametrize("text", ["", "nan", "inf", "1_000", "1,5", "0x10", "٣", "1e999", "--", "1 2", "True"])
def test_texts_that_python_would_read_as_numbers_are_none_here(text: str) -> None:
    for parse in (whole_number(0), real_number(), seed_number()):
        with pytest.raises(ArgumentTypeError):
            parse(text)
    assert real_number(infinite=True)("inf") == math.inf


def test_a_seed_is_one_that_every_library_takes() -> None:
    assert (seed_number()("0"), seed_number()(str(LARGEST_SEED))) == (0, LARGEST_SEED)
    with pytest.raises(ArgumentTypeError, match=f"from 0 to {LARGEST_SEED}"):
        seed_number()(str(LARGEST_SEED + 1))
