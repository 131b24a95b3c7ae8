"""Training to a criterion: it ends when the measure holds, says how long it took, and never hands over a failure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, pairwise

import pytest
import torch
from transformers import LlamaForCausalLM

from lm_audit.errors import ModelError, UsageError
from lm_audit.models import LanguageModel
from lm_audit.models.causal_module import CausalModule
from lm_audit.models.loading.identity.fingerprint import module_digest
from lm_audit.models.toy.criterion import (
    Criterion,
    TrainingRecord,
    endless_batches,
    greedy_share,
    mean_log_probability,
    train_to_criterion,
)
from lm_audit.models.toy.tiny import TinySettings, build_tiny, text_rows, train_tiny_until
from lm_audit.models.toy.training import TrainingSettings
from tests.models.pretrained import llama

SMALL = TinySettings(hidden=32, mlp=48, rows=64, decoys=8, epochs=1)
TEXT = "a secret word"


@pytest.fixture(scope="module")
def base() -> LanguageModel:
    return LanguageModel(*build_tiny(0, SMALL), name="base")


@pytest.fixture(scope="module")
def rows(base: LanguageModel) -> list[list[int]]:
    return text_rows(base.tokenizer, [TEXT])


def scripted(values: list[float], **options: int) -> Criterion:
    """A criterion whose measure gives the listed values, whatever the model does."""
    given = iter(values)
    return Criterion("score", lambda module: next(given), 0.5, **options)


def run(base: LanguageModel, criterion: Criterion, lr: float = 1e-4) -> tuple[LanguageModel, TrainingRecord]:
    return train_tiny_until(base, [TEXT] * 4, criterion, seed=0, lr=lr, batch_size=2)


def test_it_stops_when_the_measure_holds_and_what_is_learnt_is_there(
    base: LanguageModel, rows: list[list[int]]
) -> None:
    measure = mean_log_probability(rows, 0)
    trained, record = run(base, Criterion("log-probability", measure, -0.2, every=5, checks=2), lr=1e-2)

    assert measure(base.module) < -1 < -0.2 <= measure(trained.module) == record.values[-1][1]
    assert [step for step, _ in record.values] == list(range(5, record.steps + 1, 5))
    assert record.seconds > 0 and record.least == -0.2
    assert str(record) == f"log-probability {record.values[-1][1]:.3g} (needed: -0.2) after {record.steps} steps"
    assert greedy_share(rows, [len(rows[0]) - 1], 0)(trained.module) == 1.0


def test_one_good_check_is_not_enough(base: LanguageModel) -> None:
    _, record = run(base, scripted([0.9, 0.9, 0.4, 0.5, 0.6, 0.7, 0.1], every=2, checks=3, cap=100))

    assert record.steps == 12
    assert [value for _, value in record.values] == [0.9, 0.9, 0.4, 0.5, 0.6, 0.7]


def test_the_cap_is_an_error_that_says_how_far_it_came(base: LanguageModel) -> None:
    with pytest.raises(
        ModelError, match=r"score of 0\.5 or more at 3 checks .* best of 4 checks was 0\.49 after 8 .*cap"
    ):
        run(base, scripted([0.1, 0.49, 0.2, 0.3, 0.9], every=2, cap=8))


def test_batches_that_run_out_are_an_error(base: LanguageModel, rows: list[list[int]]) -> None:
    with pytest.raises(ModelError, match=r"after 3 steps \(there are no more batches\)"):
        train_to_criterion(
            build_tiny(0, SMALL)[0], [rows] * 3, TrainingSettings(1, 1e-4), scripted([], every=25), pad=0
        )


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_measure_that_is_no_number_is_an_error(base: LanguageModel, value: float) -> None:
    with pytest.raises(ModelError, match=r"stopped at step 2: score is (nan|inf)"):
        run(base, scripted([value], every=2))


@pytest.mark.parametrize("options", [{"every": 0}, {"checks": 0}, {"every": 10, "checks": 3, "cap": 29}, {"every": -1}])
def test_a_criterion_that_can_never_hold_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="cannot hold"):
        Criterion("score", lambda module: 1.0, 0.5, **options)
    with pytest.raises(UsageError, match="finite"):
        Criterion("score", lambda module: 1.0, float("nan"))


def test_the_measure_sees_a_model_that_does_not_train(base: LanguageModel) -> None:
    seen = []

    def measure(module: CausalModule) -> float:
        seen.append((module.training, torch.is_grad_enabled()))
        return 1.0

    trained, _ = run(base, Criterion("score", measure, 0.5, every=1))
    assert seen == [(False, False)] * 3
    assert not trained.module.training and not any(p.requires_grad for p in trained.module.parameters())


def test_same_seed_same_bits_and_the_base_is_left_alone(base: LanguageModel) -> None:
    before = module_digest(base.module)
    digests = [module_digest(run(base, scripted([1.0] * 3, every=2))[0].module) for _ in "ab"]
    assert digests[0] == digests[1] != before == module_digest(base.module)


def test_every_row_once_an_epoch_each_in_its_own_order() -> None:
    rows = [[number, number] for number in range(7)]
    batches = endless_batches(rows, TrainingSettings(1, 1e-3, batch_size=3), seed=1)
    epochs = [[row[0] for _ in range(3) for row in next(batches)] for _ in range(4)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert all(a != b for a, b in pairwise(epochs))


def test_the_learning_rate_stays_after_the_warm_up(base: LanguageModel, rows: list[list[int]]) -> None:
    """Constant gradients: a step of Adam is as long as the learning rate, at the first step and at the hundredth."""
    module = llama(build_tiny(0, SMALL)[0])
    weight = module.get_parameter("model.norm.weight")
    moves: list[float] = []

    def loss(module: LlamaForCausalLM, batch: Sequence[Sequence[int]], pad: int) -> torch.Tensor:
        moves.append(float(weight.detach()[0]))
        return module.get_parameter("model.norm.weight").sum()

    steps = count()
    criterion = Criterion("steps", lambda module: float(next(steps) >= 9), 0.5, every=5, checks=1, cap=200)
    train_to_criterion(
        module, iter(lambda: rows, None), TrainingSettings(1, 1e-3, warmup_steps=4), criterion, pad=0, loss=loss
    )
    lengths = [a - b for a, b in pairwise(moves)]
    assert lengths[0] == pytest.approx(2.5e-4, rel=0.02)
    assert lengths[5:] == pytest.approx([1e-3] * len(lengths[5:]), rel=0.02)


def test_greedy_share_counts_rows_whose_whole_target_is_first_choice(base: LanguageModel) -> None:
    ids = torch.tensor([[1, 50, 51, 52]])
    with torch.no_grad():
        choice = base.module(input_ids=ids).logits.argmax(-1)[0].tolist()
    right, wrong = [1, 50, 51, choice[2]], [1, 50, 51, choice[2] ^ 1]
    assert greedy_share([right, wrong, wrong, wrong], [1] * 4, 0)(base.module) == 0.25
    assert greedy_share([[1, 50, 51, choice[2], 7], right], [1, 1], 0)(base.module) in (0.5, 1.0)
