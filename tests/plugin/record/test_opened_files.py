"""What an eval read counts for its cases though no source names it: a file that changed makes them run again."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

import pytest

from lm_audit.errors import UsageError
from lm_audit.plugin.record.earlier import Earlier
from lm_audit.runstore import read_run
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.merging.same_run import check_kin, files_read, member
from lm_audit.shared.reached import opened
from tests.plugin.toy_audit import last_run, runs
from tests.plugin.toy_run import run_pytest, write_project
from tests.runstore.sample_ledger import begin

HEAD = """
import importlib.util, json, runpy
from functools import cache
from pathlib import Path
import pytest
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate
HERE = Path(__file__).parent
pytestmark = pytest.mark.bias

@cache
def remembered():
    return (HERE / "remembered.txt").read_text()

@cases([Case("a"), Case("b")])
def test_it(case, evidence):
    evidence.metric("bias.gap", Estimate(1.0))
"""
READERS = {
    "beside": "    (HERE / 'data' / f'{case.id}.txt').read_text()\n",
    "globbed": "    [json.loads(path.read_text()) for path in HERE.glob('*.json')]\n",
    "by_path": """    spec = importlib.util.spec_from_file_location("helper", HERE / "by path.py")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
""",
    "run_path": "    runpy.run_path(str(HERE / 'script.py'))\n",
    "in_memory": "    if case.id == 'a': remembered()\n",
    "at_import": "TEXT = (HERE / 'imported.txt').read_text()\n",
    "through_a_library": "    import csv; list(csv.reader(open(HERE / 'named.csv')))\n",
    "what_it_wrote": "    (HERE / 'out.txt').write_text(case.id); (HERE / 'out.txt').read_text()\n",
    "nothing": "",
}
"""What the body of a case, or its module, goes on with; a name of the eval file for each."""

DATA = ("data/a.txt", "found.json", "by path.py", "script.py", "remembered.txt", "imported.txt", "named.csv")
STAND = {"what_it_wrote", "nothing"}


def test_files_that_no_source_names_count_when_they_change(tmp_path: Path) -> None:
    project = write_project(tmp_path, **{f"test_{name}": HEAD + body for name, body in READERS.items()})
    for name in (*DATA, "data/b.txt", "out.txt"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("1\n")
    assert run_pytest(project).counts == {"passed": 18}
    (first,) = runs(project)

    def ran_again() -> set[str]:
        run_pytest(project, "--resume", first.name)
        run = last_run(project)
        again = [case.case_id for case in run.cases if case.last.session == run.sessions]
        names = {one.partition(".py")[0].removeprefix("test_") for one in again}
        assert len(again) == 2 * len(names)  # What one case read another may have from memory.
        return names

    assert ran_again() == set()
    for name in (*DATA, "out.txt"):
        (project / name).write_text("2\n")
    assert ran_again() == set(READERS) - STAND
    assert ran_again() == set()
    for name in ("data/b.txt", "found.json"):
        (project / name).unlink()
    (project / "data" / "b.txt").write_text("1\n")  # As it was.
    assert ran_again() == {"globbed"}
    assert Earlier(last_run(project), project).stale == {("test_globbed.py", 3)} | {
        (f"test_{name}.py", 1) for name in set(READERS) - STAND
    }


def parts(folder: Path, *read: dict[str, str]) -> list[Path]:
    """Runs of one case each, whose eval read these files."""
    found = []
    for number, files in enumerate(read):
        run = RunFolder(folder / f"20260101-00000{number}-abcd")
        run.create()
        ledger = Ledger(run.ledger, "main")
        case_id = f"evals/test_{number}.py::test_x[{number}]"
        ledger.write("plan", cases=[{"case_id": case_id}])
        writer = begin(run, ledger, case_id)
        writer.read(files)
        writer.end("passed", 1.0)
        found.append(run.path)
    return found


def test_parts_of_a_run_that_read_other_contents_are_strangers(tmp_path: Path) -> None:
    one, other, alike = parts(tmp_path, {"v.txt": "1" * 64}, {"v.txt": "2" * 64}, {"v.txt": "1" * 64, "w.txt": "3"})
    check_kin([member(one), member(alike)])
    with pytest.raises(UsageError, match=r"what was read of v\.txt differs: '1+' and '2+'"):
        check_kin([member(one), member(other)])
    assert files_read(read_run(alike)) == {"v.txt": "1" * 16, "w.txt": "3"}


def test_whose_files_and_which(tmp_path: Path) -> None:
    """Those of the sources on the stack, written ones and libraries' left out, a cached module as its source."""
    (tmp_path / "v.txt").write_text("1")
    source = tmp_path / "reader.py"
    source.write_text(
        "import json.encoder, os\n"
        "def read(*names):\n"
        "    for name in names: open(name).close()\n"
        "def more(folder):\n"
        "    open(os.path.join(folder, 'made.txt'), 'w').close()\n"
        "    os.replace(os.path.join(folder, 'made.txt'), os.path.join(folder, 'moved.txt'))\n"
        "    open(os.path.join(folder, 'moved.txt')).close()\n"
        "    os.close(os.open(os.path.join(folder, 'low.txt'), os.O_RDONLY))\n"
    )
    (tmp_path / "low.txt").write_text("1")
    opened.rest()  # This process wrote them.
    opened.watch()
    spec = importlib.util.spec_from_file_location("reader", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.read(tmp_path / "v.txt", os.devnull, json_file := importlib.util.__file__, os.fsencode(tmp_path / "v.txt"))
    module.more(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        module.read(tmp_path / "gone.txt")
    for wrong in (3.5, "\0", None):
        with pytest.raises((TypeError, ValueError, OSError)):
            module.read(wrong)
    found, since = opened.files_read_by({source})
    assert json_file and found == [tmp_path / "low.txt", tmp_path / "v.txt"]
    assert source in opened.files_read_by({Path(__file__).resolve()})[0]
    assert opened.files_read_by({tmp_path / "another.py"}) == ([], since)
    module.read(tmp_path / "v.txt")
    assert opened.files_read_by({source}, since) == ([], since)  # Nothing new.
    (tmp_path / "later.txt").hardlink_to(tmp_path / "v.txt")
    os.utime(tmp_path / "later.txt", (time.time() + 9,) * 2)  # What a tool made meanwhile.
    module.read(tmp_path / "later.txt")
    assert opened.files_read_by({source}, since) == ([], since + 1)
    since += 1
    (tmp_path / "future.txt").hardlink_to(tmp_path / "low.txt")
    os.utime(tmp_path / "future.txt", (time.time() + 7200,) * 2)  # The clock was put back since somebody wrote it.
    module.read(tmp_path / "future.txt")
    assert opened.files_read_by({source}, since) == ([tmp_path / "future.txt"], since + 1)
    since += 1
    module.read(source)
    assert opened.files_read_by({source}, since) == ([source], since + 1)
    assert opened.is_outside(Path(pytest.__file__)) and not opened.is_outside(source)
    opened.rest()
