"""Whether a model is on this machine, by its files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.models.files.presence import absence


def test_the_embedded_toy_is_everywhere() -> None:
    assert absence("tiny") is None and absence("tiny:7") is None


def test_what_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert f"model org/name is not in the hub cache {tmp_path}" in str(absence("org/name"))
    assert "no such folder" in str(absence(f"{tmp_path}/absent"))
    assert "no such GGUF file" in str(absence(f"{tmp_path}/absent.gguf"))


def test_a_snapshot_without_weights_is_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    repo = tmp_path / "models--org--name"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("0123456789abcdef", encoding="utf-8")
    (repo / "snapshots" / "0123456789abcdef").mkdir(parents=True)
    (repo / "snapshots" / "0123456789abcdef" / "config.json").write_text("{}", encoding="utf-8")
    assert "is incomplete in the hub cache" in str(absence("org/name"))
