"""What was planted is found, what was not is left alone: with trained models, and with statistics alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lm_audit.audits.leakage import (
    made_up_benchmark,
    measure_memorisation,
    memorisation_evidence,
    option_order,
    paired_sign_flip,
    published_place_test,
    text_likelihood,
    trained_on,
)
from lm_audit.models import LanguageModel
from lm_audit.models.toy.tiny_model import tiny_model
from tests.present import present
from tests.report.browser.first_screen import clean, told


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return tiny_model()


@pytest.fixture(scope="module")
def contaminated(tiny: LanguageModel) -> LanguageModel:
    return trained_on(tiny, made_up_benchmark(16, seed=1).items, seed=1)[0]


def test_every_test_finds_a_contaminated_benchmark(contaminated: LanguageModel, tmp_path: Path) -> None:
    seen, fresh = made_up_benchmark(16, seed=1), made_up_benchmark(16, seed=2)
    evidence = memorisation_evidence(measure_memorisation(contaminated, seen, seed=0))
    assert present(evidence.metrics["leakage.order_effect.logprob.p"].value) < 0.001
    values = [present(evidence.metrics[f"leakage.logprob.{c}"].value) for c in ("original", "shuffled", "other_item")]
    assert values[0] == max(values)
    assert evidence.metrics["leakage.logprob.original"].chance == values[2]
    order = option_order(contaminated, seen, seed=0)
    assert present(order.metrics["leakage.option_order.first.p"].value) < 0.001
    found = told(tmp_path / "run", evidence)
    assert found.says("The model prefers the printed order of the options of made-up: it has seen some or all of them")
    texts = text_likelihood(contaminated, seen, clean=fresh, seed=0)
    assert present(texts.metrics["leakage.text.min_k20.auc"].value) > 0.9
    assert present(texts.metrics["leakage.text.min_k20_plus.auc"].value) > 0.9


def test_the_same_model_on_other_questions(contaminated: LanguageModel, tmp_path: Path) -> None:
    fresh = made_up_benchmark(16, seed=2)
    evidence = memorisation_evidence(measure_memorisation(contaminated, fresh, seed=0))
    assert present(evidence.metrics["leakage.order_effect.logprob.p"].value) > 0.01
    clean(told(tmp_path / "run", evidence))
    assert present(option_order(contaminated, fresh, seed=0).metrics["leakage.option_order.first.p"].value) > 0.01


SEEDS = 400


@pytest.mark.parametrize("orders", [1, 3])
def test_false_alarms_stay_at_the_nominal_rate(orders: int) -> None:
    """Exchangeable skewed scores with an item's own level: the published order is any of them."""
    placed, flipped = [], []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        scores = rng.exponential(1.0, (24, orders + 1)) + rng.normal(0, 2, (24, 1))
        placed.append(published_place_test(scores.tolist(), n_resamples=499, seed=seed).value)
        flipped.append(paired_sign_flip(scores[:, 0] - scores[:, 1:].mean(axis=1), n_resamples=499, seed=seed).value)
    # 400 trials at 5%: 20 expected, 34 or more with a chance of 0.2%.
    assert sum(present(p) <= 0.05 for p in placed) < 34
    if orders == 1:
        assert sum(present(p) <= 0.05 for p in flipped) < 34


@pytest.mark.slow
def test_ten_trainings_raise_no_more_alarms_than_chance(tiny: LanguageModel) -> None:
    alarms = 0
    for seed in range(10):
        other = made_up_benchmark(20, seed=100 + seed)
        model, _ = trained_on(tiny, made_up_benchmark(20, seed=seed).items, seed=seed)
        result = measure_memorisation(model, other, seed=seed)
        placed = result.effects["logprob"].placed
        assert placed is not None and placed.value is not None
        alarms += placed.value <= 0.05
    # Ten trials at 5%: three or more with a chance of 1.2%.
    assert alarms <= 2
