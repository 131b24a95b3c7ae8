"""``lm-audit plan``: what cannot be decided is said before anything runs, and what is said is so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lm_audit.audits.design import Design
from lm_audit.cli import main
from lm_audit.gates.gate import Gate, judge
from lm_audit.planning.collecting import Collected, PlannedDesign
from lm_audit.planning.forecast import cannot_decide, forecast, units_needed
from lm_audit.planning.table import lines
from lm_audit.stats import clopper_pearson, clustered_mean, roc_auc

SHARE = Design("m", "share", 18, "samples", low=0.0, high=1.0, fewest=1)
AUC = Design("m", "auc", 15, "canaries", low=0.0, high=1.0, chance=0.5)
MEAN = Design("m", "mean", 12, "items", sd=1.0, unit="nats", chance=0.0)


def with_units(design: Design, units: int | None, **fields: object) -> Design:
    return Design(**{**{name: getattr(design, name) for name in Design.__dataclass_fields__}, "units": units, **fields})


@pytest.mark.parametrize("units", [5, 18, 36, 60])
@pytest.mark.parametrize(("low", "high"), [(0.9, np.inf), (-np.inf, 0.1), (0.4, 0.6)])
def test_a_gate_on_a_share_can_be_decided_exactly_if_some_count_decides_it(units: int, low: float, high: float) -> None:
    gate = Gate("m", low=low, high=high)
    words = {judge(gate, clopper_pearson(k, units)).word for k in range(units + 1)}
    assert (cannot_decide(with_units(SHARE, units), gate) is None) is ({"met", "missed"} <= words)
    needed = units_needed(SHARE, gate)
    assert needed is not None
    assert {"met", "missed"} <= {judge(gate, clopper_pearson(k, needed)).word for k in range(needed + 1)}
    assert not {"met", "missed"} <= {judge(gate, clopper_pearson(k, needed - 1)).word for k in range(needed)}


def test_the_half_width_of_a_mean_is_what_its_interval_has_and_80_percent_find_the_smallest_effect() -> None:
    """Of normal values; where no skewness widens the interval it is Student's."""
    even = forecast(with_units(MEAN, 12, tails=False))
    assert even.half_width == pytest.approx(2.2009851600916384 / 12**0.5)
    assert even.detectable == pytest.approx((2.2009851600916384 + 0.8755298) / 12**0.5)
    found = forecast(MEAN)
    assert found.detectable is not None and found.half_width is not None
    rng = np.random.default_rng(0)
    shown = [clustered_mean(rng.normal(found.detectable, 1, 12), range(12)) for _ in range(400)]
    widths = [((one.high or 0) - (one.low or 0)) / 2 for one in shown]
    assert float(np.mean(widths)) == pytest.approx(found.half_width, rel=0.12)
    assert 0.75 <= float(np.mean([(one.low or 0) > 0 for one in shown])) <= 0.87
    relative = forecast(with_units(MEAN, 12, sd=None))
    assert relative.relative and relative.half_width == found.half_width


def test_the_smallest_share_that_is_found_is_found_in_80_percent() -> None:
    design = with_units(SHARE, 40, chance=0.5)
    found = forecast(design).detectable
    assert found is not None
    rng = np.random.default_rng(1)
    hits = rng.binomial(40, 0.5 + found, 4000)
    excluded = {k: not ((e := clopper_pearson(k, 40)).low or 0) <= 0.5 <= (e.high or 1) for k in range(41)}
    assert np.mean([excluded[int(k)] for k in hits]) >= 0.78


def test_the_half_width_of_an_auc_is_that_of_equal_groups() -> None:
    rng = np.random.default_rng(2)
    widths = []
    for _ in range(200):
        estimate = roc_auc(rng.normal(size=60), rng.normal(size=60))
        widths.append(((estimate.high or 0) - (estimate.low or 0)) / 2)
    expected = forecast(with_units(AUC, 60)).half_width
    assert float(np.mean(widths)) == pytest.approx(expected, rel=0.05)


def test_a_larger_side_narrows_what_is_expected_as_it_narrows_the_interval() -> None:
    """15 members against 200 twins: a limit of 0.66 can be met, which 15 against 15 cannot."""
    rng = np.random.default_rng(3)
    found = [roc_auc(rng.normal(size=15), rng.normal(size=200)) for _ in range(200)]
    unequal = with_units(AUC, 15, others=200)
    width = float(np.mean([(e.high or 0) - (e.low or 0) for e in found])) / 2
    assert forecast(unequal).half_width == pytest.approx(width, rel=0.05)
    gate = Gate("m", high=0.66)
    assert cannot_decide(AUC, gate) is not None and cannot_decide(unequal, gate) is None
    assert {judge(gate, estimate).word for estimate in found} == {"met", "undecided"}
    apart = Design("m", "difference", 15, others=200)
    assert (forecast(apart).half_width or 0) < (forecast(with_units(apart, 15, others=None)).half_width or 0)
    assert (forecast(apart).detectable or 0) < (forecast(with_units(apart, 15, others=None)).detectable or 0)


