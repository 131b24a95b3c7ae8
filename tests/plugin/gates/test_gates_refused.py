"""Gates that cannot be meant are refused where they are read: out of range, repeated, contradictory, unclear names."""

from __future__ import annotations

import json
import math
import unicodedata
from contextlib import nullcontext
from pathlib import Path

import pytest

from lm_audit.audits.metric_info import ANY, RANGE_OF_UNIT, metric_info, metric_table
from lm_audit.audits.registry import audit_packages
from lm_audit.errors import GateError
from lm_audit.evidence import Evidence
from lm_audit.gates.checks import refuse_contradictions, refuse_out_of_range
from lm_audit.gates.gate import Gate
from lm_audit.gates.reading import read_gates
from lm_audit.report.writing.of_evidence import report
from lm_audit.stats.estimate import Estimate

OWN = [name for name, package in audit_packages().items() if package.startswith("lm_audit.")]


def gates(tmp_path: Path, text: str) -> tuple[Gate, ...]:
    path = tmp_path / "gates.toml"
    path.write_text(text, encoding="utf-8")
    return read_gates(path)


@pytest.mark.parametrize("audit", OWN)
def test_every_metric_has_a_range_or_says_that_it_has_none(audit: str) -> None:
    for entry in metric_table(audit):
        assert entry.range is not None or entry.unit in RANGE_OF_UNIT, f"{entry.name}: neither range nor known unit"
        low, high = entry.limits
        assert low < high


def _beyond() -> list[tuple[str, float]]:
    found = []
    for audit in OWN:
        for entry in metric_table(audit):
            low, high = entry.limits
            name = entry.name.replace("{", "").replace("}", "")
            found += [(name, bound + step) for bound, step in ((low, -0.5), (high, 0.5)) if math.isfinite(bound)]
    return found


def test_a_limit_beyond_the_range_of_any_metric_is_refused(tmp_path: Path) -> None:
    beyond = _beyond()
    assert len(beyond) > 200
    for metric, value in beyond:
        info = metric_info(metric)
        assert info is not None
        if info.limits[0] <= value <= info.limits[1]:  # a name of a family that another entry spells out
            continue
        with pytest.raises(GateError, match="outside of the range"):
            gates(tmp_path, f'["{metric}"]\nmax = {value}\n')


