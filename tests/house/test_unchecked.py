"""A run of the tests ends with one line that says how many of them had no reference values to be checked against."""

from __future__ import annotations

from pathlib import Path

from tests.plugin.toy_run import REPOSITORY, run_pytest

CONFTEST = """
from tests.conftest import pytest_terminal_summary
from tests import shared_data

shared_data.SHARED = shared_data.SHARED / "absent"
"""
TESTS = """
import pytest
from tests.shared_data import golden_file, shared

def test_here():
    assert golden_file("faithfulness").exists()

@pytest.mark.parametrize("name", ["a", "b"])
def test_elsewhere(name):
    golden_file(name)

def test_data():
    shared("data/set.csv")

@pytest.mark.skip(reason="another reason")
def test_other():
    pass
"""


def test_what_was_not_checked_is_counted_in_one_line(tmp_path: Path) -> None:
    for name, text in (("conftest.py", CONFTEST), ("test_them.py", TESTS), ("pytest.ini", "[pytest]\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = run_pytest(tmp_path, PYTHONPATH=f"{REPOSITORY}:{REPOSITORY / 'harness'}")
    assert done.counts == {"passed": 1, "skipped": 4}, done.output
    assert done.output.count("3 tests were not checked against reference values: ../shared is absent") == 1
    checked = run_pytest(tmp_path, "-k", "test_here or test_other", PYTHONPATH=f"{REPOSITORY}:{REPOSITORY / 'harness'}")
    assert "not checked" not in checked.output
