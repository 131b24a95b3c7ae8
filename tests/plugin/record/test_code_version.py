"""What is signed was run: a change of any source or package makes cases run again, and parts of a run strangers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest

from lm_audit.errors import StoreError, UsageError
from lm_audit.evidence import Evidence
from lm_audit.plugin.record.evidence_fixture import Recorder
from lm_audit.plugin.record.fingerprints import _paths
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.merging.same_run import check_kin, member
from lm_audit.shared.code_version import code_version, forget, package_digest
from lm_audit.shared.reached.package_versions import versions_of_modules
from lm_audit.shared.reached.sources import reachable
from tests.plugin.toy_audit import audit_project, last_run, runs
from tests.plugin.toy_run import REPOSITORY, environment, run_pytest
from tests.runstore.sample_ledger import begin, new_run

EVAL = """
import pytest
from lm_audit.evidence import Evidence
from lm_audit.plugin import Case, cases
from lm_audit.stats.estimate import Estimate

@pytest.mark.bias
@cases([Case("a"), Case("b")])
def test_gap(case, evidence):
    from helping import deep
    evidence.record(Evidence("bias", {"bias.gap": Estimate(deep.VALUE, n=9)}))
"""


def copied_package(folder: Path) -> Path:
    """What is compiled goes along, so that a copy compiles no more than what a test changes in it."""
    source = folder / "source"
    shutil.copytree(REPOSITORY / "harness", source)
    return source


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "helping").mkdir()
    (tmp_path / "helping" / "__init__.py").write_text("from helping import deep\n")
    (tmp_path / "helping" / "deep.py").write_text("VALUE = 0.5\n")
    (tmp_path / "unrelated.py").write_text("X = 1\n")
    return audit_project(tmp_path, EVAL)


def test_a_change_anywhere_that_a_case_can_reach_makes_it_run_again(project: Path) -> None:
    source = copied_package(project)
    path = f"{source}:{project}"
    assert run_pytest(project, PYTHONPATH=path).counts == {"passed": 2}

    def resumed() -> dict[str, int]:
        return run_pytest(project, "--resume", runs(project)[0].name, PYTHONPATH=path).counts

    assert resumed() == {"resumed": 2}
    with (project / "unrelated.py").open("a") as file:
        file.write("Y = 2\n")
    assert resumed() == {"resumed": 2}
    for changed in (
        source / "lm_audit" / "stats" / "shares" / "proportions.py",
        project / "conftest.py",
        project / "helping" / "deep.py",
    ):
        assert changed.is_file()
        with changed.open("a") as file:
            file.write("\n# changed\n")
        assert resumed() == {"passed": 2}, changed
    assert resumed() == {"resumed": 2}
    another_numpy(project)
    assert resumed() == {"passed": 2}
    versions = {case.last.code_version for case in last_run(project).cases}
    assert len(versions) == 1 and None not in versions
    assert len({attempt.code_version for case in last_run(project).cases for attempt in case.earlier}) == 4


def another_numpy(project: Path) -> None:
    """Another version of a package: what tells it lies before the installed one."""
    (project / "numpy-0.0.1.dist-info").mkdir(exist_ok=True)
    (project / "numpy-0.0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.0.1\n")


def test_runs_of_other_code_are_not_merged(project: Path) -> None:
    """Neither where a helper changed, nor a part of the package that no audit owns, nor a package beneath."""
    source = copied_package(project)
    path = f"{source}:{project}"
    run_pytest(project, "--shard", "1/2", PYTHONPATH=path)
    (first,) = runs(project)

    def second() -> Path:
        run_pytest(project, "--shard", "2/2", PYTHONPATH=path)
        return next(run for run in runs(project) if run != first)

    other = second()
    check_kin([member(first), member(other)])
    shutil.rmtree(other)
    changes: list[tuple[Path, str]] = [
        (project / "helping" / "deep.py", r"code that ran test_toy\.py differs"),
        (source / "lm_audit" / "stats" / "shares" / "proportions.py", "code_version differs|code that ran"),
        (project / "conftest.py", r"code that ran test_toy\.py differs"),
    ]
    for changed, reason in changes:
        text = changed.read_text()
        changed.write_text(text + "\n# changed\n")
        other = second()
        with pytest.raises(UsageError, match=reason):
            check_kin([member(first), member(other)])
        shutil.rmtree(other)
        changed.write_text(text)
    another_numpy(project)
    with pytest.raises(UsageError, match=r"numpy differs: .* and '0\.0\.1'"):
        check_kin([member(first), member(second())])


def test_evidence_of_other_code_is_not_recorded(tmp_path: Path) -> None:
    folder = new_run(tmp_path)
    recorder = Recorder(begin(folder, Ledger(folder.ledger, "main")))
    recorder.record(Evidence("bias"))
    with pytest.raises(StoreError, match="was made by code 0123"):
        recorder.record(Evidence("bias", code_version="0123"))


PRIVACY = """
import os, sys
import scipy.stats, torch, transformers  # What is not of this package is loaded once.

