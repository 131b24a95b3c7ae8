"""Where nobody's home is known (a container that runs under a bare user number) paths are still found."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from lm_audit.models.files.disk_cache import cache_dir
from lm_audit.models.files.hub import hub_cache_dir
from lm_audit.shared.home import from_home


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No ``HOME``, and a user that the system does not know."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("HOME", "XDG_CACHE_HOME", "LM_AUDIT_CACHE", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.usefixtures("nobody")
def test_caches_of_a_user_without_a_home(tmp_path: Path) -> None:
    assert cache_dir().is_relative_to(tmp_path)
    assert hub_cache_dir().name == "hub"
    assert from_home("~/x") == Path("~/x")


def test_a_home_that_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LM_AUDIT_CACHE", raising=False)
    assert from_home("~/x") == tmp_path / "x"
    assert cache_dir() == tmp_path / ".cache" / "lm-audit"
    assert from_home("~nosuchuser/x") == Path("~nosuchuser/x")
