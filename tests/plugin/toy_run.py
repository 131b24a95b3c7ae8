"""Runs pytest with the plugin on a small project of its own, in another process: workers and kills are real."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.plugin.warm_start import WarmProcess, WarmStarter

REPOSITORY = Path(__file__).resolve().parents[2]
HARNESS = str(REPOSITORY / "harness")
READ_AT_IMPORT = ("HF_", "HOME", "LD_", "MKL_", "OMP_", "OPENAI_LOG", "PYTHON", "TORCH", "TRANSFORMERS_", "XDG_")
READ_BY_CALLS = ("PYTHONPATH",)
"""What a warm process takes up when it is forked, if nothing that may lie on another path was loaded before."""
TIMEOUT_S = 600.0
"""What only a call that hangs takes, on however busy a machine."""
CONFTEST = 'pytest_plugins = ("lm_audit.plugin", "lm_audit.plugin.short_options")\n'


@dataclass(frozen=True)
class Outcome:
    """How a call of pytest ended: exit code, output, and the outcome counts of its last line."""

    code: int
    output: str

    @property
    def counts(self) -> dict[str, int]:
        """``{"passed": 3, "failed": 1}`` of the summary line."""
        summary = next((line for line in reversed(self.output.splitlines()) if " in " in line and "=" in line), "")
        words = summary.strip("= ").split(" in ")[0].replace(",", "").split()
        return {word.rstrip("s"): int(count) for count, word in zip(words[::2], words[1::2], strict=False)}


def write_project(folder: Path, **modules: str) -> Path:
    """A project with the plugin and the given test modules (name=source)."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    return folder


def environment(**more: str) -> dict[str, str]:
    """The environment of a call: this repository importable, one thread, nothing of the pytest around it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
    # Compiling the package anew in every process of every call would take longer than most calls.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    kept |= {"PYTHONPATH": HARNESS, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    kept["CUDA_VISIBLE_DEVICES"] = ""  # Cases are named and run alike on every machine.
    # Other plugins that happen to be installed triple the time that a process takes to start.
    return kept | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | more


def command(*arguments: str, plugins: tuple[str, ...] = ("xdist",)) -> list[str]:
    """The command line of a call."""
    return [sys.executable, "-m", "pytest", *(word for plugin in plugins for word in ("-p", plugin)), *arguments]


def run_pytest(
    folder: Path, *arguments: str, timeout: float = TIMEOUT_S, plugins: tuple[str, ...] = ("xdist",), **variables: str
) -> Outcome:
    """Call pytest in ``folder`` and wait; ``variables`` go into its environment.

    In a process that has its libraries when it starts (``warm_start``), and so has each worker, unless a variable is
    one that libraries read while they are imported.
    """
    if any(name.startswith(READ_AT_IMPORT) and name not in READ_BY_CALLS for name in variables):
        return run_fresh(folder, *arguments, timeout=timeout, plugins=plugins, **variables)
    words = command(*arguments, plugins=plugins)[3:]
    ours = environment(**variables)["PYTHONPATH"].split(os.pathsep)[0] == HARNESS
    return Outcome(*warm_starter(package=ours).run(words, folder, environment(**variables), timeout))


def start_pytest(folder: Path, *arguments: str, **variables: str) -> WarmProcess:
    """``run_pytest`` in a process group of its own, which is not waited for; ``variables`` are read by calls alone."""
    assert not any(name.startswith(READ_AT_IMPORT) for name in variables), variables
    words = command(*arguments)[3:]
    return warm_starter(package=True).start(words, folder, environment(**variables))


@cache
def warm_starter(*, package: bool) -> WarmStarter:
    """One for all tests of this process; without the package for those that have another first on their path."""
    return WarmStarter(package=package)


def run_fresh(
    folder: Path, *arguments: str, timeout: float = TIMEOUT_S, plugins: tuple[str, ...] = ("xdist",), **variables: str
) -> Outcome:
    """``run_pytest`` as a user calls it, in a new interpreter: where a process's start is what the test is about."""
    words, variables = command(*arguments, plugins=plugins), environment(**variables)
    done = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, timeout=timeout, check=False
    )
    return Outcome(done.returncode, done.stdout + done.stderr)
