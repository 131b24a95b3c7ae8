"""Reference values: lengths, depths, wording, scores, intervals, and RULER's own prompts."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.needle import (
    PRESETS,
    depth_sequence,
    length_sequence,
    nearest_boundary,
    needle_sentence,
    score_all,
    score_any,
    score_boundary,
    spread_depths,
    task_wording,
)
from lm_audit.audits.needle.answers.scores import clean
from lm_audit.audits.needle.grid.cells import share
from lm_audit.audits.needle.samples.wording import join_keys
from lm_audit.errors import UsageError
from lm_audit.stats import wilson
from tests.shared_data import golden_file


@pytest.fixture(scope="module")
def golden() -> Any:
    return json.loads(golden_file("needle/golden_pure.dev.json").read_text(encoding="utf-8"))


def test_lengths(golden: Any) -> None:
    for case in golden["length_sequence"]:
        assert length_sequence(case["target"], case["interval"], case["start"]) == case["expected"]
    for case in golden["length_sequence_counts"]:
        found = length_sequence(case["target"], case["interval"], case["start"])
        assert (len(found), found[0], found[-1]) == (case["count"], case["first"], case["last"])
    for case in golden["length_sequence_errors"]:
        with pytest.raises(UsageError):
            length_sequence(case["target"], case["interval"], case["start"])


@pytest.mark.parametrize("strategy", ["uniform", "inclusive"])
def test_depths(golden: Any, strategy: str) -> None:
    for case in golden[f"positions_{strategy}"]:
        assert depth_sequence(case["n"], strategy) == pytest.approx(case["expected"], abs=1e-12)


def test_open_depths_are_the_middles_of_equal_parts() -> None:
    assert depth_sequence(4, "open") == [12.5, 37.5, 62.5, 87.5]


def test_random_depths_come_from_all_whole_percents_and_follow_the_seed() -> None:
    assert depth_sequence(101, "random", seed=1) == [float(depth) for depth in range(101)]
    assert depth_sequence(5, "random", seed=1) == depth_sequence(5, "random", seed=1)
    assert depth_sequence(5, "random", seed=1) != depth_sequence(5, "random", seed=2)
    with pytest.raises(UsageError, match="only 101"):
        depth_sequence(102, "random", seed=1)


def test_further_needles(golden: Any) -> None:
    for case in golden["multi_needle_depths"]:
        assert spread_depths(case["depth"], case["n"]) == pytest.approx(case["expected"])


def test_wording(golden: Any) -> None:
    for case in golden["render"]:
        keys = re.split(r", and |, ", case["query"])
        task = task_wording(case["type_v"], keys, case["num_v"])
        assert task.opening + "CTX." + task.question + task.answer_prefix == case["expected"]
    for case in golden["query_join"]:
        assert join_keys(case["keys"]) == case["expected"]


def test_scores(golden: Any) -> None:
    for case in golden["scoring"]:
        pairs = list(zip(case["preds"], case["refs"], strict=True))
        assert [clean(prediction) for prediction, _ in pairs] == case["post"]
        for name, score in (
            ("string_match_all", score_all),
            ("string_match_part", score_any),
            ("boundary_match_all", score_boundary),
        ):
            mean = 100 * np.mean([score(*pair) for pair in pairs])
            assert round(float(mean), 2) == case[name], (name, case)


def test_longer_number_is_no_hit_by_word_boundary() -> None:
    assert score_all("12345678", ["1234567"]) == 1.0
    assert score_boundary("12345678", ["1234567"]) == 0.0


def test_intervals(golden: Any) -> None:
    for case in golden["wilson95"]:
        found = wilson(case["k"], case["n"])
        assert (found.low, found.high) == pytest.approx(tuple(case["expected"]), abs=1e-9)


def test_interval_of_fractions_continues_that_of_whole_answers() -> None:
    fractions = share([0.5, 0.25, 0.25])
    assert fractions.value == pytest.approx(1 / 3)
    one_of_three = share([1.0, 0.0, 0.0])
    assert (fractions.low, fractions.high) == pytest.approx((one_of_three.low, one_of_three.high))


def test_pivot(golden: Any) -> None:
    from lm_audit.audits.needle.answers.answerers import Answer
    from lm_audit.audits.needle.grid.cells import Scored, by_cell

    pivot = golden["pivot"]
    scored = [
        Scored(str(i), row["length"], row["position"], 0.0, {"all": row["score"]}, None, Answer(""), (), "")
        for i, row in enumerate(pivot["rows"])
    ]
    cells = by_cell(scored)
    for depth, values in zip(pivot["index"], pivot["values"], strict=True):
        found = [share(one.score("all") for one in cells[length, depth]).value for length in pivot["columns"]]
        assert found == pytest.approx(values)


def test_boundary_nearest_in_tokens() -> None:
    golden = json.loads(golden_file("needle/golden_fit.dev.json").read_text(encoding="utf-8"))
    counts = golden["sentence_token_counts"]
    for case in golden["nearest_boundary"]:
        if case["n_sentences"] > len(counts):
            continue
        starts = np.concatenate([[0], np.cumsum(counts[: case["n_sentences"]])])
        index = nearest_boundary(starts, case["position"])
        assert index == case["token_rule_index"]
        assert 100 * starts[index] / starts[-1] == pytest.approx(case["token_rule_actual"], abs=1e-5)


def test_of_equally_near_boundaries_the_lower() -> None:
    assert nearest_boundary([0, 10, 20], 25) == 0


def test_presets_have_rulers_parameters_and_wording() -> None:
    """Needle sentences, task wording and answer prefix of the reference generator's own prompts."""
    golden = json.loads(golden_file("needle/golden_ruler.dev.json").read_text(encoding="utf-8"))
    seen = set()
    for run in golden["results"]:
        if run["template"] != "base":
            continue
        seen.add(run["task"])
        preset, args = PRESETS[run["task"]], run["args"]
        assert {name: preset[name] for name in args} == args
        for sample in run["samples"]:
            keys = re.split(r", and |, ", sample["query"])
            task = task_wording(args["type_needle_v"], keys, args["num_needle_v"])
            assert task.answer_prefix == sample["answer_prefix"]
            if "input" in sample:
                assert sample["input"].startswith(task.opening)
                assert sample["input"].endswith(task.question)
                for key, value in zip(keys, sample["outputs"], strict=False):
                    assert needle_sentence(args["type_needle_v"], key, value) in sample["input"]
    assert seen == set(PRESETS)
