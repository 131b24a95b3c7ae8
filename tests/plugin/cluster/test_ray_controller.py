"""The controller of a run on a cluster, with real sessions on stand-in nodes: what is lost, what is tried again."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from pytest_rerunfailures import ClientStatusDB, ServerStatusDB

from lm_audit.plugin.compat import place_for_reruns
from tests.plugin.acknowledging_audit import Measured, evidence_of, only_run
from tests.plugin.toy_run import REPOSITORY, Outcome, command, environment, run_pytest, write_project

SOURCE = """
import contextlib, os, signal, time
from pathlib import Path

import numpy as np
import pytest

from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate

WORDS = Path(__file__).with_name("words.txt").read_text().split()


def hold(case, where):  # The first time that the named case comes to the named place it stays there.
    if f"{case.id}:{where}" == os.environ.get("LM_AUDIT_TOY_HOLD"):
        with contextlib.suppress(FileExistsError):
            Path(os.environ["LM_AUDIT_TOY_ONCE"]).touch(exist_ok=False)
            for _ in range(6000):
                if not Path(os.environ["STAND_IN_RELEASE"]).exists():
                    time.sleep(0.05)


@pytest.fixture
def held_at_its_end(case):
    yield
    hold(case, "teardown")


@pytest.mark.bias
@cases([Case(f"c{index}", {"index": index}) for index in range(8)])
def test_free(case, evidence, audit_seed, tmp_path, held_at_its_end):
    index = case.params["index"]
    values = np.random.default_rng([audit_seed, index]).normal(size=3)
    evidence.metric("bias.mean", Estimate(float(values.mean()), None, None, n=3, method="toy"))
    evidence.rows({"item": word, "value": float(value)} for word, value in zip(WORDS, values))
    (tmp_path / "file.txt").write_text(f"{index}")
    evidence.attach(tmp_path / "file.txt")
    hold(case, "call")
    if index > 4 and "LM_AUDIT_TOY_LATE" in os.environ:  # Nobody gets on before the late node has been given a case.
        late = Path(os.environ["LM_AUDIT_TOY_LATE"])
        if "LM_AUDIT_TOY_IS_LATE" in os.environ:
            late.touch()
        deadline = time.monotonic() + 120
        while not late.exists():
            assert time.monotonic() < deadline, "the late node was given nothing"
            time.sleep(0.05)
    time.sleep(float(os.environ.get("LM_AUDIT_TOY_PAUSE", "0")))
    if case.id in os.environ.get("LM_AUDIT_TOY_KILL", "").split():
        os.kill(os.getpid(), signal.SIGKILL)
    assert case.id not in os.environ.get("LM_AUDIT_TOY_FAIL", "").split()


def test_other():
    assert WORDS
