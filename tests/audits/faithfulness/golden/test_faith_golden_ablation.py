"""Ablation matrices, units and leave-one-out against the reference packages."""

from __future__ import annotations

import numpy as np
import pytest

from lm_audit.audits.faithfulness import Explainer
from tests.audits.faithfulness.golden.faithfulness_golden import (
    CASES,
    RAW,
    THINKING,
    Explainers,
    assert_close,
    golden,
    numbers,
)


@pytest.mark.parametrize("case", CASES)
def test_sentences_and_masks(case: str, explainers: Explainers) -> None:
    content, passage = golden(f"{case}.ablation"), explainers(case).passage
    for units, side in (
        (passage.prompt_units("sentence"), "prompt"),
        (passage.generation_units("sentence"), "generation"),
    ):
        assert list(units.texts) == content[f"{side}_sentences"]
        masks = numbers(content[f"{side}_sentence_masks"])
        assert [list(group) for group in units.tokens] == [list(np.flatnonzero(mask)) for mask in masks]


@pytest.mark.parametrize("case", RAW)
@pytest.mark.parametrize(
    ("variant", "name"), [("sentences", "sentence_ablation_logloss_trim"), ("segments:5", "segments_k5_log_loss_trim")]
)
def test_log_probability(case: str, variant: str, name: str, explainers: Explainers) -> None:
    found = explainers(case).attribute("ablation", variant=variant)
    assert_close(found.matrix, golden(f"{case}.ablation")[name], 2e-3)


@pytest.mark.parametrize("case", THINKING)
@pytest.mark.parametrize(
    ("variant", "name"), [("sentences", "sentence_ablation_KL_CLP_trim"), ("segments:5", "segments_k5_KL_trim")]
)
def test_clp(case: str, variant: str, name: str, explainers: Explainers) -> None:
    found = explainers(case).attribute("ablation_clp", variant=variant).matrix
    expected = numbers(golden(f"{case}.ablation")[name])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    # A drop is the difference of two values of about 1e5; the relative tolerance is that of the values.
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.nanmax(np.abs(expected)))


@pytest.mark.parametrize("case", ["fact_raw", pytest.param("chat_think", marks=pytest.mark.slow)])
def test_leave_one_out(case: str, explainers: Explainers) -> None:
    content = golden(f"{case}.ablation")
    found = explainers(case).attribute("leave_one_out")
    values = np.array(content["token_leave_one_out_full"]["values"])[content["user_prompt_indices"]]
    assert_close(found.matrix[:, : found.features].sum(axis=0), values, 2e-3)


def test_one_sequence_a_sentence(explainers: Explainers) -> None:
    """Sentences of the prompt, sentences of the generation but the last, and the passage as it is."""
    shared_one = explainers("needle_raw")
    explainer = Explainer(shared_one.model, shared_one.passage.user_text, shared_one.passage.generation_text)
    found = explainer.attribute("ablation")
    prompt, generation = (explainer.passage.prompt_units("sentence"), explainer.passage.generation_units("sentence"))
    assert found.details["sequences"] == len(prompt) + len(generation)
