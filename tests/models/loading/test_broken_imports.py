"""An import that failed, or was interrupted, is no fault of a model's files, and is told by what broke first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lm_audit.errors import ModelError
from lm_audit.models.loading.module import _blame_config, described


def test_an_import_that_failed_does_not_blame_the_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    (tmp_path / "config.json").write_text("{}", encoding="utf-8")

    def broken(*_: Any, **__: Any) -> None:
        try:
            raise ImportError("libgomp.so.1: cannot open shared object file")
        except ImportError as first:
            raise ModuleNotFoundError("Could not import module 'LlamaConfig'.") from first

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", broken)
    with pytest.raises(ModelError) as told:
        _blame_config(tmp_path, False)
    assert "config.json" not in str(told.value) and "cannot be imported" in str(told.value)
    assert "LlamaConfig" in str(told.value) and "(since ImportError: libgomp.so.1: cannot open" in str(told.value)


def test_causes_are_told_of_imports_alone() -> None:
    try:
        raise ValueError("second") from KeyError("first")
    except ValueError as error:
        assert described(error) == "ValueError: second"
