"""The wheel, installed into an environment of its own outside of any checkout, runs the audits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from tests.plugin.toy_run import run_pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = (
    *("harness", "evals", "fixtures", "allurerc.json", "conftest.py", "pytest.ini"),
    *("pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", "README.md"),
)
"""What a distribution is made of, and what a checkout needs to run the audits; taken as it is, committed or not."""


def call(*words: str | Path, cwd: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and with the packages of this one, but not with its checkout."""
    folder = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    build = folder / "source"
    build.mkdir()
    for name in SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, build / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, build / name)
    call(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, build, cwd=folder)
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    site = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    # A plain path adds that folder only: the .pth file in it by which a checkout is installed is not followed.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    wheel = next(folder.glob("*.whl"))
    call(*pip, "install", "--no-deps", "--no-compile", "--target", site, wheel, cwd=folder)
    (folder / "elsewhere").mkdir()
    return folder


def ids(output: str) -> list[str]:
    return sorted(re.findall(r"^evals/test_\w+\.py::\S+", output, re.MULTILINE))


def test_case_ids_are_those_of_a_checkout(environment: Path) -> None:
    arguments = ("--collect-only", "-q", "--model", "tiny", "-p", "no:cacheprovider")
    python = environment / "env" / "bin" / "python"
    installed = call(python, "-m", "pytest", "--pyargs", "lm_audit.evals", *arguments, cwd=environment / "elsewhere")
    checkout = run_pytest(environment / "source", "evals", *arguments, plugins=())
    assert checkout.code == 0, checkout.output
    assert ids(installed) == ids(checkout.output) and len(ids(installed)) > 50


def test_all_that_audits_read_is_installed(environment: Path) -> None:
    """Every file of the package, the cases and their data, as it lies in the checkout."""
    (installed,) = (environment / "env").rglob("lm_audit/__init__.py")
    source, missing, seen = environment / "source", [], 0
    for name, place in (("harness/lm_audit", "."), ("evals", "evals"), ("fixtures", "fixtures")):
        for path in sorted(file for file in (source / name).rglob("*") if file.is_file() and file.suffix != ".pyc"):
            there = installed.parent / place / path.relative_to(source / name)
            seen += path.suffix != ".py"
            if not there.is_file() or there.read_bytes() != path.read_bytes():
                missing.append(str(path.relative_to(source)))
    assert seen > 20 and not missing


@pytest.mark.slow
def test_the_bias_audit_runs_where_no_checkout_is(environment: Path, tmp_path: Path) -> None:
    """That its cases are collected there, and what they read, is held above and below."""
    elsewhere = tmp_path
    command = environment / "env" / "bin" / "python"
    where = call(command, "-c", "import lm_audit; print(lm_audit.__file__)", cwd=elsewhere).strip()
    assert Path(where).is_relative_to(environment / "env")
    words = ("-m", "bias", "--model", "tiny", "--limit", "8", "-q", "-p", "no:cacheprovider")
    call(command, "-m", "lm_audit.cli", "run", *words, cwd=elsewhere, OMP_NUM_THREADS="1")
    run = next((elsewhere / "reports").glob("*/ledger")).parent
    page = (run / "index.html").read_text(encoding="utf-8")
    assert "bias.max_min_disparity" in page
    assert list((environment / "env").rglob("lm_audit/report/allurerc.json"))
    assert list((environment / "env").rglob("licenses/LICENSE"))


@pytest.fixture(scope="module")
def source_distribution(environment: Path) -> Path:
    """The sdist, made from a copy as the wheel is."""
    code = "import setuptools.build_meta as backend, sys; print(backend.build_sdist(sys.argv[1]))"
    name = call(sys.executable, "-c", code, environment, cwd=environment / "source").split()[-1]
    return environment / name


def test_the_sdist_builds_the_same_wheel(environment: Path, source_distribution: Path) -> None:
    unpacked, again = environment / "unpacked", environment / "again"
    with tarfile.open(source_distribution) as archive:
        archive.extractall(unpacked, filter="data")
    (folder,) = unpacked.iterdir()
    assert (folder / "LICENSE").is_file() and (folder / "evals" / "test_bias.py").is_file()
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    call(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", again, folder, cwd=environment)
    names = []
    for wheel in (next(environment.glob("*.whl")), next(again.glob("*.whl"))):
        with zipfile.ZipFile(wheel) as archive:
            names.append(sorted(archive.namelist()))
    assert names[0] == names[1]


def test_wheel_and_sdist_say_the_same_of_themselves(environment: Path, source_distribution: Path) -> None:
    with zipfile.ZipFile(next(environment.glob("*.whl"))) as wheel:
        (place,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        in_wheel = wheel.read(place).decode()
        entries = wheel.read(place.replace("METADATA", "entry_points.txt")).decode()
    with tarfile.open(source_distribution) as archive:
        (place,) = (name for name in archive.getnames() if name.count("/") == 1 and name.endswith("/PKG-INFO"))
        told = archive.extractfile(place)
        assert told is not None
        in_source = told.read().decode()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for text in (in_wheel, in_source):
        found = message_from_string(text)
        assert (found["Name"], found["Version"]) == (project["name"], project["version"])
        assert (found["License-Expression"], found["License-File"]) == ("Apache-2.0", "LICENSE")
        assert found["Requires-Python"] == ">=3.11" and found["Summary"] == project["description"]
        assert set(found.get_all("Provides-Extra", ())) == set(project["optional-dependencies"])
        assert "Author" not in found and "Home-page" not in found
    assert "lm-audit = lm_audit.cli:main" in entries and "lm_audit.plugin = lm_audit.plugin" in entries
