"""Views, deletion curves, scores and recovery against the reference package."""

from __future__ import annotations

import numpy as np
import pytest

from lm_audit.audits.faithfulness import deletion_curve, faithfulness_scores, recovery
from lm_audit.audits.faithfulness.deletion.curves import DeletionTest
from lm_audit.audits.faithfulness.deletion.metrics import deletion_groups, deletion_order, feature_weights
from lm_audit.audits.faithfulness.passage.sentences import sentence_units
from lm_audit.audits.faithfulness.views import aggregated, normalised, rec_view, row_view
from lm_audit.errors import DataError
from lm_audit.models import LanguageModel
from tests.audits.faithfulness.golden.faithfulness_golden import (
    CASES,
    RAW,
    THINKING,
    Explainers,
    assert_close,
    golden,
    numbers,
)


@pytest.mark.parametrize("index", range(19))
def test_scores_from_numbers(index: int) -> None:
    vector = golden("numeric_rise_mas")["vectors"][index]
    attribution = numbers(vector["attribution"])
    if vector["reference_quirk"]:
        with pytest.raises(DataError, match="finite weight"):
            faithfulness_scores(vector["scores"], attribution, vector["k"])
        return
    found = faithfulness_scores(vector["scores"], attribution, vector["k"])
    assert (found.rise, found.mas, found.rise_ap) == pytest.approx(
        (vector["RISE"], vector["MAS"], vector["RISE_AP"]), abs=1e-6
    )
    assert_close(found.density, vector["density"], 1e-6)
    assert_close(found.response, vector["normalised"], 1e-6)
    order = deletion_order(feature_weights(attribution))
    assert order == vector["order"]
    replaced: set[int] = set()
    for group, expected in zip(
        deletion_groups(order, vector["k"]), vector["replaced_after_each_step"][1:], strict=True
    ):
        replaced |= set(group)
        assert sorted(replaced) == expected
    assert found.degenerate == (vector["scores"][-1] >= vector["scores"][0])


@pytest.mark.parametrize("index", range(8))
def test_views_from_numbers(index: int) -> None:
    vector = golden("numeric_cage")["vectors"][index]
    matrix, span = numbers(vector["matrix"]), tuple(vector["span"])
    assert_close(normalised(matrix), vector["seq"], 2e-6)
    assert_close(row_view(matrix, span), vector["row"], 2e-6)
    assert_close(rec_view(matrix, span), vector["rec"], 2e-6)


@pytest.mark.parametrize("index", range(8))
def test_recovery_from_numbers(index: int) -> None:
    vector = golden("numeric_recovery")["vectors"][index]
    found = recovery(numbers(vector["attribution"]), vector["gold"], vector["top_fraction"], vector["keep"])
    assert found == (None if vector["recovery"] is None else pytest.approx(vector["recovery"], abs=1e-9))


@pytest.mark.parametrize("case", CASES)
def test_views(case: str) -> None:
    content = golden(f"{case}.views")
    for view in content["views"].values():
        matrix, span = numbers(view["input"]), tuple(view["span"])
        assert_close(normalised(matrix), view["seq"], 2e-6)
        assert_close(row_view(matrix, span), view["row"], 2e-6)
        assert_close(rec_view(matrix, span), view["rec"], 2e-6)
        whole = view["full_generation"]
        assert_close(row_view(matrix, tuple(whole["span"])), whole["row"], 2e-6)
        assert_close(rec_view(matrix, tuple(whole["span"])), whole["rec"], 2e-6)


@pytest.mark.parametrize("case", CASES)
def test_recovery_of_views(case: str) -> None:
    content = golden(f"{case}.views")
    features, gold = content["P_user"], content["gold_prompt_tokens"]
    for view in content["views"].values():
        matrix, span = numbers(view["input"]), tuple(view["span"])
        weights = {"seq": normalised(matrix), "row": row_view(matrix, span), "rec": rec_view(matrix, span)}
        for fraction, expected in view["recovery"].items():
            for name in set(weights) - set(expected["tie_at_cutoff"]):
                found = recovery(np.atleast_2d(weights[name])[:, :features], gold, float(fraction))
                assert found == pytest.approx(expected[name], abs=1e-9)
            if "row" not in expected["tie_at_cutoff"]:
                kept = recovery(weights["row"][:features], gold, float(fraction), keep=view["keep_prompt_tokens"])
                assert kept == pytest.approx(expected["row_skip_stop"], abs=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_sentence_view(case: str, explainers: Explainers) -> None:
    content, passage = golden(f"{case}.sentence"), explainers(case).passage
    prompt, generation = passage.prompt_units("sentence"), passage.generation_units("sentence")
    assert list(prompt.texts) == content["prompt_sentences"]
    assert list(generation.texts) == content["generation_sentences"]
    for name, view in content["views"].items():
        matrix = numbers(golden(f"{case}.views")["views"][name]["input"])
        sums = aggregated(matrix, prompt.tokens, generation.tokens, len(passage.user))
        explained = (view["index_explained"],) * 2
        assert_close(normalised(sums), view["S"], 2e-6)
        assert_close(row_view(sums, explained), view["row"], 2e-6)
        assert_close(rec_view(sums, explained), view["rec"], 2e-6)


@pytest.mark.parametrize("case", RAW)
def test_token_deletion_end_to_end(case: str, explainers: Explainers, smollm2: LanguageModel) -> None:
    content = golden(f"{case}.faith")
    by_steps = {run["k"] for run in content["runs"]}
    for steps in sorted(by_steps):
        runs = [run for run in content["runs"] if run["k"] == steps and not run["order_unspecified"]]
        test = DeletionTest(smollm2, explainers(case).passage, steps=steps)
        curves = test.curves({run["name"]: run["attribution"] for run in runs})
        for run in runs:
            curve = curves[run["name"]]
            assert list(curve.order) == run["order"]
            assert_close(curve.scores, run["scores"], 2e-3)
            assert (curve.rise, curve.mas, curve.rise_ap) == pytest.approx(
                (run["RISE"], run["MAS"], run["RISE_AP"]), abs=1e-3
            )


@pytest.mark.parametrize("case", THINKING)
def test_sentence_deletion_end_to_end(case: str, explainers: Explainers, smollm2: LanguageModel) -> None:
    content, explainer = golden(f"{case}.sentence"), explainers(case)
    features = len(content["prompt_sentences"])
    for view in content["views"].values():
        test = DeletionTest(smollm2, explainer.passage, unit="sentence")
        weights = {
            "seq": numbers(view["S"])[:, :features],
            "row": numbers(view["row"])[:features],
            "rec": numbers(view["rec"])[:features],
        }
        curves = test.curves(weights)
        for name, expected in view["faithfulness"].items():
            curve = curves[name]
            assert_close(curve.scores, expected["scores"], 2e-3)
            assert (curve.rise, curve.mas, curve.rise_ap) == pytest.approx(
                (expected["RISE"], expected["MAS"], expected["RISE_AP"]), abs=1e-3
            )


def test_deletion_curve_takes_the_prompt_itself(smollm2: LanguageModel) -> None:
    content = golden("fact_raw.faith")
    run = content["runs"][0]
    curve = deletion_curve(smollm2, content["prompt"], content["target"], run["attribution"], steps=run["k"])
    assert curve.rise == pytest.approx(run["RISE"], abs=1e-3)


def test_units_cover_every_token_once(explainers: Explainers) -> None:
    passage = explainers("think_math").passage
    units = sentence_units(passage.user_text, passage.user_offsets)
    assert sorted(index for group in units.tokens for index in group) == list(range(len(passage.user)))
