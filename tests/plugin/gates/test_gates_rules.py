"""Gates files and the one definition of met, missed and undecided."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lm_audit.errors import GateError
from lm_audit.gates.gate import Gate, judge, judge_case, worst
from lm_audit.gates.reading import read_gates
from lm_audit.runstore.records import Verdict
from lm_audit.stats import (
    bootstrap_ci,
    bootstrap_clustered,
    bootstrap_crossed,
    bootstrap_two_sample,
    clopper_pearson,
    crossed_contrast,
    mean_exposure,
    roc_auc,
    share_difference,
    wilson,
)
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


@pytest.mark.parametrize("within", [0, 0.5])
def test_limits_are_part_of_what_is_allowed_and_a_verdict_names_them(tmp_path: Path, within: float) -> None:
    (gate,) = gates(tmp_path, f"[bias.gap]\ntarget = 50\nwithin = {within}")
    for side in (-1, 1):
        touching = sorted((50 + side * within, 50 + side * (within + 1)))
        assert judge(gate, Estimate(touching[0], touching[0], touching[1], n=50)).word == "undecided"
        beyond = sorted((50 + side * (within + 1e-4), 50 + side * (within + 1)))
        verdict = judge(gate, Estimate(beyond[0], beyond[0], beyond[1], n=50))
        assert (verdict.metric, verdict.word, verdict.limit) == ("bias.gap", "missed", f"within {within:g} of 50")


def test_an_open_end_is_told_as_unknown() -> None:
    gate = Gate("m", high=0.5)
    assert judge(gate, Estimate(0.2, None, 0.4, n=20)).reason == "0.20 (\u2212\u221e, 0.40] is within the limit"
    assert judge(gate, Estimate(0.6, 0.55, None, n=20)).reason == "0.600 [0.550, \u221e) is beyond the limit"
    assert judge(gate, Estimate(0.2, 0.1, None, n=20)).word == "undecided"
    assert judge(gate, Estimate(0.6, n=20)).reason.startswith("0.600 is beyond the limit, but it has no interval")
    nothing = judge(gate, Estimate.not_estimable("no pairs"))
    assert (nothing.word, nothing.metric) == ("undecided", "m")


def test_a_case_is_judged_by_the_gates_of_its_metrics_its_model_and_its_id() -> None:
    every = [
        Gate("m", high=0.5), Gate("absent", high=0.5), Gate("m", high=0.6, models=("other",)),
        Gate("m", high=0.7, models=("mine",), cases="*-a"), Gate("m", high=0.8, cases="*-b]"),
    ]  # fmt: skip
    limits = [replace(gate, limit=str(gate.high)) for gate in every]
    found = judge_case(limits, {"m": Estimate(0.9, 0.85, 1.0, n=50)}, "t.py::x[mine@cpu-a]", "mine")
    assert [(verdict.limit, verdict.word) for verdict in found] == [("0.5", "missed"), ("0.7", "missed")]


def decided(gate: Gate, **fields: object) -> Verdict:
    return judge(gate, Estimate(0.9, 0.8, 1.0, **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("estimate", "reason"),
    [
        (Estimate(0.6, n=100), "beyond the limit, but it has no interval"),
        (Estimate(0.4, n=100), "within the limit, but it has no interval"),
        (Estimate(0.4, 0.4, 0.4, n=100), "within the limit, but its interval has no width"),
        (Estimate(0.4, 0.3, 0.49), "within the limit, but it does not say how many items stand behind its interval"),
        (Estimate(0.4, 0.3, 0.49, n=100, confidence=0.5), "within the limit, but its interval covers in 50 % of cases"),
        (Estimate(0.9, 0.8, 1.0, n=100, confidence=None), "but its interval covers in no stated share"),
        (Estimate(0.9, 0.8, 1.0, fewest=6), "beyond the limit, but it does not say how many items"),
        (Estimate(0.4, 0.3, 0.5, n=7), "within the limit, but 7 items of the 8 from which on"),
        (Estimate(0.9, 0.8, 1.0, n=2), "beyond the limit, but 2 items of the 8 from which on"),
        (Estimate(0.9, 0.8, 1.0, n=1), "beyond the limit, but 1 item of the 8 from which on"),
        (Estimate(0.9, 0.8, 1.0, n=200, units=5, fewest=6), "but 5 independent units (200 values) of the 6"),
        (bootstrap_ci([0.3] * 50, method="BCa", seed=0), "within the limit, but its interval has no width"),
        (bootstrap_ci([0.1, 0.3, 0.2], method="BCa", seed=0), "3 items of the 8"),
        (bootstrap_clustered(np.arange(50) / 100, [0] * 50, seed=0), "1 clusters give no interval, 6 do"),
        (bootstrap_clustered(np.arange(50) / 100, [i % 5 for i in range(50)], seed=0), "5 clusters give no interval"),
        (bootstrap_crossed(np.arange(40).reshape(2, 20) / 100, seed=0), "a 2 x 20 table: no interval"),
        (crossed_contrast(np.arange(40).reshape(2, 20) / 100, seed=0).difference, "a 2 x 20 table: no interval"),
        (roc_auc([2.0], [1.0]), "beyond the limit, but it has no interval"),
        (roc_auc([0.3, 0.7], np.arange(300) / 300), "2 scores on a side give no interval, 8 do"),
        (roc_auc(np.arange(300) / 300, [0.3, 0.7]), "2 scores on a side give no interval, 8 do"),
        (bootstrap_two_sample([1.0], [0.5], "mean_difference", seed=0), "it has no interval"),
        (wilson(0, 3), "straddles the limit, but 3 items of the 8"),
        (mean_exposure([0.1], [0.5, 0.6]), "beyond the limit, but it has no interval"),
    ],
)  # fmt: skip
def test_what_does_not_cover_decides_nothing(estimate: Estimate, reason: str) -> None:
    verdict = judge(Gate("m", high=0.5, limit="<= 0.5"), estimate)
    assert (verdict.word, reason in verdict.reason) == ("undecided", True), verdict.reason


def test_an_obstacle_is_told_in_whole_words() -> None:
    gate = Gate("m", high=0.5, n_min=20)
    said = [
        (Estimate(0.6, n=100), "0.600 is beyond the limit, but it has no interval"),
        (Estimate(0.6, n=100, note="few items"), "0.600 is beyond the limit, but it has no interval (few items)"),
        (
            Estimate(0.4, 0.3, 0.45, n=100, confidence=0.5),
            "0.40 [0.30, 0.45] is within the limit, but its interval covers in 50 % of cases, and 90 % are the least",
        ),
        (
            Estimate(0.4, 0.3, 0.45, fewest=1),  # exact at any size, and nobody knows whether it is that of the gate
            "0.40 [0.30, 0.45] is within the limit, but an unknown number of items of 20",
        ),
    ]
    for estimate, reason in said:
        assert judge(gate, estimate) == Verdict("m", "undecided", "", reason)


def test_an_interval_of_ninety_per_cent_decides() -> None:
    words = [decided(Gate("m", high=0.5), n=100, confidence=level).word for level in (0.9, 0.89)]
    assert words == ["missed", "undecided"]


def test_what_covers_decides_from_the_first_size_on_at_which_it_covers() -> None:
    gate = Gate("m", high=0.5, limit="<= 0.5")
    assert decided(gate, n=8).word == "missed"
    assert decided(gate, n=200, units=6, fewest=6).word == "missed"
    assert decided(gate, n=200, units=6).word == "undecided"
    assert judge(gate, clopper_pearson(0, 6)).word == "met"  # [0, 0.459]: exact at any n
    assert judge(gate, clopper_pearson(0, 5)).word == "undecided"  # [0, 0.522]
    assert decided(gate, fewest=1).word == "missed"  # what is exact covers whatever the number of items is
    assert judge(Gate("m", high=0.1), clopper_pearson(0, 20)).word == "undecided"


@pytest.mark.parametrize("size", [2, 3, 5, 8, 12])
def test_at_the_limit_a_gate_decides_wrongly_no_more_often_than_it_says(size: int) -> None:
    """Normal values whose mean lies just beyond the limit: *met* is then wrong."""
    rng = np.random.default_rng(size)
    gate = Gate("m", high=0.0)
    wrong = sum(
        judge(gate, bootstrap_ci(rng.normal(1e-9, 1, size), n_resamples=499, seed=0)).word == "met" for _ in range(400)
    )
    # Of two sides 2.5% each; BCa at n = 8 still takes 6% (400 draws: up to 9.5%), below 8 nothing is decided.
    assert wrong / 400 <= (0.0 if size < 8 else 0.095)


def test_an_open_side_is_never_within() -> None:
    assert judge(Gate("m", high=0.5), Estimate(0.2, None, 0.4, n=20)).word == "met"
    assert judge(Gate("m", low=0.1), Estimate(0.2, None, 0.4, n=20)).word == "undecided"


def test_too_few_units_or_no_value_leave_it_undecided(tmp_path: Path) -> None:
    gate = gates(tmp_path, "[bias.gap]\nmax = 0.5\nn_min = 200")[0]
    assert judge(gate, Estimate(0.1, 0.0, 0.2, n=200)).word == "met"
    for value, side in ((0.1, "within"), (0.8, "beyond")):
        verdict = judge(gate, Estimate(value, value - 0.1, value + 0.1, n=12))
        assert verdict.word == "undecided"
        assert f"is {side} the limit, but 12 items of 200" in verdict.reason
    assert "straddles the limit, but 12 items of 200" in judge(gate, Estimate(0.5, 0.4, 0.6, n=12)).reason
    assert judge(gate, Estimate(0.1, 0.0, 0.2)).word == "undecided"
    assert "no pairs" in judge(gate, Estimate.not_estimable("no pairs")).reason


def test_n_min_counts_clusters_not_cells_and_one_side_not_both(tmp_path: Path) -> None:
    gate = gates(tmp_path, "[bias.gap]\nmax = 0.5\nn_min = 20")[0]
    table = np.random.default_rng(0).normal(0, 0.1, (40, 12))
    assert "12 independent units (480 values) of 20" in judge(gate, crossed_contrast(table, seed=0).difference).reason
    assert judge(gate, crossed_contrast(np.repeat(table, 2, axis=1), seed=0).difference).word == "met"
    members, twins = np.random.default_rng(1).normal(0, 1, (2, 30))
    assert "of 20" in judge(gate, roc_auc(members[:12], twins)).reason
    assert "of 20" not in judge(gate, roc_auc(members, twins)).reason
    assert "12 independent units" in judge(gate, share_difference(1, 12, 30, 500)).reason


def test_a_control_is_never_judged_and_a_toy_says_so() -> None:
    gate, metrics = Gate("m", high=0.5, limit="<= 0.5"), {"m": Estimate(0.9, 0.8, 1.0, n=50)}
    assert judge_case([gate], metrics, "t.py::x[a]", None, control=True) == []
    (verdict,) = judge_case([gate], metrics, "t.py::x[a]", None, toy=True)
    assert verdict.word == "missed" and "BUILT-IN TOY" in verdict.reason
    (verdict,) = judge_case([gate], metrics, "t.py::x[a]", None)
    assert "TOY" not in verdict.reason


def test_models_and_cases_narrow_a_gate(tmp_path: Path) -> None:
    gate = gates(tmp_path, '[bias.gap]\nmax = 1\nmodels = ["a"]\ncases = "*gender*"')[0]
    assert gate.applies("evals/t.py::x[a@cpu-gender-en]", "a")
    assert not gate.applies("evals/t.py::x[b@cpu-gender-en]", "b")
    assert not gate.applies("evals/t.py::x[a@cpu-race-en]", "a")
    (inner,) = gates(tmp_path, '[m.x]\nmax = 1\ncases = "a@cpu-gender"')
    assert inner.applies("t.py::x[a@cpu-gender]", "a") and not inner.applies("t.py::x[a@cpu-gender-en]", "a")
    (brackets,) = gates(tmp_path, '[m.x]\nmax = 1\ncases = "a@cpu-[[]x]*"')
    assert brackets.applies("t.py::x[a@cpu-[x]-en]", "a")


@pytest.mark.parametrize(
    ("cases", "held"),
    [
        ("evals/t.py::x[a@cpu-gender-en]", True),
        ("*::x[a@cpu-*-en]", True),
        ("*::x[[]a@cpu-*]", True),
        ("a@cpu-gender-[de][mn]", True),  # a set of letters is one still
        ("evals/t.py::x[a@cpu-gender-e]", False),
        ("evals/t.py::y[a@cpu-gender-en]", False),
    ],
)
def test_a_case_may_be_named_by_its_id_as_it_is_shown(cases: str, held: bool) -> None:
    assert Gate("bias.gap", high=1.0, cases=cases).applies("evals/t.py::x[a@cpu-gender-en]", "a") is held


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
        ("[bias.gap]\nmax = 1\nn_min = true", "n_min = True"),
        ("[bias.gap]\nmax = 1\nn_min = 2.5", "n_min = 2.5"),
        ("[bias.gap]\nmax = 1\nmodels = []", r"models = \[\] is not a list of names"),
        ("[bias.gap]\nmax = 1\nmodels = ['a', 1]", "is not a list of names"),
        ("[bias.gap]\ntarget = 1\nwithin = 'b'", r"gates.toml, \[bias.gap\]: within = 'b' is not a finite number"),
        ("[a.b.c]\nmax = 1\n[a.b.d]\n", r"gates.toml, \[a.b.d\]: give exactly one"),
        (
            "[a.b]\nmax = 1\nd.e = 2",
            r"gates.toml, \[a.b.d\]: unknown key 'e'.*; the keys are max, min, target, within,",
        ),
        ("[bias.gap]\nmax = 1\nmodels = 'a'", "models = 'a' is not a list"),
        ("[bias.gap]\nmax = 1\ncases = 3", "cases = 3 is not a glob"),
        ("[needle.cliff]\nmin = -1", r"gates.toml, \[needle.cliff\]: the limit >= -1 is outside of the range"),
        ("[bias.gap]\nmax = 1\nmodels = ['a', 'a']", r"gates.toml, \[bias.gap\]: models names 'a' twice"),
        ("[[bias.gap]]\nmax = 1\n[[bias.gap]]\nmax = 2", r"gates.toml, \[bias.gap\]: the limits <= 1 and <= 2"),
        ("max = 1", "stands outside of a table"),
        ("", "holds no gate"),
        ("[bias.gap\nmax = 1", "not TOML"),
    ],
)
def test_what_cannot_be_meant_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GateError, match=message) as caught:
        gates(tmp_path, text)
    assert "gates.toml" in str(caught.value)


def test_one_unit_may_be_enough(tmp_path: Path) -> None:
    (gate,) = gates(tmp_path, "[bias.gap]\nmax = 1\nn_min = 1")
    assert gate.n_min == 1
    assert judge(gate, Estimate(0.5, 0.4, 0.6, n=1, fewest=1)).word == "met"
    one = judge(gate, Estimate(0.5, 0.4, 0.6, n=40, units=1, fewest=2))
    assert "but 1 independent unit (40 values) of the 2" in one.reason
    two = judge(gate, Estimate(0.5, 0.4, 0.6, fewest=2))
    assert (two.word, "how many items" in two.reason) == ("undecided", True)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert gates(tmp_path, "\ufeff[bias.gap]\nmax = 1")[0].metric == "bias.gap"


@pytest.mark.parametrize(
    ("gate", "low", "high", "told"),
    [
        (Gate("m", high=0.3), 0.2, 0.1 + 0.2, "0.25 [0.20, 0.30] is within the limit"),
        (Gate("m", low=0.1), 1 - 0.9, 0.4, "0.25 [0.10, 0.40] is within the limit"),
        (Gate("m", high=0.3), 0.2, 0.30001, "0.25000 [0.20000, 0.30001] straddles the limit"),
        (Gate("m", high=1 - 0.9), 0.1, 0.4, "0.25 [0.10, 0.40] straddles the limit"),
        (Gate("m", low=0.1 + 0.2), 0.2, 0.3, "0.25 [0.20, 0.30] straddles the limit"),
        (Gate("m", low=0.1), -math.inf, 0.4, "0.25 (\u2212\u221e, 0.40] straddles the limit"),
        (Gate("m", high=0.3), 0.2, math.inf, "0.25 [0.20, \u221e) straddles the limit"),
    ],
)
def test_an_end_that_is_written_as_the_limit_lies_on_it(gate: Gate, low: float, high: float, told: str) -> None:
    ends = [None if math.isinf(end) else end for end in (low, high)]
    assert judge(gate, Estimate(0.25, ends[0], ends[1], n=30)).reason == told


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GateError, match=r"absent\.toml: there is no such file"):
        read_gates(tmp_path / "absent.toml")


def test_the_worst_verdict_stands_for_a_case() -> None:
    met, missed, undecided = (Verdict("m", word, "", "") for word in ("met", "missed", "undecided"))
    assert worst([met, undecided, missed]) == "missed"
    assert worst([met, undecided]) == "undecided"
    assert worst([met]) == "met"
    assert worst([]) is None


@pytest.mark.parametrize(
    ("estimate", "gate", "told"),
    [
        (Estimate(0.08812345, 0.0623456, 0.15712345, 200), Gate("m", high=0.02), "0.088 [0.062, 0.157] is beyond"),
        (Estimate(0.31, 0.2000301, 0.42, 200), Gate("m", high=0.2), "0.31000 [0.20003, 0.42000] is beyond"),
        (Estimate(0.31, 0.21, 0.3999, 200), Gate("m", low=0.2, high=0.4), "0.3100 [0.2100, 0.3999] is within"),
        (Estimate(51234.5678, 50001.234, 52468.9, 200), Gate("m", high=5e4), "51235 [50001, 52469] is beyond"),
        (Estimate(0.50004, n=100), Gate("m", high=0.5), "0.50004 is beyond"),
        (Estimate(-1.5, None, -1.25, 200), Gate("m", high=0), "\u22121.50 (\u2212\u221e, \u22121.25] is within"),
    ],
)
def test_a_reason_has_the_digits_of_its_interval_and_never_rounds_onto_the_limit(
    estimate: Estimate, gate: Gate, told: str
) -> None:
    assert judge(gate, estimate).reason.startswith(told)
