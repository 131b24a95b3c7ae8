"""What a run writes is removed, moved or cut by somebody else while it runs: it is told, and the call fails."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lm_audit.errors import StoreError
from lm_audit.plugin.record.audit_session import SESSION, AuditSession
from lm_audit.plugin.session import lifetime
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger, LineFile
from lm_audit.runstore.records import DamagedLine
from tests.file_size_limit import file_size_limit
from tests.plugin.toy_audit import audit_project, last_run, run_pytest

AUDIT = """
import os, shutil
from pathlib import Path
import pytest
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate


@pytest.mark.bias
@cases([Case("a"), Case("b")])
def test_gap(case, evidence):
    [ledger] = Path("reports").glob("2*/ledger")
    if case.id == "b":
        HAPPENS
    evidence.metric("bias.gap", Estimate(0.5, 0.4, 0.6, n=100, method="toy"))
"""
HAPPENS = {
    "removed": "shutil.rmtree(ledger)",
    "emptied": "[path.unlink() for path in ledger.iterdir()]",
    "cut": "[os.truncate(path, 0) for path in ledger.iterdir()]",
    "moved": "os.rename('reports', 'elsewhere')",
}


@pytest.mark.parametrize("happens", HAPPENS)
def test_a_run_whose_record_is_lost_fails_and_says_so(tmp_path: Path, happens: str) -> None:
    project = audit_project(tmp_path, AUDIT.replace("HAPPENS", HAPPENS[happens]))
    (project / "gates.toml").write_text("[bias.gap]\nmax = 0.9\n", encoding="utf-8")
    done = run_pytest(project, "--gates", "gates.toml")
    assert done.code == pytest.ExitCode.TESTS_FAILED and "INTERNALERROR" not in done.output, done.output
    assert "while the run wrote it: what it held is lost" in done.output.replace("\n", " ")
    assert "the evidence is safe" not in done.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("happens", "code"),
    [
        ("[path.write_text(path.read_text().replace('0.5', '0.7')) for path in ledger.iterdir()]", 1),
        ("os.fork()", 0),
    ],
    ids=["changed", "forked"],
)
def test_records_that_are_no_longer_what_was_written_fail_the_call(tmp_path: Path, happens: str, code: int) -> None:
    """A process that a case forks, and that comes back from it, writes nothing of the run a second time."""
    done = run_pytest(audit_project(tmp_path, AUDIT.replace("HAPPENS", happens)))
    run = last_run(tmp_path)
    assert (done.code, bool(run.damaged), done.output.count("2 passed")) == (code, code == 1, 1), done.output
    assert (f"--resume {run.run_id} runs again" in done.output.replace("\n", " ")) == (code == 1)


def test_damage_of_before_the_call_is_not_held_against_it(tmp_path: Path) -> None:
    before, new = (DamagedLine("ledger/main-1.jsonl", number, "not JSON") for number in (3, 7))
    run = SimpleNamespace(damaged=(before,), cases=(), folder=tmp_path)
    for earlier, damaged, told in (
        (None, (), None),
        (None, (before,), "line 3"),
        (run, (before,), None),
        (run, (before, new), "line 7"),
    ):
        audit: Any = SimpleNamespace(
            earlier=earlier and SimpleNamespace(run=earlier), extra={}, folder=RunFolder(tmp_path)
        )
        assert lifetime._damaged_meanwhile(audit, damaged) == bool(told)
        assert (told or "") in audit.extra.get("trouble", "") and bool(audit.extra) == bool(told)


def test_a_run_json_that_is_lost_meanwhile_is_written_again_as_it_was(tmp_path: Path) -> None:
    emptied = "(ledger.parent / 'run.json').write_text('')"
    done = run_pytest(audit_project(tmp_path, AUDIT.replace("HAPPENS", emptied)), "--seed", "7")
    run = last_run(tmp_path)
    assert done.code == 0 and not run.damaged and run.metadata["options"]["seed"] == 7 and run.metadata["finished"]


def test_pipes_in_the_place_of_what_a_run_keeps_are_not_waited_for(tmp_path: Path) -> None:
    project = audit_project(tmp_path, AUDIT.replace("HAPPENS", "pass"))
    (project / "reports").mkdir()
    for name in ("run_metadata.jsonl", "durations.json"):
        os.mkfifo(project / "reports" / name)
    done = run_pytest(project)
    assert done.code == 0 and "cannot append to run_metadata.jsonl" in done.output, done.output
    os.mkfifo(tmp_path / "main-1.jsonl")
    with pytest.raises(StoreError, match="cannot open"):
        LineFile(tmp_path / "main-1.jsonl")


def test_a_ledger_that_was_removed_or_cut_is_noticed_when_it_is_forced_onto_the_disk(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, "main")
    ledger.write("note", text="x")
    ledger.sync()
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(b"")
    with pytest.raises(StoreError, match="cut or replaced"):
        ledger.sync()
    ledger.path.unlink()
    with pytest.raises(StoreError, match="was removed"):
        ledger.sync()
    ledger.path.write_bytes(whole)  # a copy that was put back
    ledger.sync()
    ledger.close()


def test_a_file_in_the_place_of_the_folder_is_noticed_likewise(tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    ledger = Ledger(tmp_path / "ledger", "main")
    ledger.path.unlink()
    ledger.path.parent.rmdir()
    ledger.path.parent.write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="was removed"):
        ledger.sync()
    ledger.close()


def test_a_run_that_could_not_begin_leaves_nothing(tmp_path: Path) -> None:
    """There is room for the probe of the folder, and none for ``run.json``."""
    project = audit_project(tmp_path)
    # Python would leave halves of modules that it compiles, for every later process.
    full = (
        "import resource, sys\nsys.dont_write_bytecode = True\nresource.setrlimit(resource.RLIMIT_FSIZE, (999,) * 2)\n"
    )
    (project / "conftest.py").write_text((project / "conftest.py").read_text() + full)
    done = run_pytest(project, "-p", "no:cacheprovider")
    assert done.code == 4 and "run.json: File too large" in done.output and not list(project.glob("reports/2*"))


def test_a_disk_without_room_for_the_plan_takes_no_worker_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of its cases tells, and its controller; one that dies would be replaced by one that dies likewise."""
    plugins = SimpleNamespace(hasplugin=lambda name: False)
    # Of a worker's session no more than this is asked for.
    config = cast(Any, SimpleNamespace(stash=pytest.Stash(), pluginmanager=plugins))
    session = cast(Any, SimpleNamespace(config=config, items=[]))
    audit = config.stash[SESSION] = AuditSession(
        cast(Any, None), RunFolder(tmp_path / "run"), "gw0", is_worker=True, present=frozenset(), required=frozenset()
    )
    with capsys.disabled(), file_size_limit():
        lifetime.pytest_lm_audit_planned(session)
    assert audit.recorded and audit.ledger.path.stat().st_size <= 16
