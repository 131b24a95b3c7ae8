"""Modules that are rewritten before the workers start are those that pytest takes, and are not rewritten again."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.rewritten import FEWEST, compiled, rewrite_all

MODULE = "def test_it():\n    found = {number}\n    assert found == {number}\n"


def test_all_are_rewritten_once(tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    modules = [tmp_path / f"test_{number}.py" for number in range(FEWEST)]
    for number, module in enumerate(modules):
        module.write_text(MODULE.format(number=number), encoding="utf-8")
    (tmp_path / "helping.py").write_text("assert True\n", encoding="utf-8")
    assert rewrite_all(pytestconfig, [tmp_path], 2) == FEWEST
    for module in modules:
        code = rewrite._read_pyc(module, compiled(module))
        assert code is not None and code.co_filename == str(module)
        assert "@pytest_ar" in code.co_names
    assert len(list(tmp_path.rglob("*.pyc"))) == FEWEST
    assert rewrite_all(pytestconfig, [tmp_path], 2) == 0
    modules[0].write_text("def test_it(): pass\n", encoding="utf-8")
    assert rewrite_all(pytestconfig, [tmp_path], 2) == 0, "a few are left to the workers"


def test_a_module_that_cannot_be_rewritten_is_left_to_the_workers(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    for number in range(FEWEST + 1):
        (tmp_path / f"test_{number}.py").write_text("def broken(:\n" if number == 0 else "X = 1\n", encoding="utf-8")
    assert rewrite_all(pytestconfig, [tmp_path], 1) == FEWEST + 1
    assert compiled(tmp_path / "test_9.py").is_file() and not compiled(tmp_path / "test_0.py").exists()
