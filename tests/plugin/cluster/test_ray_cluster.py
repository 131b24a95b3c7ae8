"""Runs on a real Ray cluster of local nodes, started once: a node lost half-way, an actor killed, GPUs, no room."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import pytest

from lm_audit.models.files.disk_cache import cache_dir
from tests.plugin.acknowledging_audit import evidence_of, only_run, rows_of
from tests.plugin.cluster.holding import AFTER, FOLDER, HELD, RELEASED
from tests.plugin.cluster.test_ray_controller import SOURCE
from tests.plugin.toy_run import REPOSITORY, Outcome, command, environment, run_fresh, write_project

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray", reason="ray is not installed")

HANG_S = 1800
"""Seconds that only a hang takes, on however busy a machine."""
STORE = 100 << 20
BEGUN, ENDED = b'"kind":"case_start"', b'"kind":"case_end"'


class ProcessInfo(Protocol):
    """What Ray keeps of one process of a node."""

    @property
    def process(self) -> subprocess.Popen[bytes]: ...


class LocalNode(Protocol):
    """A node of a cluster on this machine."""

    @property
    def all_processes(self) -> Mapping[str, Sequence[ProcessInfo]]: ...


class LocalCluster(Protocol):
    """What is asked of Ray's cluster of local nodes, whose own types name little of it."""

    @property
    def address(self) -> str: ...
    @property
    def worker_nodes(self) -> Collection[LocalNode]: ...
    def add_node(self, **resources: int) -> LocalNode: ...
    def remove_node(self, node: LocalNode, *, allow_graceful: bool) -> None: ...
    def wait_for_nodes(self) -> None: ...
    def shutdown(self) -> None: ...


class AddNode(Protocol):
    """Adds a node of one CPU, or of the resources named."""

    def __call__(self, **resources: int) -> LocalNode: ...


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the nodes' processes keep temporary files; Ray's own sockets need a short path.

    Ray gives its workers a low priority, at which they stand still on a busy machine.
    """
    folder = tmp_path_factory.mktemp("temporary")
    before = dict(os.environ)
    os.environ.update(TMPDIR=str(folder), RAY_TMPDIR="/tmp", RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    os.environ["PYTHONPATH"] = str(REPOSITORY)  # Sessions on the nodes have a plugin of these tests.
    yield folder
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def cluster(temporary: Path) -> Iterator[LocalCluster]:
    """A head without a CPU; each test adds the nodes that it needs."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": STORE}
    # Ray annotates part of its methods, and names a class of its own for a node.
    made = cast(LocalCluster, Cluster(initialize_head=True, head_node_args=head))
    try:
        yield made
    finally:
        made.shutdown()


@pytest.fixture
def adds(cluster: LocalCluster) -> Iterator[AddNode]:
    """Adds nodes that are gone after the test."""
    made: list[LocalNode] = []

    def add(**resources: int) -> LocalNode:
        made.append(cluster.add_node(**{"num_cpus": 1, "object_store_memory": STORE} | resources))
        return made[-1]

    yield add
    for node in made:
        if node in cluster.worker_nodes:
            cluster.remove_node(node, allow_graceful=False)


@pytest.fixture
def nodes(cluster: LocalCluster, adds: AddNode) -> list[LocalNode]:
    """Two nodes of one worker each, of which a test may lose one."""
    made = [adds() for _ in range(2)]
    cluster.wait_for_nodes()
    return made


def project_in(folder: Path, source: str = SOURCE) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "words.txt").write_text("one two three", encoding="utf-8")
    return write_project(folder, test_toy=source)


def on_cluster(cluster: LocalCluster, folder: Path, *arguments: str, **variables: str) -> Outcome:
    return run_fresh(folder, "--ray", cluster.address, *arguments, plugins=(), timeout=HANG_S, **variables)


def running(reports: Path, session: int) -> bool:
    """Whether the controller has on its disk that a session is within a case."""
    ledgers = reports.glob(f"*/ledger/ray*-{session}.jsonl")
    return any(text.count(BEGUN) > text.count(ENDED) for text in (ledger.read_bytes() for ledger in ledgers))


def status(process: int) -> dict[str, str]:
    """What the system says of a process, nothing where it has gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def wait_until_gone(process: int) -> None:
    deadline = time.monotonic() + HANG_S
    while status(process).get("State", "Z").startswith(("R", "S", "D")) and time.monotonic() < deadline:
        time.sleep(0.02)


def parent(process: int) -> int:
    return int(status(process)["PPid"])


def node_of(actor: int, nodes: list[LocalNode]) -> LocalNode:
    """The node on which an actor is: that of the raylet which started it."""
    raylet = parent(actor)
    return next(node for node in nodes if raylet in [info.process.pid for info in node.all_processes["raylet"]])


def held(process: subprocess.Popen[str], reports: Path, hold: Path) -> int:
    """The process of a session that is held within a case, of which the controller knows."""
    deadline = time.monotonic() + HANG_S
    while process.poll() is None and time.monotonic() < deadline:
        for name in hold.glob(f"{HELD}*"):
            session = int(name.name.removeprefix(HELD))
            if running(reports, session):
                return session
        time.sleep(0.02)
    process.kill()
    raise AssertionError(process.communicate()[0])


def lose_a_node(
    process: subprocess.Popen[str], reports: Path, hold: Path, cluster: LocalCluster, nodes: list[LocalNode]
) -> str:
    """Kill a node that runs a case, and let the others go on when its processes are gone; the run's output."""
    session = held(process, reports, hold)
    cluster.remove_node(node_of(parent(session), nodes), allow_graceful=False)
    wait_until_gone(session)
    (hold / RELEASED).touch()
    return process.communicate(timeout=HANG_S)[0]


