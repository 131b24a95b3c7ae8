"""Threads and passive waiting: set before torch comes, never over what the user set; and what -n auto means."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from lm_audit.plugin.cluster.cluster import passed_environment
from lm_audit.plugin.cluster.node.actor import session_environment
from lm_audit.plugin.cluster.orders import Order
from lm_audit.plugin.parallel.threads import cpu_quota, thread_settings, usable_cores
from lm_audit.plugin.parallel.workers import GIB, Resources, weights_bytes, worker_count
from lm_audit.shared.free_memory import available_memory
from tests.plugin.toy_run import run_pytest, write_project

SOURCE = """
import os, sys
from pathlib import Path
import pytest

EARLY = "torch" in sys.modules

@pytest.mark.parametrize("index", range(2))
def test_settings(index, evidence):
    assert not EARLY
    found = [os.environ.get(name) for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY")]
    with Path(__file__).with_name("settings.txt").open("a") as file:
        file.write(" ".join(map(str, found)) + "\\n")
"""


@pytest.mark.parametrize(
    ("workers", "cores", "threads"), [(1, 8, "8"), (2, 8, "4"), (3, 8, "2"), (9, 8, "1"), (0, 2, "2")]
)
def test_cores_are_divided_among_workers(workers: int, cores: int, threads: str) -> None:
    assert thread_settings({}, workers, cores) == {"OMP_NUM_THREADS": threads, "OMP_WAIT_POLICY": "PASSIVE"}


def test_what_the_user_set_stands() -> None:
    assert thread_settings({"OMP_NUM_THREADS": "7"}, 2, 8) == {"OMP_WAIT_POLICY": "PASSIVE"}
    assert thread_settings({"OMP_NUM_THREADS": "7", "OMP_WAIT_POLICY": "ACTIVE"}, 2, 8) == {}


def test_a_node_computes_with_the_threads_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray gives a worker as many threads as CPUs, a node's administrator others: nodes would differ."""
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    order = Order("ray0", "run", (), "/", ".", None, {}, {}, environment=passed_environment("2"))
    node = {"OMP_NUM_THREADS": "16", "MKL_NUM_THREADS": "8", "OPENBLAS_NUM_THREADS": "8", "HOME": "/root"}
    found = session_environment(node, order)
    assert (found["OMP_NUM_THREADS"], found["MKL_NUM_THREADS"], found["HOME"]) == ("2", "3", "/root")
    assert "OPENBLAS_NUM_THREADS" not in found


@pytest.mark.parametrize(
    ("content", "quota"), [("max 100000", math.inf), ("150000 100000", 1.5), ("", math.inf), ("5 0", math.inf)]
)
def test_container_quota(tmp_path: Path, content: str, quota: float) -> None:
    (tmp_path / "cpu.max").write_text(content, encoding="ascii")
    assert cpu_quota(tmp_path / "cpu.max") == quota
    assert cpu_quota(tmp_path / "absent") == math.inf


@pytest.mark.parametrize(
    ("arguments", "user", "expected"),
    [
        (("-n", "2"), {}, (str(max(1, usable_cores() // 2)), "PASSIVE")),
        pytest.param(
            ("-n", "0"),
            {"OMP_NUM_THREADS": "5", "OMP_WAIT_POLICY": "active"},
            ("5", "active"),
            marks=pytest.mark.slow,
        ),
        pytest.param(("-n", "0"), {}, (str(usable_cores()), "PASSIVE"), marks=pytest.mark.slow),
        pytest.param(
            ("-n", "2"),
            {"OMP_NUM_THREADS": "5", "OMP_WAIT_POLICY": "active"},
            ("5", "active"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_settings_reach_the_cases(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, str],
    user: dict[str, str],
    expected: tuple[str, str],
) -> None:
    folder = write_project(tmp_path, test_toy=SOURCE)
    script = folder / "call.py"
    # toy_run sets both variables for speed: take them away again, as a user's shell has them not.
    script.write_text(
        "import os, sys\n"
        "for name in ('OMP_NUM_THREADS', 'OMP_WAIT_POLICY'):\n    os.environ.pop(name, None)\n"
        f"os.environ.update({user!r})\n"
        f"os.execv(sys.executable, [sys.executable, '-m', 'pytest', '-p', 'xdist', *{arguments!r}])\n",
        encoding="utf-8",
    )
    import subprocess
    import sys

    from tests.plugin.toy_run import environment

    done = subprocess.run(
        [sys.executable, str(script)], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (folder / "reports").glob("*/run.json")
    assert json.loads(run.read_text(encoding="utf-8"))["threads"] == expected[0]
    lines = (folder / "settings.txt").read_text(encoding="utf-8").splitlines()
    assert lines == [" ".join(expected)] * 2


@pytest.mark.parametrize(
    ("resources", "workers"),
    [
        (Resources(cores=8), 8),
        (Resources(cores=8, memory_bytes=4 * GIB), 4),
        (Resources(cores=8, memory_bytes=4 * GIB, weights_bytes=GIB), 3),
        (Resources(cores=8, memory_bytes=4 * GIB, weights_bytes=14 * GIB), 1),
        (Resources(cores=32, memory_bytes=900 * GIB, gpus=4), 4),
        (Resources(cores=2, gpus=8), 2),
    ],
)
def test_auto_is_bounded_by_cores_memory_models_and_gpus(resources: Resources, workers: int) -> None:
    assert worker_count(resources) == workers


def test_size_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x" * 300)
    (tmp_path / "tokenizer.json").write_bytes(b"x" * 50)
    assert weights_bytes(str(tmp_path)) == 300
    assert weights_bytes(str(tmp_path / "model.safetensors")) == 300
    assert weights_bytes("tiny:3") > 0
    snapshot = tmp_path / "hub" / "models--org--name" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(b"x" * 70)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert weights_bytes("org/name@abc") == 70
    assert weights_bytes("org/other") == 0


def test_memory_of_this_machine() -> None:
    available = available_memory()
    if not Path("/proc/meminfo").exists():
        pytest.skip("no /proc/meminfo on this system")
    assert available is not None and 0 < available < 2 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


MACHINE = """
from lm_audit.plugin.parallel import workers

workers.usable_cores, workers.available_memory = (lambda: 3), (lambda: 64 << 30)
"""
"""A machine of three cores and enough memory, whatever this one has to spare."""


ANY = "import pytest\n\n@pytest.mark.parametrize('index', range(2))\ndef test_any(index, evidence): pass\n"


def test_n_auto(tmp_path: Path) -> None:
    folder = write_project(tmp_path, test_toy=ANY)
    with (folder / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(MACHINE)
    outcome = run_pytest(folder, "-n", "auto", "--device", "cpu", "--model", "tiny")
    assert outcome.code == 0, outcome.output
    assert "3 workers" in outcome.output


def test_n_auto_leaves_the_last_word_to_the_user(tmp_path: Path) -> None:
    outcome = run_pytest(write_project(tmp_path, test_toy=ANY), "-n", "auto", PYTEST_XDIST_AUTO_NUM_WORKERS="3")
    assert "3 workers" in outcome.output