def test_files_that_were_not_drawn_keep_a_limit_from_being_met() -> None:
    """A limit of 0.1 on the order effect of files: the plan and the audit's interval of no effect agree."""
    from lm_audit.audits.leakage.averages import mean_of

    design = Design("m", "mean", 12, "files", chance=0.0, fewest=6, reach=0.7)
    gate = Gate("m", high=0.1)
    needed = units_needed(design, gate)
    assert needed is not None and "reaches beyond the limit" in (cannot_decide(design, gate) or "")
    words = []
    for files in (needed - 2, needed + 2):
        values = np.random.default_rng(files).normal(0, 1e-3, 5 * files)
        names = [f"f{k // 5}" for k in range(5 * files)]
        found = mean_of(values, names, unit="", seed=0, kind="differences", unseen=(0.0, 0.7))
        words.append(judge(gate, found).word)
    assert words == ["undecided", "met"]


@pytest.mark.parametrize(
    ("test", "metric", "high"),
    [
        ("test_completion", "leakage.completion.edit_similarity", 0.1),
        ("test_completion", "leakage.completion.exact", 0.2),
        ("test_text_likelihood", "leakage.ngram_accuracy", 0.1),
        ("test_memorisation", "leakage.hits.*", 0.1),
    ],
)
def test_similarities_and_hits_over_files_count_in_the_files_that_were_not_drawn(
    test: str, metric: str, high: float, tmp_path: Path
) -> None:
    """Of 8 files without a hit a share may be 0.37: the plan's border of what can be met is the interval's."""
    from lm_audit.audits.leakage.averages import Kind, mean_of
    from lm_audit.audits.leakage.planning import designs

    for k in range(8):
        rows = [f"Which is {k * n}?,one {k},two {n},three,four,A" for n in range(2)]
        (tmp_path / f"file{k}.csv").write_text("question,A,B,C,D,answer\n" + "\n".join(rows) + "\n")
    (design,) = (one for one in designs(test, {"source": str(tmp_path)}, Options()) if one.metric == metric)
    assert (design.units, design.counted) == (8, "files (of 16 questions)")
    gate = Gate("m", high=high)
    needed = units_needed(design, gate)
    assert needed is not None and "can be missed but never met" in (cannot_decide(design, gate) or "")
    words = []
    for files in (needed - 2, needed + 2):
        kind: Kind = "counts" if design.kind == "share" else "values"
        values = np.zeros(2 * files) if kind == "counts" else np.random.default_rng(files).uniform(0, 1e-4, 2 * files)
        names = [f"f{k // 2}" for k in range(2 * files)]
        found = mean_of(values, names, unit="", seed=0, kind=kind, limits=(0.0, 1.0), unseen=(0.0, 1.0))
        words.append(judge(gate, found).word)
    assert words == ["undecided", "met"]


class Options:
    """What a plan asks for, as by default."""

    size = "standard"
    seed = 0
    thinking_tokens = 0
    tokenizer = None
    context = None

    limit: int | None = None

    def items(self, of_size: int | None, own: int | None = None) -> int | None:
        """The size's own number."""
        return of_size if self.limit is None else self.limit

    def option(self, name: str) -> object:
        """None is given."""
        return None


def test_exposure_has_as_many_members_as_its_tier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """15 members of three tiers: none of the tiers has the 8 from which on there is an interval."""
    monkeypatch.chdir(ROOT)
    told = plan(capsys, "-m", "privacy", "-k", "exposure")
    for times in (1, 4, 16):
        assert f"privacy.exposure.r{times}: test_stage, 4 cases" in told
        assert f"5 members of the tier r{times} of the 8 from which on its interval covers" in told


def test_a_gap_in_percentage_points_has_limits_in_percentage_points() -> None:
    from lm_audit.audits.bias.planning import public_design

    design = public_design("winobias", [1] * 300)
    for high in (10.0, 20.0):
        assert cannot_decide(design, Gate("m", low=-high, high=high)) is None
    assert "would not be met: +- 8.02" in (cannot_decide(design, Gate("m", low=-5.0, high=5.0)) or "")
    assert public_design("winogender", [1] * 30).metric == "bias.winogender_flip_rate"


