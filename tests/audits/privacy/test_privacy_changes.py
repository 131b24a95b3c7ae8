"""What a transition changed: judged against the twins, and never by members that move as every text does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lm_audit.audits.privacy.attribution.changes import PRIMARY, Frames, Resampling, did_row, transition_rows
from lm_audit.audits.privacy.attribution.transitions import attribute_leak
from lm_audit.evidence import Evidence

COLUMNS = ("span_mean_logprob", "mean_logprob", "span_min_k20_ceil", "span_min_kpp20_ceil", "top5", "ppl")


def stage_pair(
    rng: np.random.Generator,
    member_shift: float,
    twin_shift: float,
    *,
    members: int = 15,
    twins: int = 100,
    spread: float = 1.0,
) -> Evidence:
    """Rows of two stages; every text is as likely before, and moves by the shift of its role with its own noise."""
    rows = []
    for role, count, shift, sd in (("member", members, member_shift, spread), ("control", twins, twin_shift, 1.0)):
        before = rng.normal(-3, 1, count)
        after = before + shift + rng.normal(0, 0.3 * sd, count)
        for stage, values in (("base", before), ("sft", after)):
            for i, value in enumerate(values):
                row = {"item": f"{stage}/{role}{i}", "stage": stage, "role": role, "canary_id": f"{role}{i}"}
                rows.append(row | {name: np.exp(-value) if name == "ppl" else value for name in COLUMNS})
    return Evidence("privacy", rows=rows, parameters={"seed": 0})


def test_members_that_move_like_their_twins_do_not_leak() -> None:
    said: list[str] = []
    rng = np.random.default_rng(0)
    for _ in range(25):
        table = attribute_leak(stage_pair(rng, 1.0, 1.0), lenient=True, n_resamples=499)
        paired = table[(table["kind"] == "against twins") & (table["metric"] != "Canary_PPL")]
        assert (paired["low"] > 0).all()  # the members did move, and the row says so
        said += [word for word in paired["decision"] if "leaks" in word]
    assert len(said) <= 4  # 125 decisions


def test_members_that_rise_above_their_twins_leak() -> None:
    table = attribute_leak(stage_pair(np.random.default_rng(1), 1.0, 0.0), lenient=True)
    decisions = table.set_index("metric")["decision"]
    for metric in (PRIMARY, "secret_logprob", "Avg_LogProb"):
        assert decisions[metric].endswith("leaks more")
    fallen = attribute_leak(stage_pair(np.random.default_rng(1), -1.0, -2.0), lenient=True).set_index("metric")
    assert fallen["delta"].to_dict()["secret_logprob"] < 0
    assert fallen["decision"].to_dict()["secret_logprob"].endswith("leaks more")


@pytest.mark.parametrize(("first", "then", "word"), [(0.0, -3.0, "leaks more"), (-3.0, 0.0, "leaks less")])
def test_members_pushed_below_their_twins_are_told_as_well(first: float, then: float, word: str) -> None:
    """An AUC from 0.5 to 0.02 tells members apart, as one from 0.5 to 0.98 does."""
    rng = np.random.default_rng(5)
    evidence = stage_pair(rng, then - first, 0.0)
    for row in evidence.rows:
        if row["role"] == "member":
            row["span_mean_logprob"] += first
    table = attribute_leak(evidence, lenient=True).set_index("metric")
    assert table["decision"].to_dict()["twin_ROC_AUC"].endswith(word)


def test_without_twins_nothing_is_said_of_leakage() -> None:
    evidence = stage_pair(np.random.default_rng(2), 1.0, 1.0)
    evidence.rows = [row | ({"source_extracted": 1.0} if row["role"] == "member" else {}) for row in evidence.rows]
    for row in evidence.rows:
        if row["role"] == "member" and row["stage"] == "base":
            row["source_extracted"] = 0.0 if int(row["canary_id"][6:]) % 3 else 1.0
    told = attribute_leak(evidence, lenient=True).set_index("metric").loc["Extraction_Rate"]
    assert told["kind"] == "members alone"
    assert told["decision"] == "rises; no comparison with twins"


def test_comparisons_with_ordinary_text_are_not_called_leaks() -> None:
    rng = np.random.default_rng(3)
    evidence = stage_pair(rng, 1.0, 0.0)
    for stage in ("base", "sft"):
        noise = rng.normal(size=30)
        evidence.rows += [
            {"item": f"{stage}/document{i}", "stage": stage, "role": "document", "mean_logprob": v}
            for i, v in enumerate(noise)
        ]
    table = attribute_leak(evidence, lenient=True).set_index("metric")
    for metric in ("MIA_Gap", "PPL_Ratio", "ROC_AUC", "PR_AUC"):
        assert table.loc[metric, "decision"] == "not decided: ordinary text is no twin"
        assert table.loc[metric, ["p", "p_holm", "significant", "more_risk"]].isna().all()
        low, delta, high = (table[name].to_dict()[metric] for name in ("low", "delta", "high"))
        assert low <= delta <= high
    assert "leaks" in table["decision"].to_dict()["twin_ROC_AUC"]


@pytest.mark.parametrize(
    "spread", [pytest.param(0.7, marks=pytest.mark.slow), pytest.param(1.0, marks=pytest.mark.slow), 3.0]
)
def test_primary_figure_holds_its_level_where_members_spread_more(spread: float) -> None:
    """The real ratio of spreads is 2.6; a permutation test rejects 42% at 3."""
    rng, false, covered = np.random.default_rng(4), 0, 0
    for run in range(400):
        frames = [
            Frames(pd.DataFrame({"span_mean_logprob": m}), pd.DataFrame({"span_mean_logprob": t}), pd.DataFrame())
            for m, t in ((np.zeros(15), np.zeros(200)), (rng.normal(1, spread, 15), rng.normal(1, 1, 200)))
        ]
        row = did_row(frames[0], frames[1], Resampling(run, 80))
        false += row["p"] < 0.05
        covered += row["low"] <= 0 <= row["high"]
        assert (row["p"] < 0.05) == (not row["low"] <= 0 <= row["high"])
    assert false / 400 <= 0.08
    assert covered / 400 >= 0.92


def test_wholly_apart_at_both_stages_is_no_change_and_no_test() -> None:
    one = pd.DataFrame({"span_mean_logprob": np.arange(10.0) + 100})
    other = pd.DataFrame({"span_mean_logprob": np.arange(10.0)})
    frames = Frames(one, other, pd.DataFrame())
    rows = {row["metric"]: row for row in transition_rows("x", frames, frames, Resampling(0, 99))}
    assert rows["twin_ROC_AUC"]["delta"] == 0
    assert rows["twin_ROC_AUC"]["p"] is None
    assert rows[PRIMARY]["p"] is None


def test_the_change_of_an_auc_holds_its_level_with_eight_members() -> None:
    rng, false, outside = np.random.default_rng(6), 0, 0
    for run in range(200):
        frames = [
            Frames(
                pd.DataFrame({"span_mean_logprob": rng.normal(size=8)}),
                pd.DataFrame({"span_mean_logprob": rng.normal(size=30)}),
                pd.DataFrame(),
            )
            for _ in range(2)
        ]
        (row,) = (
            row
            for row in transition_rows("x", frames[0], frames[1], Resampling(run, 99))
            if row["metric"] == "twin_ROC_AUC"
        )
        false += row["p"] < 0.05
        outside += not row["low"] <= 0 <= row["high"]
    assert false == outside and false / 200 <= 0.085
