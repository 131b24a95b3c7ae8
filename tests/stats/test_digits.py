"""One rule for digits: what the interval's width allows, and never a rounding that tells another story."""

from __future__ import annotations

import pytest

from lm_audit.stats.digits import chance_text, interval_text, p_text, value_text
from lm_audit.stats.estimate import Estimate


@pytest.mark.parametrize(
    ("value", "low", "high", "texts"),
    [
        (0.68, 0.597, 0.763, ("0.68", "[0.60, 0.76]")),
        (0.088, 0.0621, 0.1574, ("0.088", "[0.062, 0.157]")),
        (-12.43, -20.65, -4.21, ("−12", "[−21, −4]")),
        (1.0, 0.158, 1.0, ("1.00", "[0.16, 1.00]")),
        (0.5, 0.0, 1.0, ("0.5", "[0.0, 1.0]")),
        (0.1234567, 0.1234560, 0.1234572, ("0.1234567", "[0.1234560, 0.1234572]")),
        (4127.3, 3901.2, 4350.9, ("4127", "[3901, 4351]")),
        (12, 8, 19, ("12", "[8, 19]")),
        (0.25, 0.11, None, ("0.25", "[0.11, ∞)")),
        (3.6944, None, None, ("3.69", "")),
        (2e9, 1.5e9, 2.5e9, ("2.00e+09", "[1.50e+09, 2.50e+09]")),
    ],
)
def test_digits_follow_the_width(value: float, low: float, high: float, texts: tuple[str, str]) -> None:
    estimate = Estimate(value, low, high, 40)
    assert (value_text(estimate), interval_text(estimate)) == texts


def test_an_end_beyond_chance_is_not_rounded_onto_it() -> None:
    assert interval_text(Estimate(0.61, 0.503, 0.71, 40, chance=0.5)) == "[0.503, 0.710]"
    assert interval_text(Estimate(0.61, 0.503, 0.71, 40)) == "[0.50, 0.71]"
    assert interval_text(Estimate(0.61, 0.5, 0.71, 40, chance=0.5)) == "[0.50, 0.71]"


def test_chance_has_the_digits_of_the_value_but_never_becomes_nothing() -> None:
    assert chance_text(Estimate(0.68, 0.597, 0.763, 40, chance=1 / 3)) == "0.33"
    assert chance_text(Estimate(0.68, 0.597, 0.763, 40, chance=0.0012)) == "0.00120"
    assert chance_text(Estimate(0.68, 0.597, 0.763, 40, chance=0.5)) == "0.50"


def test_p_values_are_written_as_such() -> None:
    assert [p_text(p) for p in (0.31234, 0.00239, 3e-9, 1.0)] == ["0.31", "0.0024", "< 0.0001", "1"]
    assert [p_text(p) for p in (0.04968, 0.05, 0.05021, 0.049996)] == ["0.0497", "0.050", "0.0502", "0.0499960"]
    assert value_text(Estimate(3e-9, unit="p")) == "< 0.0001"