def test_the_units_of_swaps_and_refusals_are_read_from_their_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_audit.audits.bias.planning import designs

    files = {name: str(ROOT / "fixtures" / "bias" / f"{name}_en.toml") for name in ("counterfactual", "refusal")}
    for limit, swaps, controls, requests in ((None, 16, 12, 8), (9, 9, 9, 8), (3, 3, 3, 3)):
        options = Options()
        options.limit = limit
        for test in ("test_counterfactual_swap", "test_counterfactual_continuation"):
            (swap,) = designs(test, {"file": files["counterfactual"]}, options)
            assert (swap.units, swap.others) == (min(swaps, controls), max(swaps, controls))
            assert swap.counted == f"sentences on the smaller side ({swaps} swaps, {controls} controls)"
        (refusal,) = designs("test_refusal", {"file": files["refusal"], "axis": "race"}, options)
        assert (refusal.units, refusal.looks) == (requests, 6)
    (unknown,) = designs("test_refusal", {}, Options())
    assert unknown.units is None and "known only when it runs" in (forecast(unknown).reason or "")


def test_hits_of_a_few_questions_cannot_meet_a_limit_below_what_none_would_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "gates.toml"
    path.write_text("['leakage.published.score']\nmax = 0.2\n")
    told = plan(capsys, "--gates", str(path), "-m", "leakage", "--limit", "12")
    assert "12 questions; CANNOT BE DECIDED at this size: it can be missed but never met" in told


def test_prompts_that_share_stretches_are_as_many_as_the_stretches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    told = plan(capsys, "-m", "needle", "--needle-windows", "shared")
    assert "no verdict can come of it: 2 stretches of haystack of the 6 from which on" in told


@pytest.mark.parametrize(
    ("design", "gate", "reason"),
    [
        (AUC, Gate("m", high=0.55), "even what chance gives (0.5) would not be met: +- 0.201"),
        (with_units(MEAN, 7), Gate("m", high=0.5), "7 items of the 8"),
        (MEAN, Gate("m", high=0.5, n_min=200), "12 items of n_min = 200"),
        (MEAN, Gate("m", low=-0.1, high=0.1), "even what chance gives (0) would not be met"),
        (SHARE, Gate("m", low=0.9), "can be missed but never met"),
        (SHARE, Gate("m", high=0.99), "can be met but never missed"),
        (with_units(SHARE, 18, never="no coins"), Gate("m", high=0.1), "no coins"),
        (Design("m", "test", 4), Gate("m", high=0.1), "a test without an interval"),
        (with_units(MEAN, None), Gate("m", high=0.1), "known only when it runs"),
    ],
)
def test_what_cannot_be_decided_says_why(design: Design, gate: Gate, reason: str) -> None:
    assert reason in (cannot_decide(design, gate) or "decided")
    needed = units_needed(design, gate)
    if needed is not None and design.kind != "test":
        assert cannot_decide(with_units(design, needed, never=None), gate) is None


def test_no_number_of_units_decides_a_limit_that_nothing_can_pass() -> None:
    assert units_needed(SHARE, Gate("m", high=1.0)) is None
    assert units_needed(AUC, Gate("m", high=0.5)) is None


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    # On whichever machine: by default a device that is there is taken.
    assert main(["plan", "--device", "cpu", *arguments]) == 0
    return capsys.readouterr().out


ROOT = Path(__file__).resolve().parents[2]


