"""Loaded models are kept by a byte budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.errors import ModelError, UsageError
from lm_audit.models import ModelCache
from lm_audit.models.loading.cache import weight_bytes
from tests.models.small_models import save_small_llama, small_llama


@pytest.fixture
def folders(tmp_path: Path, own_cache: Path) -> list[Path]:
    return [save_small_llama(tmp_path / f"model{seed}", seed) for seed in range(3)]


@pytest.fixture
def size() -> int:
    return weight_bytes(small_llama())


def test_a_model_is_loaded_once(folders: list[Path], size: int) -> None:
    cache = ModelCache(10 * size)

    assert cache.get(folders[0], device="cpu") is cache.get(str(folders[0]), device="cpu")
    assert cache.loads == 1


def test_the_least_recently_used_leaves(folders: list[Path], size: int) -> None:
    cache = ModelCache(5 * size // 2)
    first, _ = cache.get(folders[0], device="cpu"), cache.get(folders[1], device="cpu")
    cache.get(folders[0], device="cpu")

    cache.get(folders[2], device="cpu")

    assert cache.get(folders[0], device="cpu") is first
    assert cache.loads == 3
    cache.get(folders[1], device="cpu")
    assert cache.loads == 4
    assert cache.held_bytes <= cache.budget_bytes


def test_a_model_beyond_the_budget_is_held_alone(folders: list[Path], size: int) -> None:
    cache = ModelCache(size // 2)

    cache.get(folders[0], device="cpu")
    cache.get(folders[1], device="cpu")

    assert cache.held_bytes == size


def test_dtypes_are_models_of_their_own(folders: list[Path], size: int) -> None:
    cache = ModelCache(10 * size)

    full, half = cache.get(folders[0], device="cpu"), cache.get(folders[0], device="cpu", dtype="bf16")

    assert full is not half
    assert half is cache.get(folders[0], device="cpu", dtype="bfloat16")


def test_a_bad_spec_costs_no_model_its_place(folders: list[Path], size: int) -> None:
    cache = ModelCache(size)
    kept = cache.get(folders[0], device="cpu")

    for error, arguments in (
        (ModelError, {"spec": "/no/such/folder"}),
        (UsageError, {"spec": folders[1], "dtype": "int3"}),
    ):
        with pytest.raises(error):
            cache.get(**arguments)

    assert cache.get(folders[0], device="cpu") is kept


def test_clear(folders: list[Path], size: int) -> None:
    cache = ModelCache(10 * size)
    cache.get(folders[0], device="cpu")

    cache.clear()

    assert cache.held_bytes == 0


def test_tied_weights_count_once() -> None:
    tied, apart = (weight_bytes(small_llama(tie_word_embeddings=tie)) for tie in (True, False))

    assert apart - tied == 4 * 259 * 16
