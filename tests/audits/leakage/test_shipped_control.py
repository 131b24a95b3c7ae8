"""The trained model that lies in the package is that of the control's own training, and is taken for no other."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
import torch

from lm_audit.audits.leakage.controls.expected import negative_control, positive_control
from lm_audit.audits.leakage.controls.planted import (
    LEARNT,
    Training,
    measure,
    planted_halves,
    trained_on,
    training_of,
)
from lm_audit.audits.leakage.controls.shipped import EMBEDDED, RECORD, made_of, shipped
from lm_audit.models import LanguageModel
from lm_audit.models.toy.tiny_model import tiny_model


@pytest.fixture(scope="module")
def base() -> LanguageModel:
    return tiny_model()


@pytest.fixture(scope="module")
def training(base: LanguageModel) -> Training:
    return training_of(base, planted_halves()[0])


def test_it_was_made_by_the_training_of_today_and_knows_the_questions_here(
    base: LanguageModel, training: Training
) -> None:
    recorded = json.loads((EMBEDDED / RECORD).read_text(encoding="utf-8"))
    assert recorded["made_of"] == training.key, "run python -m lm_audit.audits.leakage.controls.planted"
    model, record = trained_on(base, planted_halves()[0])
    assert record.steps == recorded["steps"] and record.seconds == 0
    assert record.values[-1][1] == pytest.approx(training.criterion.measure(model.module), abs=1e-5)
    assert record.values[-1][1] == pytest.approx(recorded["values"][-1][1], abs=1e-3)
    assert record.values[-1][1] >= LEARNT > training.criterion.measure(base.module)


def test_every_part_of_a_training_is_in_its_key(base: LanguageModel, training: Training) -> None:
    seen, unseen = planted_halves()
    module = copy.deepcopy(base.module)
    with torch.no_grad():
        next(iter(module.parameters()))[0, 0] += 1e-3
    other = LanguageModel(module, base.tokenizer, name="other")
    trainings = [
        training,
        training_of(base, unseen),
        training_of(base, seen, seed=1),
        training_of(base, seen, least=-0.06),
        training_of(other, seen),
    ]
    assert len({one.key for one in trainings}) == len(trainings)
    assert [shipped(base, one.key, one.criterion) is not None for one in trainings] == [True, *[False] * 4]
    assert made_of(base, [[1, 2], [3]]) != made_of(base, [[1], [2, 3]])


def test_weights_that_do_not_know_the_questions_here_are_left_alone(base: LanguageModel, training: Training) -> None:
    untouched = replace(training.criterion, measure=lambda module: training.criterion.measure(base.module))
    no_number = replace(training.criterion, measure=lambda module: float("nan"))
    assert shipped(base, training.key, untouched) is None
    assert shipped(base, training.key, no_number) is None


@pytest.mark.slow
def test_a_training_from_the_start_gives_the_same_verdicts(base: LanguageModel, training: Training) -> None:
    model, record = training.run()
    assert record.values[-1][1] >= LEARNT and record.seconds > 0
    found = measure(base, model, record, *planted_halves(), seed=0)
    controls = [positive_control(found).control, negative_control(found).control]
    assert [control is not None and control.passed for control in controls] == [True, True]