def test_at_smoke_it_names_what_can_never_reach_a_verdict_and_the_size_that_could(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "gates.toml"
    path.write_text("[needle.accuracy]\nmin = 0.9\ncases = '*::test_grid*'\n[faithfulness.recovery]\nmin = 0.5\n")
    told = plan(capsys, "--gates", str(path), "-m", "needle or faithfulness or privacy")
    assert "nothing was run and no model loaded" in told
    assert "18 samples; CANNOT BE DECIDED at this size: it can be missed but never met" in told
    assert "--size standard could" in told
    assert re.search(r"needle\.cliff: .* no verdict can come of it: 6 samples a length cannot show 0\.85", told)
    assert "members were not chosen by coins" in told
    assert "preference_grid" not in told


@pytest.mark.parametrize(
    ("limit", "says"),
    [(300, "met but never missed"), (512, "met but never missed"), (800, None), (2048, None),
     (3000, "missed but never met")],
)  # fmt: skip
def test_a_cliff_is_one_of_the_lengths_and_can_be_met_and_missed_between_them(limit: float, says: str | None) -> None:
    steps = (512.0, 1024.0, 2048.0)
    design = Design("needle.cliff", "bound", 60, "samples a length", unit="tokens", fewest=23, steps=steps)
    gate = Gate("needle.cliff", low=limit)
    told = cannot_decide(design, gate)
    assert says in told if says and told else told is says
    assert units_needed(replace(design, units=6), gate) == (None if says else 23)


def test_a_gate_that_nothing_is_held_against_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = {
        "[bias.max_min_disparty]\nmax = 1.0\n": "the table of 'bias'; did you mean 'bias.max_min_disparity'?",
        "[bias.max_min_disparity]\nmax = 1.0\ncases = '*en-gander]'\n": (
            "cases = '*en-gander]' matches none of the cases that declare it, such as evals/test_bias.py::"
            "test_preference_grid[tiny@cpu-en-gender]"
        ),
    }
    monkeypatch.chdir(ROOT)
    (tmp_path / "gates.toml").write_text("".join(reasons))
    told = plan(capsys, "--gates", str(tmp_path / "gates.toml"), "-m", "bias", "-k", "en-gender", "--model", "tiny")
    assert [why for why in reasons.values() if why not in told] == []
    assert told.startswith("1 case at size smoke;")


def test_needle_counts_no_sample_of_a_length_without_room_for_the_task_or_beyond_the_context(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The toy reads bytes: at smoke the task fits in 512 tokens and not in 256 or 384; more it does not read."""
    monkeypatch.chdir(ROOT)
    told = plan(capsys, "-m", "needle", "--model", "tiny")
    assert told.startswith("4 cases at size smoke, 6 skipped;")
    assert "test_cell, 3 cases (tiny@cpu-niah_single_2-L512-D0, ...), 2 samples" in told
    assert "tiny@cpu-niah_single_2, 6 samples, half width" in told
    named = plan(capsys, "-m", "needle", "--model", "tiny", "--needle-lengths", "200,450,500,5000")
    assert named.startswith("7 cases at size smoke, 3 skipped;")
    assert "tiny@cpu-niah_single_2, 12 samples, half width" in named
    assert "L200-D50] will end in an error: length 200 is too short" in named
    none = plan(capsys, "-m", "needle", "--model", "tiny", "--needle-lengths", "200,5000", "-k", "test_grid")
    assert "no length of 200, 5000 fits both the task and the context" in none


def test_a_selection_of_controls_alone_says_that_it_measures_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    told = plan(capsys, "-m", "control and needle", "-k", "stub", "--model", "tiny")
    assert "controls and skipped cases alone have no plan" in told and "headline" not in told


def test_a_file_is_planned_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    told = plan(capsys, "evals/test_needle.py", "--model", "tiny", "-k", "test_grid")
    assert told.startswith("1 case at size smoke;")
    case_id = "evals/test_bias.py::test_preference_grid[tiny@cpu-en-gender]"
    monkeypatch.chdir(tmp_path)
    assert plan(capsys, case_id, "--model", "tiny").startswith("1 case at size smoke;")


@pytest.mark.parametrize(
    ("counted", "one", "two"),
    [
        ("samples", "1 sample", "2 samples"),
        ("canaries on the smaller side", "1 canary on the smaller side", "2 canaries on the smaller side"),
        ("stretches of haystack", "1 stretch of haystack", "2 stretches of haystack"),
        ("template with one word pair", "1 template with one word pair", "2 template with one word pair"),
    ],
)
def test_units_are_told_by_their_number(counted: str, one: str, two: str) -> None:
    design = Design("m", "share", 1, counted)
    assert (design.many(1), design.many(2)) == (one, two)


def test_what_pytest_refuses_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--size", "enormous"]) == 2
    assert "enormous" in capsys.readouterr().err


def test_a_larger_size_is_named_where_the_case_itself_could_be_decided_at_it_with_the_units_it_has_there() -> None:
    """Another case of the same test speaks for it only where the larger size has not that case."""
    gate = Gate("bias.gap", high=1.0, limit="<= 1")

    def at(size: str, **cases: int) -> Collected:
        found = [
            PlannedDesign(
                f"t.py::test_grid[{case}]", "bias", None, Design("bias.gap", "mean", n, f"clusters (of {n})", 1.0)
            )
            for case, n in cases.items()
        ]
        return Collected(tuple(found), (gate,), size, len(found), 0, ())

    def remedy(larger: Collected) -> str:
        told = list(lines(at("smoke", zh=4), {"standard": larger}))
        return next(line for line in told if " could" in line).strip()

    assert remedy(at("standard", zh=12)) == "--size standard could: 12 clusters (of 12)"
    assert not remedy(at("standard", zh=4, en=50)).startswith("--size")
    assert remedy(at("standard", fr=4, en=50)) == "--size standard could: 50 clusters (of 50)"
