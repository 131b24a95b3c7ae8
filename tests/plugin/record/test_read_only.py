"""A checkout that cannot be written: other tests run as ever, and audits say what to do before they run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.toy_audit import AUDIT
from tests.plugin.toy_run import Outcome, command, environment, write_project


@pytest.fixture
def checkout() -> Iterator[Path]:
    """A project with plain tests and audits in a folder that nobody but root may write."""
    folder = Path(tempfile.mkdtemp(prefix="lm-audit-read-only-"))
    write_project(folder, test_plain="def test_x(): pass\n", test_toy=AUDIT)
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$1" && shift && exec "$@"'
"""Permissions do not bind root; a file system that is mounted read-only does."""


def call(folder: Path, *arguments: str, **variables: str) -> Outcome:
    """Call pytest in a folder that cannot be written, with no home and no cache."""
    known = environment(HOME="/dev/null/home", XDG_CACHE_HOME="/dev/null/cache") | variables
    words = command(*arguments)
    if os.geteuid() == 0:
        words = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", str(folder), *words]
    done = subprocess.run(words, cwd=folder, env=known, capture_output=True, text=True, check=False)
    return Outcome(done.returncode, done.stdout + done.stderr)


@pytest.fixture(autouse=True)
def bound(checkout: Path) -> None:
    """Root needs a mount of its own, which some containers do not allow."""
    if os.geteuid() == 0:
        tried = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", str(checkout), "true"]
        if shutil.which("unshare") is None or subprocess.run(tried, capture_output=True, check=False).returncode:
            pytest.skip("root may mount nothing read-only here, and permissions do not bind it")


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["serial", "workers"])
def test_other_tests_run(checkout: Path, workers: tuple[str, ...]) -> None:
    done = call(checkout, "test_plain.py", *workers)
    assert done.code == 0 and done.counts["passed"] == 1, done.output
    assert not (checkout / "reports").exists()


def test_collecting_audits_needs_no_folder(checkout: Path) -> None:
    done = call(checkout, "--collect-only", "-q")
    assert done.code == 0 and "test_gap[a]" in done.output, done.output


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["serial", "workers"])
def test_audits_say_what_to_do_and_run_with_a_folder(checkout: Path, workers: tuple[str, ...]) -> None:
    done = call(checkout, "test_toy.py", *workers)
    assert done.code == 4 and "passed" not in done.output and "error" not in done.counts, done.output
    assert "cannot write reports under" in done.output and "name a writable folder with --reports DIR" in done.output
    assert "Traceback" not in done.output
    with tempfile.TemporaryDirectory() as writable:
        done = call(checkout, "test_toy.py", "--reports", f"{writable}/new", *workers)
        assert done.code == 0 and done.counts["passed"] == 3, done.output
        assert list(Path(writable).glob("new/*/index.html"))


def test_without_a_home(checkout: Path) -> None:
    known = {name: value for name, value in environment().items() if name not in ("HOME", "XDG_CACHE_HOME")}
    words = command("test_plain.py")
    done = subprocess.run(words, cwd=checkout, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
