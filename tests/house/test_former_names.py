"""What was renamed before 1.0 is still found by its former name, with a warning that says the new one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module

import pytest

from lm_audit.audits import bias, leakage, privacy
from lm_audit.errors import HarnessError
from lm_audit.shared import number_checks


def test_a_former_function_is_the_one_of_today() -> None:
    with pytest.warns(DeprecationWarning, match="lm_audit.audits.privacy.attribute is now attribute_leak"):
        former = privacy.attribute  # type: ignore[attr-defined]  # by __getattr__
    assert former is privacy.attribute_leak
    assert "attribute" not in privacy.__all__ and "attribute" not in dir(privacy)


def test_a_documented_module_is_found_at_its_former_place() -> None:
    former = import_module("lm_audit.number_checks")
    with pytest.warns(DeprecationWarning, match="is now lm_audit.shared.number_checks.whole_number"):
        assert former.whole_number is number_checks.whole_number


@pytest.mark.parametrize(
    ("function", "former", "now"),
    [
        (bias.load_rows, {"path_or_hub_id": "absent.csv", "kind": "bbq"}, "source"),
        (leakage.load_benchmark, {"benchmark": "absent.csv"}, "source"),
    ],
)
def test_a_former_argument_is_the_one_of_today(
    function: Callable[..., object], former: dict[str, str], now: str
) -> None:
    name = next(iter(former))
    with (
        pytest.warns(DeprecationWarning, match=f"{name}=.* is now {now}="),
        pytest.raises(HarnessError, match="absent"),
    ):
        function(**former)
    with pytest.raises(TypeError, match="two names of one argument"):
        function(**former, **{now: "x"})


@pytest.mark.parametrize("function", [bias.bbq, bias.bbq_generated, bias.stereoset])
def test_rows_are_taken_by_their_former_name(function: Callable[..., object]) -> None:
    assert "rows" in inspect.signature(function).parameters
    with pytest.warns(DeprecationWarning, match="items=.* is now rows="), pytest.raises(HarnessError):
        function(None, items=[])
