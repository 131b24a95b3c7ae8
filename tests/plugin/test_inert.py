"""An installed plugin changes nothing in a run without audit cases, and takes no option from anybody's conftest."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.errors import StoreError
from lm_audit.plugin.options.naming import _DECLARED
from lm_audit.runstore.layout import check_writable
from tests.plugin.toy_run import run_fresh, write_project

OTHERS = """
import os, signal, sys
import pytest

@pytest.mark.parametrize("index", range(6))
def test_nothing_is_set(index):
    assert not [name for name in os.environ if name in ("OMP_WAIT_POLICY", "CUDA_VISIBLE_DEVICES")]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert "lm_audit.plugin.record.attempts" not in sys.modules
    assert "lm_audit.runstore.ledger" not in sys.modules
"""
AUDIT = "def test_it(evidence): evidence.note('measured')\n"
INSTALLED = ("xdist", "lm_audit.plugin")


def project(folder: Path, conftest: str = "", **modules: str) -> Path:
    write_project(folder, **modules)
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    return folder


def unset(*names: str) -> str:
    return f"import os\nfor name in {names!r}:\n    os.environ.pop(name, None)\n"


@pytest.mark.parametrize("arguments", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
def test_other_tests_run_as_if_it_were_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, str]
) -> None:
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # What measures a process handles its signals.
    folder = project(tmp_path, unset("OMP_WAIT_POLICY", "CUDA_VISIBLE_DEVICES"), test_others=OTHERS)
    outcome = run_fresh(folder, "-v", "-p", "no:cacheprovider", *arguments, plugins=INSTALLED)
    assert outcome.code == 0 and outcome.counts == {"passed": 6}, outcome.output
    assert ("LoadScheduling" in outcome.output) == bool(arguments)
    assert {path.name for path in folder.iterdir()} <= {"conftest.py", "pytest.ini", "test_others.py", "__pycache__"}


def test_an_audit_case_among_others_wakes_it(tmp_path: Path) -> None:
    folder = project(tmp_path, test_audit=AUDIT, test_others="def test_other(): pass\n")
    (folder / "reports").mkdir()
    outcome = run_fresh(folder, "-v", "-n", "2", plugins=INSTALLED)
    assert outcome.code == 0 and outcome.counts == {"passed": 2}, outcome.output
    assert "AffinityScheduling" in outcome.output
    kept = (folder / "reports" / "durations.json").read_text(encoding="utf-8")
    assert "test_audit.py::test_it" in kept and "test_other" not in kept


def test_a_conftest_may_have_any_of_its_options(tmp_path: Path) -> None:
    run_fresh(project(tmp_path), "--version", plugins=INSTALLED)
    flags = sorted(_DECLARED)
    assert {"--model", "--device", "--seed", "--data", "--size", "--gates"} <= set(flags)
    conftest = "def pytest_addoption(parser):\n" + "".join(
        f"    parser.addoption({flag!r}, dest={f'own{index}'!r})\n" for index, flag in enumerate(flags)
    )
    test = "".join(
        f"def test_{index}(request):\n    assert request.config.getoption('own{index}') == 'value'\n"
        for index in range(len(flags))
    )
    folder = project(tmp_path, conftest, test_own=test)
    outcome = run_fresh(folder, *(f"{flag}=value" for flag in flags), plugins=INSTALLED)
    assert outcome.counts == {"passed": len(flags)}, outcome.output


def test_long_names_are_always_there_and_short_ones_on_request(tmp_path: Path) -> None:
    folder = project(tmp_path, test_audit=AUDIT)
    assert run_fresh(folder, "--lm-audit-reports", "elsewhere", plugins=INSTALLED).code == 0
    assert list((folder / "elsewhere").glob("*/ledger"))
    assert run_fresh(folder, "--reports", "third", plugins=INSTALLED).code == 4
    short = (*INSTALLED, "lm_audit.plugin.short_options")
    assert run_fresh(folder, "--reports", "third", plugins=short).code == 0
    assert list((folder / "third").glob("*/ledger"))


def test_a_read_only_file_system_is_an_error_of_the_store_alone() -> None:
    with pytest.raises(StoreError, match="cannot write reports"):
        check_writable(Path("/proc/lm-audit"))
