"""A run folder may come from somebody else: nothing outside of it is read, copied or overwritten on its account."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.errors import StoreError
from lm_audit.report import write_reports
from lm_audit.report.allure.results import complete_results
from lm_audit.report.tables.summary import read_summary
from lm_audit.runstore.inside import file_inside, relative_name
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.merging.merge import merge_runs
from lm_audit.runstore.named import begun
from lm_audit.runstore.reader import planned_ids, read_rows
from lm_audit.runstore.run import read_run
from lm_audit.runstore.soundness.beside import damaged_files
from tests.report.made_runs import MadeCase, share, write_run

SECRET = "the secret of this machine"
CASE = "t.py::test_x[m@cpu-a]"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file beside the run that its maker must not learn."""
    path = tmp_path / "secret.jsonl"
    path.write_text(json.dumps({"item": "s", "text": SECRET}) + "\n")
    return path


def made(tmp_path: Path, name: str = "20260101-000000-0000") -> Path:
    """A run with one file and one row."""
    file = tmp_path / "mine.txt"
    file.write_text("mine")
    case = MadeCase(CASE, "bias", "m", metrics={"bias.x": share(0.4)}, rows=[{"item": "a"}], files=[file])
    return write_run(tmp_path / "reports" / name, [case])


def told(run: Path, **names: str) -> None:
    """Have the ledger name other paths."""
    (ledger,) = (run / "ledger").glob("*.jsonl")
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    for line in lines:
        if line["kind"] in names:
            line["path" if line["kind"] == "artifact" else "file"] = names[line["kind"]]
    ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))


def everything(folder: Path) -> str:
    """All bytes below a folder, links not followed."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    return "".join(path.read_bytes().decode("latin1") for path in files)


def project(run: Path, tmp_path: Path) -> str:
    """All reports and Allure results of a run as one text."""
    write_reports(run)
    complete_results(read_run(run, shown=True), tmp_path / "allure")
    return everything(run) + everything(tmp_path / "allure")


@pytest.mark.parametrize("name", ["../../secret.jsonl", "rows/../../../secret.jsonl", "{secret}", "..", "", "a\0b"])
def test_paths_that_lead_out_are_not_followed(tmp_path: Path, secret: Path, name: str) -> None:
    run = made(tmp_path)
    told(run, rows=name.format(secret=secret), artifact=name.format(secret=secret))
    text = project(run, tmp_path)
    assert SECRET not in text
    found = read_run(run)
    assert len(found.damaged) == 2 and not found.cases[0].last.artifacts and found.cases[0].last.incomplete
    with pytest.raises(StoreError, match="cannot merge"):
        merge_runs([run], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("kind", ["rows", "artifacts"])
@pytest.mark.parametrize("whole", [False, True], ids=["file", "folder"])
def test_links_that_lead_out_are_not_followed(tmp_path: Path, secret: Path, kind: str, whole: bool) -> None:
    run = made(tmp_path)
    if whole:
        outside = tmp_path / "outside"
        (run / kind).rename(outside)
        for path in (path for path in outside.rglob("*") if path.is_file()):
            path.write_bytes(secret.read_bytes())
        (run / kind).symlink_to(outside)
    else:
        (file,) = (path for path in (run / kind).rglob("*") if path.is_file())
        file.unlink()
        file.symlink_to(secret)
    assert SECRET not in project(run, tmp_path)
    with pytest.raises(StoreError, match="link that leads out"):
        merge_runs([run], tmp_path / "merged")


@pytest.mark.parametrize("name", ["ledger/other.jsonl", "ledger"])
def test_a_ledger_elsewhere_is_named_and_not_read(tmp_path: Path, secret: Path, name: str) -> None:
    run = made(tmp_path)
    if name == "ledger":
        (run / "ledger").rename(tmp_path / "elsewhere")
        (run / "ledger").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="ledger/ is a link that leads out"):
            read_run(run)
    else:
        (run / name).symlink_to(secret)
        (damage,) = read_run(run).damaged
        assert damage.file == name and "leads out" in damage.reason
    with pytest.raises(StoreError, match="leads out"):
        merge_runs([run], tmp_path / "merged")


def test_a_link_to_the_run_itself_and_links_within_it_are_followed(tmp_path: Path) -> None:
    run = made(tmp_path)
    (file,) = (path for path in (run / "artifacts").rglob("*") if path.is_file())
    file.rename(file.with_name("real.txt"))
    file.symlink_to("real.txt")
    (tmp_path / "alias").symlink_to(run)
    assert "mine" in project(tmp_path / "alias", tmp_path) and not read_run(tmp_path / "alias").damaged
    assert merge_runs([tmp_path / "alias"], tmp_path / "merged").cases == 1


def test_a_report_replaces_a_link_and_leaves_its_target(tmp_path: Path, secret: Path) -> None:
    run, before = made(tmp_path), secret.read_bytes()
    for name in ("index.html", "metrics.csv", "items.parquet", "junit.xml", "evidence.jsonl", "summary.json"):
        (run / name).symlink_to(secret)
    write_reports(run)
    assert secret.read_bytes() == before and not (run / "index.html").is_symlink()


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to], ids=["symbolic", "hard"])
def test_an_allure_report_writes_into_no_file_that_is_also_elsewhere(
    tmp_path: Path, secret: Path, capsys: pytest.CaptureFixture[str], link: Callable[[Path, Path], None]
) -> None:
    run, before = made(tmp_path), secret.read_bytes()
    (run / "allure-results").mkdir()
    link(run / "allure-results" / "categories.json", secret)
    (tmp_path / "allure").write_text("#!/bin/sh\n")
    assert main(["allure", str(run), "--allure", str(tmp_path / "allure")]) == 2
    assert "categories.json is" in capsys.readouterr().err
    assert secret.read_bytes() == before


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    run = made(tmp_path)
    (rows,) = (run / "rows").iterdir()
    rows.unlink()
    os.mkfifo(rows)
    with pytest.raises(StoreError, match="no regular file"):
        file_inside(run, f"rows/{rows.name}")
    assert list(read_rows(run, (f"rows/{rows.name}",))) == []
    write_reports(run)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here fails while it is read")
def test_rows_of_a_disk_that_fails_in_their_midst_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path)
    (rows,) = (run / "rows").iterdir()
    failing = Path("/proc/self/mem")  # opened like any file; its first byte is an input/output error
    with pytest.raises(OSError, match="Input/output error"):
        failing.read_bytes()
    monkeypatch.setattr("lm_audit.runstore.reader.file_inside", lambda folder, name: failing)
    assert list(read_rows(run, (f"rows/{rows.name}",))) == []


@pytest.mark.parametrize("name", ["C:\\x", "\\\\host\\x", "a\\..\\..\\x", "/etc/passwd", ".", "./"])
def test_names_of_other_systems_lead_out_too(name: str) -> None:
    with pytest.raises(StoreError, match="leads out of the run folder"):
        relative_name(name)


@pytest.mark.parametrize("part", ["ledger", "rows", "artifacts"])
def test_a_link_in_a_circle_is_told(tmp_path: Path, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(tmp_path)
    if part == "ledger":
        (run / "ledger" / "x.jsonl").symlink_to("x.jsonl")
    else:
        (run / part).rename(tmp_path / part)
        (run / part).symlink_to(part)
    assert main(["merge", str(run), "-o", str(tmp_path / "merged")]) == 2
    assert "leads nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["rows", "artifact"])
def test_a_name_that_no_file_can_have_is_told(tmp_path: Path, kind: str) -> None:
    run = made(tmp_path)
    told(run, **{kind: f"{'rows' if kind == 'rows' else 'artifacts'}/\ud800"})
    write_reports(run)
    told_of = [*read_run(run).damaged, *damaged_files(read_run(run))]
    assert told_of, "the record is damaged, or its file is"
    with pytest.raises(StoreError, match="a name that no file has"):
        file_inside(run, "rows/\ud800")


def test_a_path_of_a_command_holds_no_nul(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "a", "b", "--html", "a\0b"])
    assert "holds a NUL" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["run.json", "ledger", "rows", "summary.json"])
def test_a_file_larger_than_any_that_a_run_writes_is_not_read(tmp_path: Path, name: str) -> None:
    run = made(tmp_path)
    write_reports(run)
    path = run / name if name.endswith(".json") else next((run / name).glob("*.jsonl"))
    os.truncate(path, path.stat().st_size + (1 << 40))  # more than fits into memory; the disk holds a hole

    found = read_run(run)
    damaged = [*found.damaged, *damaged_files(found)]
    if name == "summary.json":
        assert not damaged and read_summary(run) is None
    else:
        assert any("bytes, and a run writes at most" in one.reason for one in damaged)
    assert list(read_rows(run, (f"rows/{path.name}",))) == [] or name != "rows"
    assert name == "ledger" or len(found.cases) == 1
    assert begun(run)[1] == run.name and len(planned_ids(RunFolder(run))) == (name != "ledger")
