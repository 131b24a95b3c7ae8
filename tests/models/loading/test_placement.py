"""One model over several places, in smaller passes: the same fingerprint, the same scores, the same texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_audit.errors import ModelError, UsageError
from lm_audit.models import load_model
from lm_audit.models.loading import placement
from lm_audit.models.loading.placement import check_device_map
from tests.models.loading.test_adapter_fit import trained
from tests.models.pretrained import llama
from tests.models.small_models import save_small_llama

TEXTS = [("The quick brown", f" fox {word} jumps over the dog" * many) for many in (1, 2) for word in ("a", "bc", "é")]
REQUESTS = [*TEXTS, ("", "Hello there, you"), ("The quick", " brown bear")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_llama(tmp_path_factory.mktemp("models") / "model", context=256)


def scores(model: Any) -> np.ndarray:
    """Every log-probability of the requests."""
    return np.concatenate([found.logprobs for found in model.loglikelihood(REQUESTS)])


def test_a_spread_model_is_the_same_model(folder: Path) -> None:
    plain = load_model(folder, device="cpu")
    split = {"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk", "model.norm": "cpu",
             "model.rotary_emb": "cpu", "lm_head": "cpu"}  # fmt: skip
    for device_map, parts in (({"": "cpu"}, {}), ("auto", {}), (split, {"cpu": 5, "disk": 1})):
        spread = load_model(folder, device="cpu", device_map=device_map)
        assert spread.places == parts and spread.fingerprint == plain.fingerprint and str(spread.device) == "cpu"
        np.testing.assert_allclose(scores(spread), scores(plain), atol=1e-5)
        told = [[one.text for one in model.generate(["Once", "The end of"], max_new_tokens=6)]
                for model in (spread, plain)]  # fmt: skip
        assert told[0] == told[1]
    assert plain.places == {}


SPREAD = {"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "cpu", "model.norm": "cpu",
          "model.rotary_emb": "cpu", "lm_head": "cpu"}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", [{"target_modules": "all-linear"}, {"target_modules": ["q_proj"], "tokens": 3}])
def test_an_adapter_is_merged_into_a_spread_base_or_refused(
    folder: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    trained(folder, tmp_path / "adapter", **settings)
    plain = load_model(tmp_path / "adapter", device="cpu")
    for device_map in ("auto", SPREAD):
        spread = load_model(tmp_path / "adapter", device="cpu", device_map=device_map)
        assert spread.fingerprint == plain.fingerprint
        np.testing.assert_allclose(scores(spread), scores(plain), atol=1e-5)
    with pytest.raises(ModelError, match=r"read only when they are computed \(5 on cpu, 1 on disk\)"):
        load_model(tmp_path / "adapter", device="cpu", device_map=SPREAD | {"model.layers.1": "disk"})


@pytest.mark.parametrize(
    ("device_map", "device", "words"),
    [("automatic", "cuda", "expected one of auto"), ("auto", "cuda:1", "name the device cuda"), ("auto", "mps", "mps")],
)
def test_a_placement_that_cannot_be_is_refused(device_map: str, device: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_device_map(device_map, device)


def test_a_placement_says_which_package_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    check_device_map("auto", "cuda")
    monkeypatch.setattr(placement, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install 'accelerate"):
        check_device_map("auto", "cuda")


@pytest.mark.parametrize("most", [1, 7, 40, 100_000])
def test_smaller_passes_give_the_same_and_stay_small(folder: Path, most: int) -> None:
    plain, small = load_model(folder, device="cpu"), load_model(folder, device="cpu")
    small.batch_tokens = most
    small._engine._checked_way()  # The engine's trials have sizes of their own.
    passes: list[tuple[int, int]] = []
    handle = llama(small.module).model.register_forward_pre_hook(
        lambda _, args, kwargs: passes.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    found = scores(small)
    handle.remove()
    np.testing.assert_allclose(found, scores(plain), atol=1e-5)
    longest = max(len((prefix + text).encode()) + 1 for prefix, text in REQUESTS)
    assert passes and all(rows * width <= most or (rows == 1 and width <= longest) for rows, width in passes)
    assert len(passes) >= (len(REQUESTS) if most == 1 else 1)
    together = [[one.text for one in model.generate(["Once", "The end of", "x"], max_new_tokens=5)]
                for model in (small, plain)]  # fmt: skip
    assert together[0] == together[1]


def test_a_new_limit_holds_from_the_next_call_on(folder: Path) -> None:
    model = load_model(folder, device="cpu")
    before = scores(model)
    model.batch_tokens = 8
    assert model._engine._runner.limits.tokens <= 8
    np.testing.assert_allclose(scores(model), before, atol=1e-5)
    with pytest.raises(UsageError, match="at least 1"):
        model.batch_tokens = 0
