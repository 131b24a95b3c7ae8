"""Gates files and the one definition of met, missed and undecided."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lm_audit.errors import GateError
from lm_audit.gates import Gate, judge, read_gates, worst
from lm_audit.runstore.records import Verdict
from lm_audit.stats.estimate import Estimate


def gates(tmp_path: Path, text: str) -> tuple[Gate, ...]:
    path = tmp_path / "gates.toml"
    path.write_text(text, encoding="utf-8")
    return read_gates(path)


@pytest.mark.parametrize(
    ("limit", "low", "high", "word"),
    [
        ("max = 0.5", 0.1, 0.5, "met"),
        ("max = 0.5", 0.4, 0.6, "undecided"),
        ("max = 0.5", 0.51, 0.6, "missed"),
        ("max = 0.5", 0.5, 0.6, "undecided"),
        ("min = 0.5", 0.5, 0.6, "met"),
        ("min = 0.5", 0.4, 0.6, "undecided"),
        ("min = 0.5", 0.3, 0.49, "missed"),
        ("target = 50\nwithin = 5", 46, 54, "met"),
        ("target = 50\nwithin = 5", 44, 54, "undecided"),
        ("target = 50\nwithin = 5", 40, 44.9, "missed"),
        ("target = 50\nwithin = 5", 55.1, 60, "missed"),
        ("target = 50\nwithin = 5", 30, 70, "undecided"),
    ],
)
def test_the_whole_interval_decides(tmp_path: Path, limit: str, low: float, high: float, word: str) -> None:
    gate = gates(tmp_path, f"[bias.gap]\n{limit}")[0]
    assert judge(gate, Estimate((low + high) / 2, low, high, n=10)).word == word


def test_a_value_without_interval_is_a_point() -> None:
    gate = Gate("m", high=0.5, limit="<= 0.5")
    assert judge(gate, Estimate(0.5)).word == "met"
    assert judge(gate, Estimate(0.6)).word == "missed"
    assert "no interval" in judge(gate, Estimate(0.6)).reason


def test_an_open_side_is_never_within() -> None:
    assert judge(Gate("m", high=0.5), Estimate(0.2, None, 0.4)).word == "met"
    assert judge(Gate("m", low=0.1), Estimate(0.2, None, 0.4)).word == "undecided"


def test_too_few_observations_or_no_value_leave_it_undecided(tmp_path: Path) -> None:
    gate = gates(tmp_path, "[bias.gap]\nmax = 0.5\nn_min = 20")[0]
    assert judge(gate, Estimate(0.1, 0.0, 0.2, n=20)).word == "met"
    assert judge(gate, Estimate(0.1, 0.0, 0.2, n=19)).word == "undecided"
    assert judge(gate, Estimate(0.9, 0.8, 1.0, n=19)).word == "undecided"
    assert judge(gate, Estimate(0.1, 0.0, 0.2)).word == "undecided"
    assert "19" in judge(gate, Estimate(0.1, n=19)).reason
    assert "no pairs" in judge(gate, Estimate.not_estimable("no pairs")).reason


def test_models_and_cases_narrow_a_gate(tmp_path: Path) -> None:
    gate = gates(tmp_path, '[bias.gap]\nmax = 1\nmodels = ["a"]\ncases = "*gender*"')[0]
    assert gate.applies("evals/t.py::x[a@cpu-gender-en]", "a")
    assert not gate.applies("evals/t.py::x[b@cpu-gender-en]", "b")
    assert not gate.applies("evals/t.py::x[a@cpu-race-en]", "a")
    assert gates(tmp_path, '[m.x]\nmax = 1\ncases = "a@cpu-gender*"')[0].applies("t.py::x[a@cpu-gender]", "a")


def test_one_metric_may_have_several_limits_and_names_may_nest(tmp_path: Path) -> None:
    text = "[[bias.gap]]\nmax = 1\n[[bias.gap]]\nmin = 0\n[leakage.rate.hard]\nmax = 0.1\n[bias.other]\nmin = 2\n"
    found = gates(tmp_path, text)
    assert [(g.metric, g.limit) for g in found] == [
        ("bias.gap", "<= 1"), ("bias.gap", ">= 0"), ("bias.other", ">= 2"), ("leakage.rate.hard", "<= 0.1")
    ]  # fmt: skip
    assert (found[0].low, found[0].high) == (-math.inf, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[bias.gap]\nmaxx = 1", r"unknown key 'maxx'; did you mean 'max'\?"),
        ("[bias.gap]\nn_mn = 1\nmax = 1", r"unknown key 'n_mn'; did you mean 'n_min'\?"),
        ("[bias.gap]\nmax = 1\nmin = 0", "exactly one of max, min or target, found max, min"),
        ("[bias.gap]\nn_min = 3", "exactly one of max, min or target, found none"),
        ("[bias.gap]", "exactly one of max, min or target, found none"),
        ("[bias.gap]\ntarget = 1", "target and within go together"),
        ("[bias.gap]\nmax = 1\nwithin = 1", "target and within go together"),
        ("[bias.gap]\ntarget = 1\nwithin = -1", "negative"),
        ("[bias.gap]\nmax = 'a'", "max = 'a' is not a finite number"),
        ("[bias.gap]\nmax = nan", "not a finite number"),
        ("[bias.gap]\nmax = true", "not a finite number"),
        ("[bias.gap]\nmax = 1\nn_min = 0", "n_min = 0"),
        ("[bias.gap]\nmax = 1\nmodels = 'a'", "models = 'a' is not a list"),
        ("[bias.gap]\nmax = 1\ncases = 3", "cases = 3 is not a glob"),
        ("max = 1", "stands outside of a table"),
        ("", "holds no gate"),
        ("[bias.gap\nmax = 1", "not TOML"),
    ],
)
def test_what_cannot_be_meant_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GateError, match=message) as caught:
        gates(tmp_path, text)
    assert "gates.toml" in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert gates(tmp_path, "\ufeff[bias.gap]\nmax = 1")[0].metric == "bias.gap"


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GateError, match=r"absent\.toml: No such file"):
        read_gates(tmp_path / "absent.toml")


def test_the_worst_verdict_stands_for_a_case() -> None:
    met, missed, undecided = (Verdict("m", word, "", "") for word in ("met", "missed", "undecided"))
    assert worst([met, undecided, missed]) == "missed"
    assert worst([met, undecided]) == "undecided"
    assert worst([met]) == "met"
    assert worst([]) is None
