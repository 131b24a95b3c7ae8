"""Nodes of a cluster that are not like the caller's machine: another version, no model, a case that hangs there."""

from __future__ import annotations

import os
import pty
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from lm_audit.plugin.cluster.member import differences
from lm_audit.plugin.cluster.orders import Ready, compared_versions
from lm_audit.plugin.cluster.places import Node, Places
from lm_audit.shared import code_version
from tests.models.small_models import put_in_hub_cache, save_small_llama
from tests.plugin.acknowledging_audit import only_run
from tests.plugin.cluster.test_ray_controller import PLACES, PLUGINS, on_cluster, project_in
from tests.plugin.toy_run import command, environment

SOURCE = """
import os, signal, time

import pytest

from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate

pytestmark = pytest.mark.bias
CASES = [Case(f"c{index}", {"index": index}) for index in range(4)]


@pytest.fixture
def language_model():
    return None


def await_the_others():  # They come up when they like, and are told of when they have.
    ran, rejected = (os.environ.get(f"LM_AUDIT_TOY_{name}") for name in ("RAN_ELSEWHERE", "OTHER_TORCH"))
    until = time.monotonic() + 120
    while ran and not (os.path.exists(ran) and os.path.exists(rejected) and gone(rejected)):
        assert time.monotonic() < until, "another node has not come up"
        time.sleep(0.05)


def gone(file):
    with open(file) as text:
        number = text.read()
    try:
        return bool(number) and os.kill(int(number), 0)
    except ProcessLookupError:
        return True


@cases(CASES)
def test_free(case, evidence):
    if "LM_AUDIT_TOY_HAS_NO_MODEL" in os.environ:
        open(os.environ["LM_AUDIT_TOY_RAN_ELSEWHERE"], "w").close()
    for done in range(1, 11):
        evidence.progress(done, 10)
        time.sleep(float(os.environ.get("LM_AUDIT_TOY_PAUSE", "0.3")) / 10)


@cases(CASES)
def test_on_model(case, language_model, evidence):
    await_the_others()
    evidence.metric("bias.mean", Estimate(1.0, None, None, n=3, method="toy"))
    hang = os.environ.get("LM_AUDIT_TOY_HANG", "").split()
    if case.id in hang:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM] if case.id == hang[-1] else [])
        time.sleep(60)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    put_in_hub_cache(tmp_path / "hub", "toy/small", {"main": save_small_llama(tmp_path / "small")})
    return tmp_path / "hub"


def test_a_node_gets_what_it_has_the_model_and_the_versions_for(tmp_path: Path, cache: Path) -> None:
    folder = project_in(tmp_path / "project", SOURCE)
    outcome = on_cluster(
        folder, "-v", "--model", "toy/small", STAND_IN_NODES="n1 n2 n3", HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(cache),
        STAND_IN_ENV_n2=f"HF_HUB_CACHE={tmp_path} LM_AUDIT_TOY_HAS_NO_MODEL=1",
        STAND_IN_ENV_n3="PYTEST_PLUGINS=tests.plugin.cluster.other_torch",
        LM_AUDIT_TOY_RAN_ELSEWHERE=str(tmp_path / "elsewhere"), LM_AUDIT_TOY_OTHER_TORCH=str(tmp_path / "other-torch"),
    )  # fmt: skip
    assert outcome.code == 0, outcome.output
    assert outcome.counts == {"passed": 8}
    small = "host-n2 (n2) is given no cases of small@cpu: model toy/small is not in the hub cache"
    assert small in outcome.output and "host-n1 (n1) is given" not in outcome.output
    torch = version("torch")
    assert f"host-n3 (n3) is given no cases: it runs other code: torch 0.0.1, here {torch}" in outcome.output
    places = [line for line in outcome.output.splitlines() if line.startswith("[ray") and "test_on_model" in line]
    workers = {line.partition("]")[0] for line in places}
    assert len(places) == 4 and len(workers) == 1, "all of the model's cases ran where it is"


@pytest.mark.slow
def test_a_model_that_no_node_has_is_told_by_node(tmp_path: Path, cache: Path) -> None:
    folder = project_in(tmp_path / "project", SOURCE)
    nowhere = f"HF_HUB_CACHE={tmp_path}"
    outcome = on_cluster(
        folder, "--model", "toy/small", HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(cache),
        STAND_IN_ENV_n1=nowhere, STAND_IN_ENV_n2=nowhere,
    )  # fmt: skip
    assert outcome.code == 1
    assert outcome.counts == {"passed": 4, "error": 4}
    told = {case.last.message for case in only_run(folder).cases if case.outcome == "error"}
    (message,) = told
    assert message.startswith("not run: no node of the cluster has the model of small@cpu")
    assert "host-n1" in message and "host-n2" in message and "toy/small" in message


@pytest.mark.slow
def test_a_case_that_hangs_is_ended_by_its_limit(tmp_path: Path, cache: Path) -> None:
    folder = project_in(tmp_path / "project", SOURCE)
    outcome = on_cluster(
        folder, "--model", "toy/small", "--case-timeout", "2", HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(cache),
        LM_AUDIT_TOY_HANG="c1 c2",
    )  # fmt: skip
    assert outcome.code == 1
    assert outcome.counts == {"passed": 6, "failed": 2}
    ends = {case.case_id.rpartition("-")[2]: case for case in only_run(folder).cases if case.outcome != "passed"}
    assert {case: end.outcome for case, end in ends.items()} == {"c1]": "failed", "c2]": "crashed"}
    for end in ends.values():
        assert "it ran longer than --case-timeout 2 s" in end.last.message
        assert not end.earlier, "a case that hangs is not given a second worker to hold"
    assert "time.sleep" in ends["c2]"].last.message or "in test_on_model" in ends["c2]"].last.message
    assert not list(folder.glob("reports/*/hangs"))


@pytest.mark.slow
def test_a_terminal_sees_how_far_the_cases_of_workers_are(tmp_path: Path) -> None:
    folder = project_in(tmp_path / "project", SOURCE)
    ours, theirs = pty.openpty()
    variables = environment(**PLACES, TERM="xterm", COLUMNS="100", LM_AUDIT_TOY_PAUSE="4")
    variables.pop("CI", None)
    words = command("--ray", "auto", "-k", "test_free and c0", plugins=PLUGINS)
    process = subprocess.Popen(words, cwd=folder, env=variables, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux: the other end is closed.
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(30) == 0, shown.decode()
    assert b"test_free[c0]" in shown and b"/10" in shown
    assert not list(folder.glob("reports/*/progress"))


@pytest.mark.parametrize("name", ["python", "ray", "torch", "transformers"])
def test_a_version_that_differs_is_named(name: str) -> None:
    own = compared_versions()
    alike = Ready({}, code_version.package_digest(), own)
    assert differences(alike) == ""
    other = Ready({}, alike.code, own | {name: "0.1"})
    assert differences(other) == f"{name} 0.1, here {own[name]}"
    absent = Ready({}, alike.code, {key: value for key, value in own.items() if key != name})
    assert differences(absent) == f"{name} absent, here {own[name]}"


def test_other_code_is_named_and_another_build_is_none() -> None:
    own = compared_versions()
    assert differences(Ready({}, "0" * 16, own)) == f"lm_audit {'0' * 16}, here {code_version.package_digest()}"
    build = own["torch"].partition("+")[0]
    assert differences(Ready({}, code_version.package_digest(), own | {"torch": f"{build}+cu130"})) == ""


def test_a_node_keeps_its_name_when_it_is_gone() -> None:
    places = Places()
    places.seen([Node("0123456789", "host", {"CPU": 1.0})])
    places.seen([])
    assert places.name("0123456789") == "host (01234567)"
    assert places.name("abcdefghij") == "node abcdefgh" and places.name(None) == "node unknown"
