"""What a trial showed is remembered for the same model, libraries and device, and for nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lm_audit.models import LanguageModel, load_model
from lm_audit.models.checks import proofs
from lm_audit.models.generation.in_slots import slot_check
from lm_audit.models.scoring import engine
from lm_audit.models.text.byte_tokenizer import byte_tokenizer
from tests.models.small_models import small_llama

REQUESTS: list[Any] = [("some", " words"), ("some", " more")]


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the trials that run."""
    ran: list[str] = []
    for name, module, function in (("slots", slot_check, "_try"), ("scoring", engine, "fastest_way")):
        sound = getattr(module, function)

        def watched(*given: Any, _sound: Any = sound, _name: str = name) -> Any:
            ran.append(_name)
            return _sound(*given)

        monkeypatch.setattr(module, function, watched)
    return ran


def asked(model: LanguageModel) -> tuple[Any, ...]:
    scores = model.loglikelihood(REQUESTS)
    return (*(one.total for one in scores), *model.generate(["a", "some words"], max_new_tokens=6))


@pytest.mark.usefixtures("own_cache")
def test_a_second_load_tries_nothing_and_answers_the_same(llama_folder: Path, trials: list[str]) -> None:
    first = asked(load_model(str(llama_folder), device="cpu"))
    assert sorted(trials) == ["scoring", "slots"]

    assert asked(load_model(str(llama_folder), device="cpu")) == first
    assert len(trials) == 2


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    "change",
    [
        lambda model, patch: model.module.to(torch.float64),
        lambda model, patch: setattr(model.module.config, "max_position_embeddings", 63),
        lambda model, patch: setattr(model, "_fingerprint", "of another model"),
        lambda model, patch: patch.setattr(torch, "__version__", "another"),
        lambda model, patch: patch.setattr(proofs, "made_by", lambda *parts: "another"),
        lambda model, patch: patch.setattr(proofs, "_cpu", lambda: "another"),
    ],
    ids=["dtype", "settings", "model", "library", "code", "device"],
)
def test_whatever_could_change_the_finding_is_tried_anew(
    llama_folder: Path, trials: list[str], monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    asked(load_model(str(llama_folder), device="cpu"))
    other = load_model(str(llama_folder), device="cpu")
    change(other, monkeypatch)

    asked(other)

    assert sorted(trials) == ["scoring", "scoring", "slots", "slots"]


def test_a_model_in_memory_is_tried_and_leaves_nothing(own_cache: Path, trials: list[str]) -> None:
    for _ in range(2):
        asked(LanguageModel(small_llama(), byte_tokenizer(64), name="in memory"))

    assert len(trials) == 4 and not (own_cache / "proofs").exists()


def test_a_damaged_or_unwritable_proof_is_no_proof(
    llama_folder: Path, own_cache: Path, trials: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = asked(load_model(str(llama_folder), device="cpu"))
    for text in ("{", "[]", '{"slots": 3, "scoring": ["TREE"]}'):
        for path in (own_cache / "proofs").glob("*.json"):
            path.write_text(text)
        trials.clear()
        assert asked(load_model(str(llama_folder), device="cpu")) == expected
        assert sorted(trials) == ["scoring", "slots"]

    monkeypatch.setattr(proofs, "cache_dir", lambda: own_cache / "proofs" / "x.json")
    (own_cache / "proofs" / "x.json").write_text("a file where a folder should be")
    assert asked(load_model(str(llama_folder), device="cpu")) == expected


@pytest.mark.usefixtures("own_cache")
def test_a_trial_for_which_memory_ran_out_is_made_again(llama_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(slot_check, "_try", full)
        assert load_model(str(llama_folder), device="cpu").slots is None
    assert load_model(str(llama_folder), device="cpu").slots is not None
