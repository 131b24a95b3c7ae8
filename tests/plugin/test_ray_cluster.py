"""Runs on a real Ray cluster of two local nodes, started once: a node lost half-way, an actor killed, no room."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.acknowledging_audit import evidence_of, only_run
from tests.plugin.test_ray_controller import SOURCE
from tests.plugin.toy_run import Outcome, command, environment, run_pytest, write_project

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray", reason="ray is not installed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without a CPU; each test adds the nodes that it needs."""
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 << 20})
    try:
        yield made
    finally:
        made.shutdown()


@pytest.fixture
def nodes(cluster) -> Iterator[list[Any]]:
    """Two nodes of one worker each, the second of which a test may lose."""
    made = [cluster.add_node(num_cpus=1, object_store_memory=100 << 20) for _ in range(2)]
    cluster.wait_for_nodes()
    yield made
    for node in made:
        if node in cluster.worker_nodes:
            cluster.remove_node(node, allow_graceful=False)


def project_in(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "words.txt").write_text("one two three", encoding="utf-8")
    return write_project(folder, test_toy=SOURCE)


def on_cluster(cluster: Any, folder: Path, *arguments: str, **variables: str) -> Outcome:
    return run_pytest(folder, "--ray", cluster.address, *arguments, plugins=(), timeout=240, **variables)


def ended(folder: Path) -> int:
    """How many cases have ended, by what the controller has on its disk."""
    return sum(file.read_bytes().count(b'"kind":"case_end"') for file in folder.glob("reports/*/ledger/ray*.jsonl"))


def lose_a_node_once(count: int, process: subprocess.Popen[str], folder: Path, cluster: Any, node: Any) -> str:
    """Kill a node when so many cases have ended; the run's output."""
    deadline = time.monotonic() + 200
    while ended(folder) < count and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()[0]
    cluster.remove_node(node, allow_graceful=False)
    return process.communicate(timeout=240)[0]


def started(cluster: Any, folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    words = command("--ray", cluster.address, *arguments, plugins=())
    return subprocess.Popen(
        words, cwd=folder, env=environment(**variables), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_a_lost_node_costs_nothing_but_time(tmp_path, cluster, nodes) -> None:
    single = project_in(tmp_path / "single")
    assert run_pytest(single, plugins=()).counts == {"passed": 9}
    folder = project_in(tmp_path / "cluster")
    process = started(cluster, folder, LM_AUDIT_TOY_PAUSE="1")
    output = lose_a_node_once(2, process, folder, cluster, nodes[1])
    assert process.returncode == 0, output
    run = only_run(folder)
    assert run.finished and not run.missing and not run.damaged
    assert evidence_of(run) == evidence_of(only_run(single))
    lost = [case for case in run.cases if case.earlier]
    assert len(lost) <= 1, "only what was running is run again"


def test_an_actor_that_is_killed_costs_nothing_but_time(tmp_path, cluster, nodes) -> None:
    folder = project_in(tmp_path / "cluster")
    process = started(cluster, folder, LM_AUDIT_TOY_PAUSE="1")
    deadline = time.monotonic() + 60
    while (ended(folder) < 2 or not running(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(actor_of(running(folder)[0]), signal.SIGKILL)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    run = only_run(folder)
    assert run.finished and not run.missing and len(run.cases) == 8
    assert "it is tried once more" in output


def running(folder: Path) -> list[Path]:
    """The ledgers of workers that are within a case."""
    ledgers = folder.glob("reports/*/ledger/ray*.jsonl")
    return [file for file in ledgers if b'"kind":"case_end"' not in file.read_bytes().splitlines()[-1]]


def actor_of(ledger: Path) -> int:
    """The process id of an actor: the parent of the session that writes the ledger."""
    status = Path(f"/proc/{ledger.stem.rpartition('-')[2]}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:")))


def test_a_cluster_without_room_ends_the_run_with_a_message(tmp_path, cluster) -> None:
    folder = project_in(tmp_path / "cluster")
    began = time.monotonic()
    outcome = on_cluster(cluster, folder, "--ray-timeout", "5")
    assert outcome.code == 4
    assert "the cluster gave no worker within --ray-timeout 5 s. A worker needs 1 CPU" in outcome.output
    assert time.monotonic() - began < 60