for _ in sys.stdin:
    if not os.fork():
        from lm_audit.audits.privacy import measured_cases as evalcases
        from lm_audit.audits.privacy.stages.config import StagesConfig
        from lm_audit.audits.privacy.measure.stage_scores import ScoringOptions
        from lm_audit.shared.code_version import code_version
        print(code_version(), evalcases._digest(ScoringOptions(), "cpu"), StagesConfig().folder().name, flush=True)
        os._exit(0)
    os.wait()
"""
"""Answers each line with names that a process of its own makes of the code as it is then."""


def test_the_privacy_cache_does_not_outlive_the_code(tmp_path: Path) -> None:
    source = copied_package(tmp_path)

    asked = subprocess.Popen(
        [sys.executable, "-c", PRIVACY], env=environment(PYTHONPATH=str(source)), text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip

    def names() -> list[str]:
        assert asked.stdin is not None and asked.stdout is not None
        print(file=asked.stdin, flush=True)
        told = asked.stdout.readline().split()
        assert len(told) == 3
        return told

    with asked:
        before = names()
        assert names() == before
        membership = source / "lm_audit" / "audits" / "privacy" / "measure" / "membership.py"
        text = membership.read_text()
        assert "def membership(" in text
        membership.write_text(text.replace("from __future__", "# an exception put first\nfrom __future__", 1))
        assert all(old != new for old, new in zip(before, names(), strict=True))
        membership.write_text(text)
        assert names() == before
        stats = source / "lm_audit" / "stats" / "ranking" / "scores.py"
        stats.write_text(stats.read_text() + "\n# changed\n")
        after = names()
        assert after[:2] != before[:2] and after[1] != before[1]
        assert after[2] == before[2]  # Weights do not hang on how they are judged.


def test_reachable_files(tmp_path: Path) -> None:
    (tmp_path / "evals" / "deep").mkdir(parents=True)
    files = {
        "conftest.py": "import top\npytest_plugins = ('fixtures_here', 'pkg.plugged')\n",
        "top.py": "import json\nfrom importlib import import_module\nimport_module('late')\n",
        "late.py": "import importlib\nimportlib.import_module('pkg.later')\n",
        "fixtures_here.py": "pytest_plugins: str = 'one_more'\n",
        "one_more.py": "names = ['not_named']\nprint('printed')\n",
        "not_named.py": "",
        "printed.py": "",
        "pkg/plugged.py": "",
        "pkg/later.py": "",
        "evals/conftest.py": "",
        "evals/deep/test_x.py": "from . import near\nfrom .. import missing\nimport pkg.mod as m\n",
        "evals/deep/__init__.py": "",
        "evals/deep/near.py": "def f():\n    import beside\n",
        "evals/deep/beside.py": "import beside\n",
        "evals/deep/other.py": "",
        "pkg/__init__.py": "",
        "pkg/mod.py": "from pkg.sub import x\n",
        "pkg/sub.py": "this is no Python",
        "pkg/unused.py": "",
        "node_modules/pkg2.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {p.relative_to(tmp_path).as_posix() for p in reachable(tmp_path / "evals/deep/test_x.py", tmp_path)}
    assert found == set(files) - {
        "evals/deep/other.py", "pkg/unused.py", "node_modules/pkg2.py", "not_named.py", "printed.py",
    }  # fmt: skip


def test_code_on_the_path_counts_wherever_it_lies(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Helpers in a folder that pytest's file, or the environment, puts on the path: in the project and beside it."""
    beside = tmp_path_factory.mktemp("beside")
    files = {
        tmp_path / "evals" / "test_x.py": "def test_x():\n    from inside import VALUE\n",
        tmp_path / "src" / "inside.py": "from outside.part import VALUE\n",
        beside / "outside" / "part.py": "import torch, lm_audit\n",
    }
    for path, text in {**files, beside / "unused.py": "", beside / "torch.py": ""}.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    eval_file = tmp_path / "evals" / "test_x.py"
    assert reachable(eval_file, tmp_path) == {eval_file}
    monkeypatch.syspath_prepend(tmp_path / "src")
    monkeypatch.syspath_prepend(beside)
    assert reachable(eval_file, tmp_path) == set(files)
    before = code_version(str(eval_file), str(tmp_path))
    (beside / "outside" / "part.py").write_text("VALUE = 0.7\n")
    forget()
    assert code_version(str(eval_file), str(tmp_path)) != before


class Hook:
    """How an editable install of several packages is found: by no folder of the path."""

    def __init__(self, module: str, file: Path):
        self.module, self.file = module, file

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        places = [str(self.file.parent)] if self.file.name == "__init__.py" else None
        asked = name == self.module
        return spec_from_file_location(name, self.file, submodule_search_locations=places) if asked else None


@pytest.mark.parametrize("name", ["hooked/__init__.py", "hooked.py"])
def test_code_that_an_import_hook_finds_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "project").mkdir()
    eval_file = tmp_path / "project" / "test_x.py"
    eval_file.write_text("import hooked\nfrom hooked.part import VALUE\nimport nowhere_at_all\n")
    code = tmp_path / "elsewhere" / name
    code.parent.mkdir(parents=True)
    code.write_text("VALUE = 1\n")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Hook("hooked", code)])
    forget()
    assert reachable(eval_file, eval_file.parent) == {eval_file, code}
    before = code_version(str(eval_file), str(eval_file.parent))
    code.write_text("VALUE = 2\n")
    forget()
    assert code_version(str(eval_file), str(eval_file.parent)) != before


RECORD = "made_up.py,sha256={},9\n../../bin/made,sha256={},9\nmade_up-1.dist-info/METADATA,sha256={},9\nmade_up.pyc,,\n"


def test_what_keeps_its_version_while_its_code_changes_counts_by_commit_or_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes from an index does not: its version is enough, and another machine may have it from elsewhere."""
    site = tmp_path / "site-packages"
    info = site / "made_up-1.dist-info"
    info.mkdir(parents=True)
    monkeypatch.syspath_prepend(site)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1\n")

    def found(source: object, *digests: str) -> str:
        (info / "direct_url.json").write_text(source if isinstance(source, str) else json.dumps(source))
        (info / "RECORD").write_text(RECORD.format(*digests))
        forget()
        return versions_of_modules(["made_up"])["made_up"]

    folder = {"url": "file:///x", "dir_info": {}}
    assert found({"url": "x", "vcs_info": {"vcs": "git", "commit_id": "0123456789abcdef"}}, *"abc") == "1@0123456789ab"
    assert found(folder, *"abc") == found(folder, *"axy") != found(folder, *"bbc")
    for plain in ({"url": "x", "archive_info": {}}, {"url": "x", "dir_info": {"editable": True}}, "{", "[]", "{}"):
        assert found(plain, *"abc") == "1"
    (info / "direct_url.json").unlink()
    forget()
    assert versions_of_modules(["made_up"]) == {"made_up": "1"}


def test_packages_that_an_eval_imports_count_by_their_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of the module, or of the distribution that brings it; Python's own and pytest's do not count."""
    site = tmp_path / "lib" / "site-packages"
    eval_file = tmp_path / "evals" / "test_x.py"
    eval_file.parent.mkdir()
    eval_file.write_text("import json, pytest, made_up.part\nfrom other_name import x\nimport nowhere\n")
    monkeypatch.syspath_prepend(site)

    def install(name: str, module: str, number: str) -> str:
        stem = name.replace("-", "_")
        for old in site.glob(f"{stem}-*"):
            shutil.rmtree(old)
        folder = site / f"{stem}-{number}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
        (folder / "top_level.txt").write_text(f"{module}\n")
        forget()
        return code_version(str(eval_file), str(tmp_path))

    seen = [
        install("made-up", "made_up", "1"), install("made-up", "made_up", "2"),
        install("Other-Distribution", "other_name", "1"), install("Other-Distribution", "other_name", "2"),
    ]  # fmt: skip
    assert len(set(seen)) == 4
    assert install("unrelated", "unrelated", "1") == install("unrelated", "unrelated", "2") == seen[-1]


def test_plugins_that_the_call_names_are_code(tmp_path: Path) -> None:
    eval_file, plugin, helper = (tmp_path / name for name in ("evals/test_x.py", "plugged.py", "helping.py"))
    eval_file.parent.mkdir()
    for path, text in ((eval_file, ""), (plugin, "import helping\n"), (helper, "X = 1\n")):
        path.write_text(text)

    def version() -> tuple[str, str]:
        forget()
        return code_version(str(eval_file), str(tmp_path)), code_version(str(eval_file), str(tmp_path), (plugin,))

    before = version()
    helper.write_text("X = 2\n")
    after = version()
    assert before[0] == after[0] and len({*before, *after}) == 3


def test_what_else_pytest_put_on_the_path_does_not_change_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders of other eval files are there or not by what was selected; a module of one's own comes first."""
    for name in ("a/test_x.py", "a/helper.py", "b/helper.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("import helper, lm_audit, json\n")
    alone = reachable(tmp_path / "a" / "test_x.py", tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "b")
    assert reachable(tmp_path / "a" / "test_x.py", tmp_path) == alone == {
        tmp_path / "a" / "test_x.py", tmp_path / "a" / "helper.py",
    }  # fmt: skip


def test_files_that_a_parameter_names_are_found_at_any_depth(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("a.csv", "b.csv", "c.csv")]
    for name in names:
        Path(name).write_text("x")
    params = {
        "set": names[0],
        "sets": [Path(names[1]), "no file", 3],
        "by": {"x": (names[2], {"y": names[0]})},
        "": None,
    }
    assert _paths(params) == names


def test_parts_of_the_package_have_digests_of_their_own() -> None:
    assert len({package_digest(), package_digest("stats"), package_digest("models"), package_digest("sta")}) == 4
    assert package_digest("stats") == package_digest("stats")
    assert code_version() == code_version()
    before = code_version()
    forget()
    assert code_version() == before
