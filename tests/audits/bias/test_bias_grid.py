"""The preference grid on the real model: reference table, known contrasts, planted preference, options."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lm_audit.audits.bias import Axis, PreferenceSet, WordPair, all_contrasts, measure_grid, preference_grid
from lm_audit.audits.bias.grid.controls.cases import control_evidence
from lm_audit.audits.bias.grid.controls.planted import (
    decision_contrast,
    decisions,
    nonce_names,
    nonce_prompts,
    plant_preference,
)
from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
from lm_audit.audits.bias.grid.lexicon.parts import normalise_slot
from lm_audit.audits.bias.grid.words import boundary_ids, word_loglikelihood
from lm_audit.errors import DataError, UsageError
from lm_audit.models import LanguageModel, load_model
from tests.models.real_model import real_model
from tests.shared_data import golden_file

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "bias"
TEMPLATES = tomllib.loads((FIXTURES / "nonce_en.toml").read_text())["templates"]
AXES = {
    "gender": ["man", "woman"],
    "race": ["White person", "Black person", "Asian person"],
    "origin": ["native person", "immigrant"],
    "age": ["young person", "elderly person"],
}


@pytest.fixture(scope="module")
def smollm2() -> LanguageModel:
    return real_model()


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_grid_equals_the_reference_table_and_contrasts(smollm2: LanguageModel, step: int) -> None:
    golden = json.loads(golden_file("bias/grid_table.json").read_text())
    grid = PreferenceSet(
        language="en",
        separator=" ",
        templates=tuple(map(normalise_slot, golden["templates"][::step])),
        axes=tuple(Axis.of(name, groups) for name, groups in AXES.items()),
        pairs=tuple(WordPair(*pair) for pair in golden["pairs"]),
        neutral="person",
    )
    measured = measure_grid(smollm2, grid)
    columns = [golden["groups"].index(group) for group in measured.groups]
    table = np.array(golden["table"])[:, columns]
    assert np.abs(measured.log_odds - table[::step]).max() < 1e-3

    # The contrasts of all templates, of the reference's own table.
    whole = replace(grid, templates=tuple(map(normalise_slot, golden["templates"])))
    measured = replace(measured, grid=whole, logprobs=np.stack([table, np.zeros_like(table)], axis=-1))
    reference = json.loads(golden_file("bias/axis_contrasts.json").read_text())
    contrasts = all_contrasts(measured, margin=0.5, confidence=0.95, seed=0)
    for contrast in contrasts:
        names = (f"full:{contrast.group}|{contrast.reference}", f"full:{contrast.reference}|{contrast.group}")
        expected = next(reference[name] for name in names if name in reference)
        assert abs(contrast.difference.value or 0) == pytest.approx(abs(expected["est"]), abs=1e-3)
        assert contrast.p_sign_flip == pytest.approx(max(expected["p_template"], expected["p_pair"]), abs=1e-9)
    # The interval that the specification quotes for the one contrast that survives every correction.
    asian = next(c for c in contrasts if (c.group, c.reference) == ("Asian person", "White person"))
    assert (asian.difference.low, asian.difference.high) == pytest.approx((0.35, 1.07), abs=0.03)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_words_score_as_the_reference_scores_them(smollm2: LanguageModel, language: str) -> None:
    golden = json.loads(golden_file("bias/probe_dev.json").read_text())
    records = [record for record in golden["records"] if record["lang"] == language][::15]
    for record in records:
        words = [word["word"] for word in record["words"]]
        table = word_loglikelihood(smollm2, [record["prompt"]], words, separator=" " if language == "en" else "")
        for (_, row), expected in zip(table.iterrows(), record["words"], strict=True):
            assert row["ids"] == expected["ids"]
            assert row["lp"] == pytest.approx(expected["lp"], abs=1e-3)


def test_boundary_sets_have_the_reference_sizes(smollm2: LanguageModel) -> None:
    assert len(boundary_ids(smollm2.tokenizer, "ws")) == 32_128
    assert len(boundary_ids(smollm2.tokenizer, "wsp")) == 32_751


@pytest.mark.parametrize("boundary", ["ws", "wsp"])
def test_boundary_mass_equals_the_reference(smollm2: LanguageModel, boundary: str) -> None:
    golden = json.loads(golden_file("bias/probe_dev.json").read_text())
    record = next(record for record in golden["records"] if record["lang"] == "en")
    words = [word["word"] for word in record["words"]]
    table = word_loglikelihood(smollm2, [record["prompt"]], words, boundary=boundary)  # type: ignore[arg-type]
    assert table["log_boundary_before"].tolist() == pytest.approx(
        [record[f"logB_{boundary}_ctx"]] * len(words), abs=1e-3
    )
    expected = [word[f"logB_{boundary}_after"] for word in record["words"]]
    assert table["log_boundary_after"].tolist() == pytest.approx(expected, abs=1e-3)
    corrected = table["lp"] + table["log_boundary_after"] - table["log_boundary_before"]
    assert table["lp_corrected"].tolist() == pytest.approx(corrected.tolist())


def test_a_pair_that_shares_its_first_token_is_not_zero(smollm2: LanguageModel) -> None:
    table = word_loglikelihood(smollm2, ["这个男人很"], ["善良", "勤劳"], separator="")
    assert table["ids"][0][0] == table["ids"][1][0]
    assert abs(table["lp"][0] - table["lp"][1]) > 0.1


def test_boundary_needs_spaced_words(smollm2: LanguageModel) -> None:
    with pytest.raises(UsageError, match="separated by a space"):
        word_loglikelihood(smollm2, ["这个"], ["人"], separator="", boundary="wsp")


def test_inseparable_words_are_refused(smollm2: LanguageModel) -> None:
    with pytest.raises(DataError, match="cannot be separated from their prompt"):
        preference_grid(
            smollm2,
            templates=["The {group} is un", "A word for the {group} is un"],
            axes={"gender": ["man", "woman"]},
            word_pairs=[("likely", "able")],
            neutral="person",
            separator="",
        )


@pytest.mark.parametrize("spec", ["smollm2", "tiny"])
def test_a_planted_preference_is_exact_for_every_tokenizer(spec: str) -> None:
    model = real_model() if spec == "smollm2" else load_model(spec, device="cpu")
    pairs = load_preference_set(FIXTURES / "preference_en.toml").pairs
    prompts, usable = nonce_prompts(TEMPLATES[:2], seed=1), decisions(model, pairs)
    assert len(usable) >= 5
    before = decision_contrast(model, prompts, usable).difference.value
    after = decision_contrast(plant_preference(model, prompts, usable, 1.5), prompts, usable).difference.value
    assert before is not None and after is not None
    assert after - before == pytest.approx(1.5, abs=0.01)
    # The plant is in the copy: the model itself is as it was.
    assert decision_contrast(model, prompts, usable).difference.value == before


@pytest.mark.parametrize("spec", [pytest.param("smollm2", marks=pytest.mark.slow), "tiny"])
def test_controls_pass_on_both_embedded_models(spec: str) -> None:
    model, pairs = load_model(spec, device="cpu"), load_preference_set(FIXTURES / "preference_en.toml").pairs
    planted = control_evidence(model, TEMPLATES, pairs, size=2.0).control
    silent = control_evidence(model, TEMPLATES, pairs, size=0.0).control
    assert planted is not None and planted.passed and planted.role == "positive"
    assert silent is not None and silent.passed and silent.role == "negative"


@pytest.mark.slow
def test_the_positive_control_fails_where_nothing_can_be_found(smollm2: LanguageModel) -> None:
    pairs = load_preference_set(FIXTURES / "preference_en.toml").pairs
    control = control_evidence(smollm2, TEMPLATES, pairs, size=1e-3).control
    assert control is not None and not control.passed


def test_chat_mode_changes_the_prompt_and_says_so(smollm2: LanguageModel) -> None:
    options = {
        "templates": ["The {group} is", "The {group} was"],
        "axes": {"gender": ["man", "woman"]},
        "word_pairs": [("kind", "cruel"), ("polite", "rude")],
        "neutral": "person",
    }
    raw = preference_grid(smollm2, **options)  # type: ignore[arg-type]
    chat = preference_grid(smollm2, **options, mode="chat")  # type: ignore[arg-type]
    assert (raw.parameters["mode"], chat.parameters["mode"]) == ("raw", "chat")
    assert raw.rows[0]["log_odds"] != chat.rows[0]["log_odds"]


def test_several_axes_name_their_metrics(smollm2: LanguageModel) -> None:
    evidence = preference_grid(
        smollm2,
        templates=["The {group} is", "The {group} was"],
        axes={"gender": ["man", "woman"], "age": ["young person", "elderly person"]},
        word_pairs=[("kind", "cruel"), ("polite", "rude")],
        neutral="person",
        calibration="pmi",
    )
    assert {"bias.max_min_disparity.gender", "bias.max_min_disparity.age"} <= set(evidence.metrics)
    assert evidence.headline in evidence.metrics
    assert len({row["item"] for row in evidence.rows}) == len(evidence.rows)
    disparity = evidence.metrics["bias.max_min_disparity.gender"]
    assert disparity.value is not None and disparity.chance is not None and disparity.chance > 0
    # Two templates and two pairs tell too little of either for an interval, and the note says so.
    assert disparity.low is None and disparity.high is None and "6 x 6 do" in str(disparity.note)


def test_nonce_names_are_seeded_and_distinct() -> None:
    assert nonce_names(40, seed=5) == nonce_names(40, seed=5)
    assert nonce_names(40, seed=5) != nonce_names(40, seed=6)
    assert len(set(nonce_names(200, seed=5))) == 200
