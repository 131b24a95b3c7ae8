"""Rows and attached files that are not what was recorded: named wherever the run is shown, compared or merged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.errors import DataWarning
from lm_audit.report import write_reports
from lm_audit.report.comparison.runs import compare_runs
from lm_audit.runstore import damaged_files, read_run
from lm_audit.sources import MetricSource
from tests.report.made_runs import MadeCase, share, write_run

OTHER = "SHA-256 differs"


def made(folder: Path, **changes: object) -> Path:
    """A run of two cases with twenty rows each, and an attached file."""
    attached = folder.parent / "notes.txt"
    attached.parent.mkdir(parents=True, exist_ok=True)
    attached.write_text("as it was")
    source = {"bias.x": MetricSource.mean("hit")}
    cases = [
        MadeCase(
            f"t.py::test_x[m@cpu-{name}]",
            "bias",
            "m",
            metrics={"bias.x": share(0.4)},
            sources=source,
            rows=[{"item": f"{name}{k}", "hit": (k + start) % 2} for k in range(20)],
            files=[attached],
            **changes,  # type: ignore[arg-type]
        )
        for name, start in (("a", 0), ("b", 1))
    ]
    return write_run(folder, cases)


def rows_of(run: Path) -> list[Path]:
    return sorted((run / "rows").iterdir())


def edited(run: Path) -> None:
    path = rows_of(run)[0]
    path.write_text(path.read_text().replace('"hit":1', '"hit":0', 1))


def swapped(run: Path) -> None:
    one, other = rows_of(run)
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)


def reordered(run: Path) -> None:
    path = rows_of(run)[0]
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))


def cut(run: Path) -> None:
    path = rows_of(run)[0]
    path.write_bytes(path.read_bytes()[:-9])


def added(run: Path) -> None:
    path = rows_of(run)[0]
    path.write_text(path.read_text() + '{"item":"new","hit":1}\n')


def lost(run: Path) -> None:
    rows_of(run)[0].unlink()


def emptied(run: Path) -> None:
    rows_of(run)[0].write_bytes(b"")


def other_attachment(run: Path) -> None:
    next((run / "artifacts").rglob("notes.txt")).write_text("as it is now")


def lost_attachment(run: Path) -> None:
    next((run / "artifacts").rglob("notes.txt")).unlink()


ROWS = (edited, swapped, reordered, cut, added, lost, emptied)


@pytest.mark.parametrize("damage", [*ROWS, other_attachment, lost_attachment], ids=lambda damage: damage.__name__)
def test_damage_is_named_on_the_page_in_the_terminal_and_in_a_merged_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: object
) -> None:
    run = made(tmp_path / "reports" / "20260101-000000-0000")
    assert damaged_files(read_run(run)) == ()
    assert main(["report", str(run)]) == 0 and "damaged" not in capsys.readouterr().err
    assert callable(damage)
    damage(run)
    found = damaged_files(read_run(run))
    assert len(found) == (2 if damage is swapped else 1)
    assert main(["report", str(run)]) == 0
    told = capsys.readouterr().err
    assert found[0].file in told and "damaged record" in told
    page = (run / "index.html").read_text()
    assert all(one.file in page for one in found) and "damaged record" in page
    assert main(["merge", str(run), "-o", str(tmp_path / "merged")]) == 0
    assert "damaged record" in capsys.readouterr().err
    assert len(damaged_files(read_run(tmp_path / "merged"))) == len(found)


@pytest.mark.parametrize("damage", ROWS, ids=lambda damage: damage.__name__)
def test_rows_that_were_changed_are_not_compared(tmp_path: Path, damage: object) -> None:
    runs = [made(tmp_path / name / "20260101-000000-0000") for name in "ab"]
    assert {change.basis for change in compare_runs(*map(read_run, runs)).changes} != {"intervals"}
    assert callable(damage)
    damage(runs[1])
    found = compare_runs(*map(read_run, runs))
    assert found.changes[0].basis == "intervals"
    assert any("so intervals are compared" in remark for remark in found.remarks)


def test_a_frame_of_changed_rows_warns(tmp_path: Path) -> None:
    run = made(tmp_path / "20260101-000000-0000")
    edited(run)
    with pytest.warns(DataWarning, match=OTHER):
        assert len(read_run(run).items) == 40


@pytest.mark.parametrize(
    ("outcome", "cause"), [(None, None), ("error", None), ("failed", "store"), ("failed", "timeout")]
)
def test_rows_that_were_being_written_when_a_case_broke_off_are_no_damage(
    tmp_path: Path, outcome: str | None, cause: str | None
) -> None:
    run = made(tmp_path / "20260101-000000-0000", outcome=outcome, cause=cause)
    added(run)
    assert damaged_files(read_run(run)) == ()
    edited(run)
    (damage,) = damaged_files(read_run(run))
    assert OTHER in damage.reason


def test_older_runs_told_no_digest_of_rows(tmp_path: Path) -> None:
    run = made(tmp_path / "20260101-000000-0000")
    (ledger,) = (run / "ledger").iterdir()
    records = [json.loads(line) for line in ledger.read_text().splitlines()]
    kept = [
        {k: v for k, v in one.items() if k not in ("c", *(["sha256"] if one["kind"] == "rows" else []))}
        for one in records
    ]
    ledger.write_text("".join(f"{json.dumps(one)}\n" for one in kept))
    edited(run)
    assert damaged_files(read_run(run)) == ()
    shutil.rmtree(run / "rows")
    assert len(damaged_files(read_run(run))) == 2
    write_reports(run)
