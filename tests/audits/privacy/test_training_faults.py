"""Break the training on purpose: the control that trains a second time, by other code, must notice every fault."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lm_audit.audits.privacy.controls import known_training as control
from lm_audit.audits.privacy.controls.known_training import Trained, judge_training, known_training
from lm_audit.audits.privacy.data import prepare
from lm_audit.audits.privacy.stages import four_stages
from lm_audit.audits.privacy.training import batches, dpo, loop, own_stages, sft
from tests.audits.reporting_faults import COUNTS
from tests.present import present

Fault = Callable[[pytest.MonkeyPatch], None]
KNOWN: dict[bytes, Any] = {}
PLAIN = control.plain_stages


def once(base: Any, rows: Any, config: Any) -> Any:
    """The other route, taken once for files that are the same."""
    key = pickle.dumps((rows, config.seed))
    if key not in KNOWN:
        KNOWN[key] = PLAIN(base, rows, config)
    return KNOWN[key]


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """One canary, half of the documents and of the steps are enough here."""
    monkeypatch.setattr(control, "plain_stages", once)
    for name, value in (("MEMBERS", 1), ("REPETITIONS", (3,)), ("DOCUMENTS", 100), ("STEPS", 3), ("PAIRS", 6)):
        monkeypatch.setattr(control, name, value)


def put(module: Any, name: str, fault: Callable[..., Any]) -> Fault:
    """``fault(honest, ...)`` in place of a function."""
    return lambda patch: patch.setattr(module, name, partial(fault, getattr(module, name)))


def both(*faults: Fault) -> Fault:
    def apply(patch: pytest.MonkeyPatch) -> None:
        for fault in faults:
            fault(patch)

    return apply


def exchanged(honest: Any, module: Any, tokenizer: Any, pairs: Any, settings: Any, **options: Any) -> Any:
    turned = [{**pair, "chosen": pair["rejected"], "rejected": pair["chosen"]} for pair in pairs]
    return honest(module, tokenizer, turned, settings, **options)


def unfrozen(
    honest: Any, module: Any, tokenizer: Any, pairs: Any, settings: Any, *, beta: float, seed: int, stage: str, **_: Any
) -> Any:
    """The reference is the policy of the same step."""
    rows = dpo.encode_pairs(tokenizer, pairs, settings.max_length)

    def loss_of(batch: list[int]) -> torch.Tensor:
        chosen, rejected = dpo._batch_logprobs(module, [rows[i] for i in batch], torch.device("cpu"))
        margin = chosen - rejected
        return -torch.nn.functional.logsigmoid(beta * (margin - margin.detach())).mean()

    return loop.run_steps(module, batches.all_batches(len(rows), settings, seed=seed), loss_of, settings, stage=stage)


def reference_for_policy(honest: Any, module: Any, batch: Any, loss_of: Any, settings: Any, **options: Any) -> Any:
    """The margin of the reference less that of the policy: -log(1 - exp(-loss)) is the loss of the other sign."""
    return honest(module, batch, lambda some: -torch.log(-torch.expm1(-loss_of(some))), settings, **options)


def labels_one_early(honest: Any, module: Any, ids: Any, mask: Any) -> Any:
    """Each token is to be foretold by what stands at its own place."""
    return honest(module, torch.roll(ids, -1, dims=1), mask)


def first_half_alone(honest: Any, module: Any, ids: Any, mask: Any) -> Any:
    costs = honest(module, ids, mask)
    return costs * (torch.arange(costs.shape[1])[None] < mask.sum(1, keepdim=True) // 2)


def padding_too(honest: Any, rows: Any, device: Any) -> Any:
    ids, mask = honest(rows, device)
    return ids, torch.ones_like(mask)


def with_twins(honest: Any, documents: Any, canaries: Any, **options: Any) -> Any:
    return honest(
        documents, [replace(c, role="member", repetitions=max(1, c.repetitions)) for c in canaries], **options
    )


def one_twin(honest: Any, documents: Any, canaries: Any, **options: Any) -> Any:
    """A held-out twin in the place of a document."""
    twin = next(c for c in canaries if c.role == "control")
    found = honest(documents, canaries, **options)
    place = next(number for number, (_, name) in enumerate(found.rows) if name is None)
    return replace(found, rows=(*found.rows[:place], (twin.text, None), *found.rows[place + 1 :]))


def unverified(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(four_stages, "verify_training_files", lambda manifest: None)


FAULTS: dict[str, Fault] = {
    "sign of beta turned": put(own_stages, "train_preferences", lambda f, *w, beta, **o: f(*w, beta=-beta, **o)),
    "reference and policy exchanged": put(dpo, "run_steps", reference_for_policy),
    "chosen and rejected exchanged": put(own_stages, "train_preferences", exchanged),
    "reference not frozen": put(own_stages, "train_preferences", unfrozen),
    "beta of 1": put(own_stages, "train_preferences", lambda f, *w, beta, **o: f(*w, beta=1.0, **o)),
    "DPO begins with the base model": put(
        own_stages, "own_dpo", lambda f, stage, config, pairs, _, *w: f(stage, config, pairs, Path(config.model), *w)
    ),
    "completions one token late": put(
        dpo, "_encode", lambda f, *w: dpo.Completion((found := f(*w)).ids, found.start + 1)
    ),
    "labels off by one": put(sft, "token_nll", labels_one_early),
    "loss on the first half alone": put(sft, "token_nll", first_half_alone),
    "padding trained": put(sft, "pad", padding_too),
    "texts without an end": put(batches, "end_ids", lambda f, tokenizer: ()),
    "half of the rows": put(sft, "all_batches", lambda f, *w, **o: [some[::2] for some in f(*w, **o)]),
    "learning rate never lowered": put(loop, "rate_factor", lambda f, *w: lambda step: 1.0),
    "twins trained": both(put(prepare, "build_corpus", with_twins), unverified),
    "a twin in the corpus": put(prepare, "build_corpus", one_twin),
    "a twin in the corpus, unverified": both(put(prepare, "build_corpus", one_twin), unverified),
    "canaries in both preference files": put(prepare, "build_preferences", lambda f, *w, **o: (f(*w, **o)[1],) * 2),
    "canaries in no preference file": put(prepare, "build_preferences", lambda f, *w, **o: (f(*w, **o)[0],) * 2),
    "files of the stages exchanged": put(
        four_stages,
        "stage_data",
        lambda f, stage, folder: f({"dpo_no_canary": "dpo_with_canary"}.get(stage, stage), folder),
    ),
    "stages not trained": put(loop.Update, "take", lambda f, *w: None),
}
QUICK = ("sign of beta turned", "reference not frozen", "labels off by one", "a twin in the corpus, unverified")
"""Tried before every commit; the others in ``make test-all``."""

NOTICED_BY = {fault: {"known-training"} for fault in (*FAULTS, *COUNTS)}


def test_what_is_trained_right_passes() -> None:
    found = present(known_training(0).control)
    assert found.passed, found.observed


@pytest.mark.parametrize("fault", [pytest.param(f, marks=() if f in QUICK else pytest.mark.slow) for f in FAULTS])
def test_a_fault_of_the_training_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault](monkeypatch)
    assert not present(known_training(0).control).passed


def made(shift: float = 0.0, stage: str = "sft") -> Trained:
    """Scores of both routes, of which one stage's are shifted."""
    plain = {name: np.linspace(-3, -1, 9) for name in ("base", "sft", "dpo_no_canary", "dpo_with_canary")}
    own = {name: values + (shift if name == stage else 1e-6) for name, values in plain.items()}
    return Trained(own, plain, {name: values - 0.5 for name, values in plain.items()})


@pytest.mark.parametrize("stage", ["base", "sft", "dpo_no_canary", "dpo_with_canary"])
def test_one_stage_that_is_off_is_enough(stage: str) -> None:
    assert present(judge_training(made()).control).passed
    for shift in (0.01, -0.01, np.nan, np.inf):
        assert not present(judge_training(made(shift, stage)).control).passed


def test_what_learned_nothing_tells_nothing() -> None:
    still = replace(made(), before=made().plain)
    assert "too little to tell" in present(judge_training(still).control).observed
    assert not present(judge_training(Trained({}, {}, {})).control).passed


@pytest.mark.parametrize("fault", COUNTS)
def test_a_report_that_is_not_of_the_rows_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    COUNTS[fault](monkeypatch)
    assert not present(judge_training(made()).control).passed