def started(
    cluster: LocalCluster, folder: Path, *arguments: str, hold: Path | None = None, after: int = 2, **variables: str
) -> subprocess.Popen[str]:
    """A run whose cases are held, where a folder for it is given, when so many have begun."""
    if hold is not None:
        hold.mkdir()
        plugin = "tests.plugin.cluster.holding"
        variables |= {FOLDER: str(hold), AFTER: str(after), "PYTEST_PLUGINS": plugin}
        variables["PYTHONPATH"] = f"{REPOSITORY / 'harness'}:{REPOSITORY}"
    words = command("--ray", cluster.address, *arguments, plugins=())
    return subprocess.Popen(
        words, cwd=folder, env=environment(**variables), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_a_lost_node_costs_nothing_but_time(tmp_path: Path, cluster: LocalCluster, nodes: list[LocalNode]) -> None:
    single = project_in(tmp_path / "single")
    assert run_fresh(single, plugins=()).counts == {"passed": 9}
    folder = project_in(tmp_path / "cluster")
    process = started(cluster, folder, hold=tmp_path / "hold")
    output = lose_a_node(process, folder / "reports", tmp_path / "hold", cluster, nodes)
    assert process.returncode == 0, output
    run = only_run(folder)
    assert run.finished and not run.missing and not run.damaged
    assert evidence_of(run) == evidence_of(only_run(single))
    assert len([case for case in run.cases if case.earlier]) == 1, "only what was running is run again"


@pytest.mark.parametrize("audit", ["bias", "faithfulness", "leakage", "needle", "privacy"])
def test_the_suite_measures_the_same_though_a_node_is_lost_half_way(
    tmp_path: Path, cluster: LocalCluster, nodes: list[LocalNode], audit: str
) -> None:
    """The smoke suite in pieces, each measured anew on both sides: nothing is read from the other's cache."""

    def words(name: str) -> tuple[str, ...]:
        (tmp_path / name).mkdir()
        cache = tmp_path / f"cache-{name}"
        if (cache_dir() / "tiny").is_dir():
            shutil.copytree(cache_dir() / "tiny", cache / "tiny")
        reports = str(tmp_path / name / "reports")
        return (
            "evals",
            "--size",
            "smoke",
            "--model",
            "tiny",
            "-m",
            audit,
            "--reports",
            reports,
            "-p",
            "benchmark",
            "-p",
            "no:cacheprovider",
        )

    single = run_fresh(
        REPOSITORY, *words("single"), plugins=(), timeout=HANG_S, LM_AUDIT_CACHE=str(tmp_path / "cache-single")
    )
    undisturbed = only_run(tmp_path / "single")
    assert undisturbed.finished and len(undisturbed.cases) > 5, single.output
    half = sum(case.last.outcome != "skipped" for case in undisturbed.cases) // 2
    own_cache, hold = str(tmp_path / "cache-cluster"), tmp_path / "hold"
    process = started(cluster, REPOSITORY, *words("cluster"), hold=hold, after=half, LM_AUDIT_CACHE=own_cache)
    output = lose_a_node(process, tmp_path / "cluster" / "reports", hold, cluster, nodes)
    assert process.returncode == single.code, output
    run = only_run(tmp_path / "cluster")
    assert run.finished and not run.missing and not run.damaged
    assert evidence_of(run) == evidence_of(undisturbed)
    assert len([case for case in run.cases if case.earlier]) == 1, "only what was running is run again"


def test_an_actor_that_is_killed_costs_nothing_but_time(
    tmp_path: Path, cluster: LocalCluster, nodes: list[LocalNode]
) -> None:
    folder = project_in(tmp_path / "cluster")
    process = started(cluster, folder, hold=tmp_path / "hold")
    session = held(process, folder / "reports", tmp_path / "hold")
    os.kill(parent(session), signal.SIGKILL)
    wait_until_gone(session)
    (tmp_path / "hold" / RELEASED).touch()
    output = process.communicate(timeout=HANG_S)[0]
    assert process.returncode == 0, output
    run = only_run(folder)
    assert run.finished and not run.missing and len(run.cases) == 8
    assert "it is tried once more" in output


GPUS = """
import os, time
from pathlib import Path

import pytest

from lm_audit.plugin import Case, cases

DEADLINE = time.monotonic() + 600


@pytest.fixture
def language_model():
    return None


@pytest.mark.bias
@cases([Case("first", {}), Case("second", {})])
def test_here(case, language_model, evidence):
    gpu, meeting, met = os.environ.get("CUDA_VISIBLE_DEVICES") or "", Path(os.environ["LM_AUDIT_TOY_MEETING"]), False
    if gpu:
        (meeting / str(os.getpid())).touch()
        while not (met := len(list(meeting.iterdir())) > 1) and time.monotonic() < DEADLINE:
            time.sleep(0.02)
    evidence.rows([{"item": "0", "gpu": gpu, "met": met}])
"""


def test_workers_share_a_gpu_and_cases_on_the_cpu_take_none(
    tmp_path: Path, cluster: LocalCluster, adds: AddNode
) -> None:
    import json

    adds(num_cpus=3, num_gpus=1)
    cluster.wait_for_nodes()
    folder = project_in(tmp_path / "project", GPUS)
    words = ("--model", "tiny", "--model", "tiny:1", "--device", "cpu", "--device", "cuda", "--gpus-per-worker", "0.5")
    (tmp_path / "meeting").mkdir()
    outcome = on_cluster(cluster, folder, *words, LM_AUDIT_TOY_MEETING=str(tmp_path / "meeting"))
    assert outcome.code == 0, outcome.output
    assert outcome.counts == {"passed": 8}
    run = only_run(folder)
    rows = {case.case_id: json.loads(rows_of(run, case.last.row_files)[0]) for case in run.cases}
    workers = {case.case_id: case.last.worker for case in run.cases}
    cuda = [case for case in rows if "@cuda" in case]
    assert {rows[case]["gpu"] for case in cuda} == {"0"} and len(cuda) == 4
    assert {rows[case]["gpu"] for case in rows if case not in cuda} == {""}
    assert not {workers[case] for case in cuda} & {workers[case] for case in rows if case not in cuda}
    one, other = ([case for case in cuda if f"[{model}@" in case] for model in ("tiny", "tiny:1"))
    assert {workers[case] for case in one}.isdisjoint(workers[case] for case in other)
    assert all(rows[case]["met"] for case in cuda), "two workers of half a GPU work at the same time"


def test_a_node_that_comes_late_ends_the_waiting(
    tmp_path: Path, cluster: LocalCluster, adds: AddNode, temporary: Path
) -> None:
    folder = project_in(tmp_path / "cluster")
    process = started(cluster, folder, "--ray", "auto", "--ray-timeout", str(HANG_S), RAY_ADDRESS=cluster.address)
    time.sleep(8)
    assert process.poll() is None
    adds()
    output = process.communicate(timeout=HANG_S)[0]
    assert process.returncode == 0, output
    assert len(only_run(folder).cases) == 8
    assert not list(temporary.glob("lm-audit-*")), "what killed actors left before is gone, and so is this run's"


def test_a_cluster_without_room_ends_the_run_with_a_message(tmp_path: Path, cluster: LocalCluster) -> None:
    folder = project_in(tmp_path / "cluster")
    outcome = on_cluster(cluster, folder, "--ray-timeout", "5")
    assert outcome.code == 4
    assert "the cluster gave no worker within --ray-timeout 5 s. A worker needs 1 CPU" in outcome.output


HOLD = """
import sys
import ray

ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
holder = ray.remote(num_cpus=1)(type("Holder", (), {"here": lambda self: 1})).remote()
ray.get(holder.here.remote())
print("held", flush=True)
sys.stdin.read()
"""


def test_a_cluster_that_others_have_taken_is_not_waited_for_for_ever(
    tmp_path: Path, cluster: LocalCluster, adds: AddNode
) -> None:
    adds()
    cluster.wait_for_nodes()
    words = [sys.executable, "-c", HOLD, cluster.address]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        outcome = on_cluster(cluster, project_in(tmp_path / "cluster"), "--ray-timeout", "6")
        other.communicate("")
    assert outcome.code == 4
    assert "within --ray-timeout 6 s" in outcome.output and "free now: 0 CPU" in outcome.output
    assert "1 CPU, 0 GPU" in outcome.output.partition("in all: ")[2]


def test_a_cluster_of_another_ray_is_told_with_both_versions(tmp_path: Path, cluster: LocalCluster) -> None:
    folder = project_in(tmp_path / "cluster")
    (folder / "old_ray.py").write_text("import ray\nray.__version__ = '2.0.1'\n", encoding="utf-8")
    outcome = on_cluster(cluster, folder, "-p", "old_ray", PYTHONPATH=f"{folder}:{REPOSITORY / 'harness'}")
    assert outcome.code == 4
    told = outcome.output.partition("no connection to a cluster: ")[2]
    assert f"Ray: {ray.__version__}" in told and "Ray: 2.0.1" in told


def test_a_cluster_of_its_own_runs_the_cases_and_ends_with_them(tmp_path: Path, temporary: Path) -> None:
    folder = project_in(tmp_path / "project")
    outcome = run_fresh(
        folder, "--ray", "local", "--ray-workers", "1", plugins=(), timeout=HANG_S, RAY_AUTH_MODE="disabled"
    )
    assert outcome.code == 0, outcome.output
    assert outcome.counts == {"passed": 9}
    assert len({case.last.worker for case in only_run(folder).cases}) == 1
    assert not list(temporary.glob("lm-audit-*"))