@pytest.mark.parametrize("limit", ["min = -0.05", "target = 0.0\nwithin = 0.05", "max = -0.01"])
@pytest.mark.parametrize("name", ["bias.bbq_accuracy_gap", "bias.bbq_generated_accuracy_gap.category.Age"])
def test_a_difference_of_shares_may_have_a_limit_on_either_side_of_0(tmp_path: Path, name: str, limit: str) -> None:
    assert gates(tmp_path, f'["{name}"]\n{limit}\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[privacy.roc_auc]\nmax = 60", r"gates.toml, \[privacy.roc_auc\]: the limit <= 60 .* lies in 0 to 1 \(AUC\)"),
        ("[privacy.dpo_with_canary.roc_auc]\nmax = 60", "outside of the range"),
        ("[needle.accuracy]\nmin = 90", r"lies in 0 to 1 \(share\)"),
        ('["needle.accuracy.L4096"]\nmin = 90', "outside of the range"),
        ("[needle.cliff]\nmin = -1", r"needle.cliff is at least 0 \(tokens\)"),
        ("[bias.crows_pct_stereotype]\ntarget = 150\nwithin = 5", r"lies in 0 to 100 \(%\)"),
        ("[bias.crows_pct_stereotype]\ntarget = 50\nwithin = 51", "holds of every value"),
        ("[leakage.order_effect.hits]\nmax = 3", "lies in -1 to 1"),
        ("[leakage.order_effect.logprob.p]\nmin = 5", r"lies in 0 to 1 \(p\)"),
        ("[leakage.benchmarks_found]\nmax = -1", "at least 0"),
        ("[privacy.epsilon]\nmax = -0.1", "at least 0"),
        ("[faithfulness.mas]\nmax = 40", "lies in 0 to 1"),
        ("[leakage.logprob.original]\nmin = 0.1", "at most 0"),
    ],
)
def test_out_of_range(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GateError, match=message):
        gates(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "[privacy.roc_auc]\nmax = 1",
        "[privacy.roc_auc]\nmin = 0",
        "[needle.accuracy]\ntarget = 1.0\nwithin = 0.1",
        "[needle.accuracy]\ntarget = 0.0\nwithin = 0.3",
        "[bias.crows_pct_stereotype]\ntarget = 50\nwithin = 5",
        "[bias.winobias_bias]\nmin = -10",
        "[leakage.order_effect.hits]\nmin = -0.2",
        "[leakage.mitigation_share]\nmin = -3",
        "[bias.of_my_own]\nmax = 900",
        "[mine.gap]\nmax = -900",
        "[[needle.accuracy]]\nmax = 0.9\n[[needle.accuracy]]\nmin = 0.5",
        "[[needle.accuracy]]\nmax = 0.9\nmodels=['a']\n[[needle.accuracy]]\nmax = 0.8\nmodels=['b', 'c']",
        "[[needle.accuracy]]\nmax = 0.9\ncases='*en*'\n[[needle.accuracy]]\nmax = 0.8\ncases='*zh*'",
    ],
)
def test_what_can_be_meant_is_read(tmp_path: Path, text: str) -> None:
    assert gates(tmp_path, text)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("max = 0.9", "max = 0.9", "say the same twice"),
        ("max = 0.9", "max = 0.8", "decide it differently"),
        ("min = 0.1", "min = 0.2\ncases = '*a*'", "decide it differently"),
        ("max = 0.9\nmodels = ['a', 'b']", "max = 0.8\nmodels = ['b', 'c']", "decide it differently"),
        ("max = 0.9", "max = 0.8\nmodels = ['c']", "decide it differently"),
        ("max = 0.2", "min = 0.3", "no value can meet both"),
        ("target = 0.5\nwithin = 0.1", "max = 0.3", "no value can meet both"),
        ("target = 0.5\nwithin = 0.1", "max = 0.55", "decide it differently"),
        ("max = 0.9\nn_min = 3", "max = 0.9\nn_min = 30", "decide it differently"),
        ("max = 0.9\ncases = '*x*'", "max = 0.8\ncases = '*x*'", "decide it differently"),
    ],
)
def test_tables_that_pull_apart(tmp_path: Path, first: str, second: str, message: str) -> None:
    for one, other in ((first, second), (second, first)):
        with pytest.raises(GateError, match=message):
            gates(tmp_path, f"[[needle.accuracy]]\n{one}\n[[needle.accuracy]]\n{other}\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "'' is no name of a metric"),
        (".", "'.' is no name of a metric"),
        ("\u200b", "is no name of a metric"),
        (" needle.accuracy", "is no name of a metric"),
        ("needle.accuracy\t", "is no name of a metric"),
        ("needle.", "is no name of a metric; write AUDIT.METRIC"),
        (".accuracy", "is no name of a metric"),
        ("needle.Accuracy", "did you mean 'needle.accuracy'?"),
        ("needle.\u0430\u0441\u0441uracy", r"\u0430\u0441\u0441"),
        ("needle.accuracy\u200b", "did you mean 'needle.accuracy'?"),
        ("needle.\uff41ccuracy", "did you mean 'needle.accuracy'?"),
        ("bias.Max_min_disparity", "did you mean 'bias.max_min_disparity'?"),
        ("privacy.Extraction.sampled", "did you mean 'privacy.extraction.sampled'?"),
        (".".join("a" * 3000), "nested too deeply"),
    ],
    ids=range(14),
)
def test_names_that_no_metric_has(tmp_path: Path, name: str, message: str) -> None:
    table = name if name.startswith("a.a") else json.dumps(name)
    with pytest.raises(GateError) as refused:
        gates(tmp_path, f"[{table}]\nmax = 0.5\n")
    assert message in str(refused.value) and "gates.toml" in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "gap",
        "bias.gap.\u0645\u06cc\u200c\u062e\u0648",
        "bias.gap.Ä",
        "bias.max_min_permutation_p.{Axis}",
        "bias..gap",
        "mine.A.B",
        "x y.z",
    ],
)
def test_names_that_a_case_of_ones_own_may_record(tmp_path: Path, name: str) -> None:
    [gate] = gates(tmp_path, f"[{json.dumps(name)}]\nmax = 0.5\n")
    assert gate.metric == name


@pytest.mark.parametrize("target", ["1e308", "-1e308"])
def test_a_target_beyond_all_numbers(tmp_path: Path, target: str) -> None:
    with pytest.raises(
        GateError, match=r"bias\.gap.*: target = -?1e\+308 with within = .* leaves the range of numbers"
    ):
        gates(tmp_path, f"[bias.gap]\ntarget = {target}\nwithin = 1.7e308\n")


def test_thousands_of_gates_are_read_at_once(tmp_path: Path) -> None:
    assert len(gates(tmp_path, "".join(f"[bias.m{k}]\nmax = 1\n" for k in range(1500)))) == 1500