"""

PLACES = {"PYTHONPATH": f"{REPOSITORY / 'harness'}:{REPOSITORY}"}
PLUGINS = ("tests.plugin.cluster.ray_stand_in",)


def project_in(folder: Path, source: str = SOURCE) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "words.txt").write_text("one two three", encoding="utf-8")
    return write_project(folder, test_toy=source)


def on_cluster(folder: Path, *arguments: str, more_plugins: tuple[str, ...] = (), **variables: str) -> Outcome:
    words = ("--ray", "auto", "-W", "ignore::pytest.PytestAssertRewriteWarning", *arguments)
    return run_pytest(folder, *words, plugins=(*PLUGINS, *more_plugins), timeout=600, **PLACES, **variables)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = project_in(tmp_path_factory.mktemp("single"))
    assert run_pytest(folder).counts == {"passed": 9}
    return evidence_of(only_run(folder))


@pytest.mark.parametrize(
    ("point", "hold", "again"),
    [
        pytest.param("started", "call", True, marks=pytest.mark.slow),
        pytest.param("call", "teardown", True, marks=pytest.mark.slow),
        pytest.param("late", "call", True, marks=pytest.mark.slow),
        ("end", "", False),
        pytest.param("teardown", "", False, marks=pytest.mark.slow),
        pytest.param("finished", "", False, marks=pytest.mark.slow),
        pytest.param("done", "", False, marks=pytest.mark.slow),
    ],
)
def test_a_lost_node_costs_nothing_but_time(
    tmp_path: Path, undisturbed: Measured, point: str, hold: str, again: bool
) -> None:
    """Whatever of a case has come when its node is lost: it runs again only where its end has not, and counts once."""
    folder = project_in(tmp_path / "project")
    files = {"LM_AUDIT_TOY_ONCE": str(tmp_path / "once"), "STAND_IN_RELEASE": str(tmp_path / "release")}
    outcome = on_cluster(folder, more_plugins=(), STAND_IN_LOSE=f"c3:{point}", LM_AUDIT_TOY_HOLD=f"c3:{hold}", **files)
    assert outcome.code == 0, outcome.output
    assert outcome.counts == {"passed": 9}
    run = only_run(folder)
    assert evidence_of(run) == undisturbed
    assert run.finished and not run.missing and not run.damaged
    attached = [run.folder / file.path for case in run.cases for file in case.last.artifacts]
    assert sorted(file.read_text(encoding="utf-8") for file in attached) == list("01234567")
    tried_twice = [case for case in run.cases if case.earlier]
    assert [case.case_id.rpartition("[")[2] for case in tried_twice] == ["c3]"] * again
    assert ("it is tried once more" in outcome.output) == again
    for case in tried_twice:
        assert case.earlier[0].outcome == "crashed" and "host-n" in case.earlier[0].message
        assert case.earlier[0].worker.partition("-")[0] != case.last.worker.partition("-")[0]


def test_a_poisoned_case_is_tried_twice_and_a_node_that_joins_late_gets_work(
    tmp_path: Path, undisturbed: Measured
) -> None:
    """Two workers of the one node die of the case, the third goes on; a fourth is on the node that comes after c4."""
    folder = project_in(tmp_path / "project")
    outcome = on_cluster(
        folder, "-v", STAND_IN_NODES="n1", STAND_IN_LATE="n2:4", STAND_IN_ENV_n2="LM_AUDIT_TOY_IS_LATE=1",
        LM_AUDIT_TOY_LATE=str(tmp_path / "late"), LM_AUDIT_TOY_KILL="c3",
    )  # fmt: skip
    assert outcome.code == 1
    assert outcome.counts == {"failed": 1, "passed": 8}
    run = only_run(folder)
    (crashed,) = [case for case in run.cases if case.outcome == "crashed"]
    assert crashed.case_id.endswith("[c3]") and len(crashed.earlier) == 1
    assert "signal 9" in crashed.last.message and "it crashed 2 workers" in crashed.last.message
    assert crashed.last.metrics and crashed.last.n_rows == 3, "what it had recorded before it died is kept"
    assert "worker 'ray0' on host-n1" in outcome.output and "worker 'ray1' on host-n1" in outcome.output
    rest = {case: found for case, found in evidence_of(run).items() if case != crashed.case_id}
    assert rest == {case: found for case, found in undisturbed.items() if case != crashed.case_id}
    workers = {
        case.case_id.rpartition("[")[2][:2]: [
            attempt.worker.partition("-")[0] for attempt in (*case.earlier, case.last)
        ]
        for case in run.cases
    }
    first = {"c0": ["ray0"], "c1": ["ray0"], "c2": ["ray0"], "c3": ["ray0", "ray1"], "c4": ["ray2"]}
    assert {case: names for case, names in workers.items() if case in first} == first
    assert {name for case in ("c5", "c6", "c7") for name in workers[case]} == {"ray2", "ray3"}


def test_resume_after_the_controller_was_killed(tmp_path: Path, undisturbed: Measured) -> None:
    folder = project_in(tmp_path / "project")
    words = command("--ray", "auto", plugins=PLUGINS)
    # The last case stays in its first attempt, so that the controller is killed before the end, however late.
    held = {"LM_AUDIT_TOY_HOLD": "c7:call", "LM_AUDIT_TOY_ONCE": str(tmp_path / "once")}
    process = subprocess.Popen(
        words, cwd=folder, env=environment(**PLACES, **held, STAND_IN_RELEASE=str(tmp_path / "release")),
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        ledgers = (folder / "reports").glob("*/ledger/ray*.jsonl")
        if sum(file.read_bytes().count(b'"kind":"case_end"') for file in ledgers) >= 3:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    before = only_run(folder)
    assert not before.finished and before.missing
    stood = [case.case_id for case in before.cases if case.outcome == "passed"]
    again = on_cluster(folder, "--resume", before.run_id)
    assert again.code == 0, again.output
    assert again.counts["resumed"] == len(stood) >= 3
    after = only_run(folder)
    assert evidence_of(after) == undisturbed
    assert after.finished and not after.missing


@pytest.mark.slow
def test_x_ends_the_run_like_in_one_process(tmp_path: Path) -> None:
    folder = project_in(tmp_path / "project")
    outcome = on_cluster(folder, "-x", LM_AUDIT_TOY_FAIL="c2", STAND_IN_NODES="n1")
    assert outcome.code == 1
    assert outcome.counts == {"failed": 1, "passed": 2}
    assert "stopping after 1 failures" in outcome.output
    assert on_cluster(folder, "--lf").counts == {"passed": 1}


def test_a_node_that_is_gone_unnoticed_does_not_end_the_waiting(tmp_path: Path) -> None:
    """Ray lists a lost node for half a minute, and every actor that is asked for there dies."""
    folder = project_in(tmp_path / "project")
    outcome = on_cluster(folder, STAND_IN_NODES="n1", STAND_IN_GHOST="n1:n2")
    assert outcome.code == 0, outcome.output
    assert outcome.counts == {"passed": 9}
    assert outcome.output.count("host-n1 (n1) is given no cases: the node is gone") == 1


def test_sessions_start_beside_the_plugins_that_expect_xdist(tmp_path: Path) -> None:
    folder = project_in(tmp_path / "project")
    outcome = on_cluster(folder, "-k", "c1 or c2", more_plugins=("xdist", "rerunfailures", "allure_pytest"))
    assert outcome.code == 0, outcome.output
    assert outcome.counts["passed"] == 2 and "failed" not in outcome.counts


def test_the_place_for_reruns_answers_as_soon_as_it_is_named(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """The plugin opens its port in a thread, which may come late."""
    started = threading.Event()
    serve = ServerStatusDB.run_server

    def serve_late(places: ServerStatusDB) -> None:
        started.wait(60)
        serve(places)

    monkeypatch.setattr(ServerStatusDB, "run_server", serve_late)
    with_plugin = pytestconfig.pluginmanager.hasplugin
    monkeypatch.setattr(
        pytestconfig.pluginmanager, "hasplugin", lambda name: name == "rerunfailures" or with_plugin(name)
    )
    handed = place_for_reruns(pytestconfig)
    threading.Timer(0.2, started.set).start()
    client = ClientStatusDB(handed["sock_port"], handed["statusdb_token"])
    client.sock.close()
