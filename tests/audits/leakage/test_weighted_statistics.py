"""Statistics of rows, which a comparison asks thousands of times, in the form that takes many weightings at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lm_audit.audits.leakage.memory import QUESTIONS, as_statistic, share_source
from lm_audit.audits.leakage.statistics import STATISTICS, WEIGHTED
from lm_audit.audits.leakage.weighted_units import weighted_mean, weighted_units
from lm_audit.errors import DataError
from lm_audit.sources import MetricSource
from lm_audit.sources.change import Change, change_between
from lm_audit.sources.units import RowTable, Units

CONDITIONS = ("original", "shuffled-1", "shuffled-2", "other_item")


def made_rows(questions: int, seed: int, *, above: float = 0.3) -> list[dict[str, Any]]:
    """Options of questions under each condition; some have no value, one question lacks a condition."""
    rng = np.random.default_rng(seed)
    found = []
    for question in range(questions):
        for condition in CONDITIONS:
            for option in "ABC":
                if question == 1 and condition == "shuffled-2":
                    continue
                hit = bool(rng.random() < (above if condition == "original" else 0.1) + 0.2)
                found.append(
                    {
                        "item": f"{question}:{option}:{condition}", "question": f"q{question}", "condition": condition,
                        "hit": hit, "weight": 1.0 + question % 3,
                        "logprob_per_byte": None if rng.random() < 0.1 else float(rng.normal()),
                    }
                )  # fmt: skip
    return found


def sources() -> dict[str, MetricSource]:
    effect = MetricSource.paired_difference(
        "logprob_per_byte", ("question",), {"condition": "original"}, {"condition": ["shuffled-1", "shuffled-2"]}
    )
    names = {"original": "original", "shuffled": "shuffled-1", "chance": "other_item"}
    plain = {
        name: MetricSource.mean("hit", {"condition": condition}, unit=("question",))
        for name, condition in names.items()
    }
    weighted = {
        name: MetricSource.mean(
            "hit", {"condition": condition}, unit=("question",), within="sum", options={"weight": "weight"}, scale=0.5
        )
        for name, condition in names.items()
    }
    shares = [share_source(parts, ()) for parts in (plain, weighted)]
    assert None not in shares
    return {"detectable": as_statistic("leakage.detectable", effect), "share": shares[0], "weighted": shares[1]}  # type: ignore[dict-item]


@pytest.mark.parametrize("name", ["detectable", "share", "weighted"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_forms_say_the_same_of_any_rows(name: str, seed: int) -> None:
    source, rows = sources()[name], made_rows(9, seed)
    weights = np.random.default_rng(seed).integers(0, 2, (40, len(rows))).astype(np.float64)
    weights[0], weights[1] = 1.0, 0.0
    units = Units([str(row["item"]) for row in rows], np.zeros(len(rows)), rows)
    found = WEIGHTED[source.statistic](units, source.options)(weights)
    for value, own in zip(found, weights, strict=True):
        kept = [row for row, weight in zip(rows, own, strict=True) if weight]
        expected = STATISTICS[source.statistic](kept, source.options) if kept else None
        assert value == pytest.approx(np.nan if expected is None else expected, nan_ok=True)


def test_the_rows_of_a_question_are_exchanged_together() -> None:
    assert {source.clusters for source in sources().values()} == {QUESTIONS}
    a, b = made_rows(24, 0, above=0.1), made_rows(24, 1, above=0.7)
    found = change_between(sources()["share"], RowTable(a), RowTable(b))
    assert isinstance(found, Change) and found.clusters == 24 and found.p is not None and found.p < 0.05


@pytest.mark.parametrize("missing", ["original", "shuffled-1", "other_item"])
def test_a_share_of_which_a_part_is_missing_is_none(missing: str) -> None:
    source = sources()["share"]
    assert STATISTICS[source.statistic](made_rows(9, 0, above=0.7), source.options) is not None
    kept = [row for row in made_rows(9, 0, above=0.7) if row["condition"] != missing]
    assert STATISTICS[source.statistic](kept, source.options) is None


def test_what_two_questions_would_show_is_said_in_either_form() -> None:
    source = MetricSource("leakage.detectable", options={"of": MetricSource.mean("v").to_json()})
    rows = [{"item": f"i{k}", "v": float(k)} for k in range(2)]
    known = STATISTICS[source.statistic](rows, source.options)
    assert known is not None and known > 1
    units = Units(["i0", "i1"], np.zeros(2), rows)
    assert WEIGHTED[source.statistic](units, source.options)(np.ones((1, 2))) == pytest.approx([known])


def test_what_has_no_weighted_form_is_refused() -> None:
    rows = made_rows(3, 0)
    units = Units([str(row["item"]) for row in rows], np.zeros(len(rows)), rows)
    with pytest.raises(DataError, match="take the max"):
        weighted_units(MetricSource("mean", "hit", unit=("question",), within="max"), units)
    with pytest.raises(DataError, match="'median' is no mean"):
        weighted_mean(MetricSource("median", "hit", unit=("question",)), units)
