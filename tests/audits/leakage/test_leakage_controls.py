"""What was planted is found, what was not is left alone: with trained models, and with statistics alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from lm_audit.audits.leakage import (
    made_up_benchmark,
    made_up_items,
    measure_memorisation,
    memorisation_evidence,
    option_order,
    paired_sign_flip,
    published_place_test,
    text_likelihood,
    trained_on,
)
from lm_audit.audits.leakage.controls.planted import planted_halves
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import full_text
from lm_audit.models import LanguageModel
from lm_audit.models.toy.tiny_model import tiny_model
from tests.present import present
from tests.report.browser.first_screen import clean, told


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return tiny_model()


@dataclass(frozen=True)
class Contaminated:
    """A model, the benchmark that it was trained on, and another of the kind."""

    model: LanguageModel
    seen: Benchmark
    fresh: Benchmark


@pytest.fixture(scope="module", params=["from the package", pytest.param("trained here", marks=pytest.mark.slow)])
def contaminated(request: pytest.FixtureRequest, tiny: LanguageModel) -> Contaminated:
    if request.param == "trained here":
        seen = made_up_benchmark(16, seed=1)
        return Contaminated(trained_on(tiny, seen.items, seed=1)[0], seen, made_up_benchmark(16, seed=2))
    seen, fresh = (Benchmark("made-up", tuple(half), ("made-up",), len(half), len(half)) for half in planted_halves())
    return Contaminated(trained_on(tiny, seen.items)[0], seen, fresh)


def test_every_test_finds_a_contaminated_benchmark(contaminated: Contaminated, tmp_path: Path) -> None:
    model, seen, fresh = contaminated.model, contaminated.seen, contaminated.fresh
    evidence = memorisation_evidence(measure_memorisation(model, seen, seed=0))
    assert present(evidence.metrics["leakage.order_effect.logprob.p"].value) < 0.001
    values = [present(evidence.metrics[f"leakage.logprob.{c}"].value) for c in ("original", "shuffled", "other_item")]
    assert values[0] == max(values)
    assert evidence.metrics["leakage.logprob.original"].chance == values[2]
    order = option_order(model, seen, seed=0)
    assert present(order.metrics["leakage.option_order.first.p"].value) < 0.001
    found = told(tmp_path / "run", evidence)
    assert found.says("The model prefers the printed order of the options of made-up: it has seen some or all of them")
    texts = text_likelihood(model, seen, clean=fresh, seed=0)
    assert present(texts.metrics["leakage.text.min_k20.auc"].value) > 0.9
    assert present(texts.metrics["leakage.text.min_k20_plus.auc"].value) > 0.9


def test_the_same_model_on_other_questions(contaminated: Contaminated, tmp_path: Path) -> None:
    model, fresh = contaminated.model, contaminated.fresh
    evidence = memorisation_evidence(measure_memorisation(model, fresh, seed=0))
    assert present(evidence.metrics["leakage.order_effect.logprob.p"].value) > 0.01
    clean(told(tmp_path / "run", evidence))
    assert present(option_order(model, fresh, seed=0).metrics["leakage.option_order.first.p"].value) > 0.01


def test_what_is_not_in_the_package_is_trained_until_it_is_known(tiny: LanguageModel) -> None:
    """A few questions, not to the end: the whole way, from which the copy in the package was made, is a slow test."""
    items = made_up_items(2, seed=1)
    model, record = trained_on(tiny, items, seed=1, least=-1.0)
    before, after = (
        np.mean([one.total / len(one.logprobs) for one in some.loglikelihood([("", full_text(x)) for x in items])])
        for some in (tiny, model)
    )
    assert record.steps > 0 and record.seconds > 0 and record.values[-1][1] >= -1.0
    assert before < -2.0 and after > -1.2


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
