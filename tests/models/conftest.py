from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.small_models import save_small_llama


@pytest.fixture(scope="session")
def llama_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model folder that tests only read."""
    return save_small_llama(tmp_path_factory.mktemp("llama") / "small-llama")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of the harness, in place of the user's."""
    folder = tmp_path / "own-cache"
    monkeypatch.setenv("LM_AUDIT_CACHE", str(folder))
    return folder


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, offline."""
    folder = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder
