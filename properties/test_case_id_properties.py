"""The grammar of case ids can be read back, whatever models and cases are called."""

from __future__ import annotations

import string

from hypothesis import assume, given
from hypothesis import strategies as st

from lm_audit.errors import UsageError
from lm_audit.gates.gate import Gate, judge
from lm_audit.plugin.audit_cases.case import Case
from lm_audit.plugin.audit_cases.grouping import group_of
from lm_audit.plugin.audit_cases.selection import Selection
from lm_audit.plugin.options.model_choice import ModelChoice, parse_choice
from lm_audit.stats.estimate import Estimate

names = st.text(st.sampled_from(string.ascii_letters + string.digits + "-_.:+~"), min_size=1, max_size=20)
devices = st.sampled_from(["cpu", "cuda", "cuda:1", "mps"])


@given(names, devices, names)
def test_model_and_device_are_read_back_from_an_id(name: str, device: str, case: str) -> None:
    selection = Selection(Case(case), ModelChoice(name, "x"), device)
    model, _, rest = selection.id.partition("@")
    assert model == name
    assert rest == f"{device}-{case}"
    assert group_of(f"evals/test_x.py::test_y[{selection.id}]") == f"{name}@{device}"


@given(st.lists(st.tuples(names, devices, names), min_size=2, max_size=6, unique=True))
def test_different_selections_have_different_ids(chosen: list[tuple[str, str, str]]) -> None:
    ids = {Selection(Case(case), ModelChoice(name, "x"), device).id for name, device, case in chosen}
    assert len(ids) == len(chosen)


@given(st.text(max_size=30))
def test_a_model_is_named_legally_or_refused(text: str) -> None:
    try:
        choice = parse_choice(text)
    except UsageError:
        return
    assert choice.name and not set(choice.name) & set("@[] \n\t")
    assert text in (choice.spec, f"{choice.name}={choice.spec}")


numbers = st.floats(-1e6, 1e6)


@given(numbers, numbers, numbers, numbers, numbers)
def test_a_verdict_follows_the_interval_alone(a: float, b: float, value: float, low: float, high: float) -> None:
    assume(low <= high)
    lower, upper = sorted((a, b))
    gate = Gate("m", low=lower, high=upper, limit="")
    word = judge(gate, Estimate(value, low, high, n=100)).word
    if low == high:  # No width: nothing tells how far chance reaches.
        assert word == "undecided"
        return
    assert (word == "met") == (lower <= low and high <= upper)
    assert (word == "missed") == (high < lower or low > upper)


@given(numbers, numbers, numbers, st.floats(0, 1e6))
def test_a_wider_interval_never_decides_what_a_narrow_one_left_open(
    limit: float, low: float, high: float, more: float
) -> None:
    assume(low < high)
    gate = Gate("m", high=limit, limit="")
    if judge(gate, Estimate(low, low, high, n=100)).word == "undecided":
        assert judge(gate, Estimate(low, low - more, high + more, n=100)).word == "undecided"


@given(numbers, numbers, numbers)
def test_an_interval_that_does_not_say_of_how_many_decides_nothing(limit: float, low: float, high: float) -> None:
    assume(low <= high)
    assert judge(Gate("m", high=limit, limit=""), Estimate(low, low, high)).word == "undecided"