def test_different_globs_meet_in_a_case() -> None:
    pair = [
        Gate("bias.gap", high=1.0, limit="<= 1", cases="*en*"),
        Gate("bias.gap", high=2.0, limit="<= 2", cases="*g*"),
    ]
    refuse_contradictions(pair, "gates.toml", [("t.py::x[a@cpu-en]", "a"), ("t.py::x[a@cpu-g]", "a")])
    with pytest.raises(GateError, match=r"<= 1 and <= 2 hold for the same model and cases \('\*en\*' and '\*g\*'\)"):
        refuse_contradictions(pair, "gates.toml", [("t.py::x[a@cpu-en-g]", "a")])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ('["a", "a"]', "names 'a' twice"),
        ('["A", "a"]', "look alike"),
        ('["model", "m\u043edel"]', r"look alike"),
        ('["\uff47pt", "gpt"]', "look alike"),
        ('[""]', "is empty"),
        ('["a\u200b"]', r"U\+200B, which cannot be seen"),
        ('["a\\u001b[2J"]', r"U\+001B"),
        ('[" a"]', "white space"),
        (f'["{unicodedata.normalize("NFD", "modèle")}"]', "as two characters"),
    ],
)
def test_unclear_names_of_models(tmp_path: Path, names: str, message: str) -> None:
    with pytest.raises(GateError, match=message):
        gates(tmp_path, f"[bias.gap]\nmax = 1\nmodels = {names}\n")


def test_a_report_without_pytest_takes_no_such_gate_either(tmp_path: Path) -> None:
    evidence = Evidence("privacy", {"privacy.roc_auc": Estimate(0.5, 0.4, 0.6, n=50)})
    with pytest.raises(GateError, match="lies in 0 to 1"):
        report(evidence, tmp_path / "run", gates=[Gate("privacy.roc_auc", high=60.0, limit="<= 60")])
    with pytest.raises(GateError, match="decide it differently"):
        pair = [Gate("privacy.roc_auc", high=high, limit=f"<= {high}") for high in (0.6, 0.7)]
        report(evidence, tmp_path / "run", gates=pair)
    assert not (tmp_path / "run").exists()


def test_the_ranges_of_units_that_any_metric_may_leave_are_none() -> None:
    assert {unit for unit, limits in RANGE_OF_UNIT.items() if limits == ANY} == {"nats", "nats a byte", "nats a pair"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[needle.cliff]\nmin = -1", "[needle.cliff]: the limit >= -1 is outside of the range: needle.cliff is at least 0 (tokens)"),  # noqa: E501
        ("[bias.gap]\nmax = 1\nmodels = ['A', 'a']", "[bias.gap]: models names 'A' and 'a', which look alike"),
        (
            "[[needle.accuracy]]\nmax = 0.9\n[[needle.accuracy]]\nmax = 0.9",
            "[needle.accuracy]: the limits <= 0.9 and <= 0.9 hold for the same model and cases, and say the same "
            "twice; give each its own models or cases, or keep one",
        ),
        (
            "[[needle.accuracy]]\nmax = 0.9\n[[needle.accuracy]]\nmax = 0.8",
            "hold for the same model and cases, and decide it differently; give each its own",
        ),
        (
            "[[needle.accuracy]]\nmax = 0.2\n[[needle.accuracy]]\nmin = 0.3",
            "hold for the same model and cases, and no value can meet both; give each its own",
        ),
    ],
)  # fmt: skip
def test_what_is_said_of_a_gate_that_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GateError) as refused:
        gates(tmp_path, text)
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"gates file {tmp_path / 'gates.toml'}, [")


def test_limits_that_touch_leave_one_value_and_are_a_band() -> None:
    for one, other in ((0.5, 0.5), (0.0, 1.0)):
        pair = [Gate("x.gap", low=one, limit=f">= {one}"), Gate("x.gap", high=other, limit=f"<= {other}")]
        refuse_contradictions(pair, "gates.toml")
        refuse_contradictions(pair[::-1], "gates.toml")


@pytest.mark.parametrize(("beyond", "refused"), [(0.0, False), (1e-10, False), (1e-8, True)])
def test_a_target_at_the_end_of_a_range_can_be_meant_whatever_its_bounds_were_rounded_to(
    beyond: float, refused: bool
) -> None:
    above = Gate("needle.accuracy", low=0.9, high=1.1 + 2 * beyond, limit="1 within 0.1")
    below = Gate("leakage.order_effect.hits", low=-1.1 - 2 * beyond, high=-0.9, limit="-1 within 0.1")
    for gate in (above, below):
        with pytest.raises(GateError) if refused else nullcontext():
            refuse_out_of_range(gate, "here")


def test_a_range_without_a_unit_is_told_without_one(tmp_path: Path) -> None:
    with pytest.raises(GateError) as refused:
        gates(tmp_path, "[faithfulness.mas]\nmax = 40")
    assert str(refused.value).endswith("the limit <= 40 is outside of the range: faithfulness.mas lies in 0 to 1")
