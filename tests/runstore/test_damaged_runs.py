"""Runs that were damaged, copied about or made elsewhere: what cannot be read is named, and the rest is reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lm_audit.cli import main
from lm_audit.errors import StoreError
from lm_audit.report import write_reports
from lm_audit.report.index.all_runs import write_index
from lm_audit.runstore.normalise import DEEPEST, plain
from lm_audit.runstore.records import SCHEMA_VERSION
from lm_audit.runstore.run import read_run
from lm_audit.runstore.run_record import text_of
from tests.report.made_runs import MadeCase, chart, preference, share, write_run

CASE = "t.py::test_x[m@cpu-a]"


def made(tmp_path: Path, *cases: MadeCase, **metadata: Any) -> Path:
    """A run of one case, or of these."""
    case = MadeCase(CASE, "bias", "m", metrics={"bias.x": share(0.4)}, rows=[{"item": "a"}], figures=[chart(0)])
    return write_run(tmp_path / "reports" / "20260101-000000-0000", cases or [case], **metadata)


def ledger(run: Path) -> Path:
    """Its one ledger."""
    (path,) = (run / "ledger").glob("*.jsonl")
    return path


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("lines", [None, 3], ids=["whole", "part"])
def test_the_same_ledger_twice_counts_once(tmp_path: Path, lines: int | None) -> None:
    run = made(tmp_path)
    before = read_run(run)
    content = ledger(run).read_text().splitlines(keepends=True)
    (run / "ledger" / "main-1 (copy).jsonl").write_text("".join(content[:lines]))
    after = read_run(run)
    assert after.cases[0].last.metrics == before.cases[0].last.metrics and not after.cases[0].earlier
    (damage,) = after.damaged
    assert "copies of lines in another ledger" in damage.reason and damage.file.startswith("ledger/main-")
    assert "copies of lines" in write_reports(run).read_text()


def test_a_ledger_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    run = made(tmp_path)
    (run / "ledger" / "gw0-1.jsonl").mkdir()
    (run / "ledger" / "gw1-1.jsonl").symlink_to("nowhere")
    damaged = {damage.file: damage.reason[:14] for damage in read_run(run).damaged}
    assert damaged == {"ledger/gw0-1.jsonl": "is a folder; a", "ledger/gw1-1.jsonl": "cannot be read"}
    write_reports(run)


def test_a_ledger_without_read_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path)
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name in (ledger(run).name, "run.json"):
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    found = read_run(run)
    assert [damage.reason for damage in found.damaged] == ["cannot be read: Permission denied"] * 2
    assert [damage.file for damage in found.damaged] == [f"ledger/{ledger(run).name}", "run.json"]
    write_reports(run)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '"x"', "\ufeff{}", "[" * 100_000, '{"a":' * 5_000, '{"exitstatus": 1%s}' % ("0" * 5_000),
     '{"options": [1], "versions": 3, "sessions": {}, "exitstatus": "x", "started": [], "finished": {}}',
     '{"options": {"tags": 5, "models": [], "devices": "x", "seed": "s"}}', '{"started": 1e400, "size": {"a": NaN}}'],
    ids=range(11),
)  # fmt: skip
def test_a_damaged_run_json_is_named_and_the_run_is_reported(tmp_path: Path, content: str) -> None:
    run = made(tmp_path)
    (run / "run.json").write_text(content, encoding="utf-8")
    write_reports(run)
    write_index(run.parent)
    found = read_run(run)
    assert found.cases[0].last.metrics and all(damage.file == "run.json" for damage in found.damaged)
    assert main(["report", str(run)]) == 0 and main(["compare", str(run), str(run)]) == 0


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 0, "1", None, True, [1]], ids=str)
def test_a_run_json_of_another_version_is_named(tmp_path: Path, version: object) -> None:
    run = made(tmp_path)
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"schema_version": SCHEMA_VERSION}))
    assert not read_run(run).damaged
    (run / "run.json").write_text(json.dumps(record | {"schema_version": version}))
    assert "schema_version is not what it must be" in read_run(run).damaged[0].reason


@pytest.mark.parametrize("gone", [True, False])
def test_a_run_that_ended_and_holds_no_record_is_named(tmp_path: Path, gone: bool) -> None:
    run = made(tmp_path)
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"finished": "2026-01-01T00:00:00+0000"}))
    assert not read_run(run).damaged
    ledger(run).unlink() if gone else ledger(run).write_bytes(b"")
    (damage,) = read_run(run).damaged
    assert "holds no record" in damage.reason
    (run / "run.json").write_text(json.dumps(record | {"finished": None}))
    assert not read_run(run).damaged


@pytest.mark.parametrize("content", ["[", "[" * 100_000, '{"version": 1}', '{"version": 1, "headlines": [3]}', "\x00"])
def test_a_damaged_summary_counts_as_none(tmp_path: Path, content: str) -> None:
    run = made(tmp_path)
    write_reports(run)
    (run / "summary.json").write_text(content)
    assert "No report was written yet." in write_index(run.parent).read_text()


@pytest.mark.parametrize("levels", [DEEPEST + 5, 900, 100_000])
def test_deep_records_are_named(tmp_path: Path, levels: int) -> None:
    run = made(tmp_path)
    head = f'{{"v":1,"t":1,"s":0,"m":9e9,"kind":"parameter","case_id":"{CASE}","attempt":1,"name":"x","value":'
    with ledger(run).open("a") as file:
        file.write(head + "[" * levels + "]" * levels + "}\n")
    (rows,) = (run / "rows").iterdir()
    with rows.open("a") as file:
        file.write('{"item":"b","x":' + "[" * levels + "]" * levels + "}\n")
    (damage,) = read_run(run).damaged
    assert f"nested more than {DEEPEST} levels deep" in damage.reason
    assert "damaged records" in write_reports(run).read_text()


def test_what_is_too_deep_or_too_long_to_be_read_is_not_recorded() -> None:
    assert plain(nested(DEEPEST - 3)) == nested(DEEPEST - 3)
    for value in (nested(DEEPEST), nested(100_000), {"a": nested(DEEPEST)}):
        with pytest.raises(StoreError, match="levels deep"):
            plain(value)
    assert plain(10**3_000) == 10**3_000
    with pytest.raises(StoreError, match="integer of more than 4000 digits; record it as text"):
        plain({"row": 10**5_000})


@pytest.mark.parametrize("number", ["1" + "0" * 5_000, "1" + "0" * 400, "-1" + "0" * 400, "1e999", "NaN"])
@pytest.mark.parametrize("field", ["value", "low", "n", "duration_s", "t", "m", "s", "rows"])
def test_numbers_beyond_all_use_are_named(tmp_path: Path, number: str, field: str) -> None:
    run = made(tmp_path)
    if field == "rows":
        (path,) = (run / "rows").iterdir()
        text = path.read_text() + f'{{"item":"b","x":{number}}}\n'
    else:
        path = ledger(run)
        lines = path.read_text().splitlines(keepends=True)
        at = next(k for k, line in enumerate(lines) if f'"{field}":' in line and '"case_id":' in line)
        head, _, tail = lines[at].partition(f'"{field}":')
        rest = tail[min(tail.index(sign) for sign in ",}" if sign in tail) :]
        lines[at] = f'{head}"{field}":{number}{rest}'
        text = "".join(lines)
    path.write_text(text)
    write_reports(run)
    assert field == "rows" or read_run(run).damaged


@pytest.mark.parametrize("level", ["-1e308", "95", "-1", '"0.95"'])
def test_a_confidence_that_is_no_share_is_named(tmp_path: Path, level: str) -> None:
    run = made(tmp_path)
    text = ledger(run).read_text()
    assert text.count('"confidence":0.95') == 1
    ledger(run).write_text(text.replace('"confidence":0.95', f'"confidence":{level}'))
    write_reports(run)
    assert read_run(run).damaged


def test_a_finding_whose_weight_is_no_truth_value_is_named(tmp_path: Path) -> None:
    run = made(tmp_path, MadeCase(CASE, "bias", "m", findings=[preference(0.9, 400)]))
    text = ledger(run).read_text()
    assert text.count('"finding":{') == 1 and '"headline"' not in text
    ledger(run).write_text(text.replace('"finding":{', '"finding":{"headline":[[1]],'))
    write_reports(run)
    assert read_run(run).damaged


def test_names_of_five_thousand_characters(tmp_path: Path) -> None:
    long = "x" * 5_000
    case = MadeCase(f"t{long}.py::test_{long}[{long}@cpu-{long}]", long, long, device=long, message=long, notes=[long],
                    outcome="failed", metrics={f"bias.{long}": share(0.4)}, rows=[{"item": long, long: 1}],
                    figures=[chart(0, long)], parameters={long: long})  # fmt: skip
    run = made(tmp_path, case, options={"tags": [long], "models": {long: long}})
    write_reports(run)
    write_index(run.parent)
    assert main(["compare", str(run), str(run)]) == 0
    assert read_run(run).cases[0].last.metrics and not read_run(run).damaged


def test_an_empty_folder_of_ledgers_and_one_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    (run / "ledger").mkdir(parents=True)
    assert main(["report", str(run)]) == 0
    shutil.rmtree(run / "ledger")
    (run / "ledger").write_text("")
    assert main(["report", str(run)]) == 2
    assert "no run" in capsys.readouterr().err


def test_a_shard_mark_that_is_none_refuses_the_merge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(tmp_path)
    lines = [json.loads(line) for line in ledger(run).read_text().splitlines()]
    next(line for line in lines if line["kind"] == "plan")["shard"] = {"index": []}
    ledger(run).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["merge", str(run), "-o", str(tmp_path / "out")]) == 2
    assert "what its plan says of shards is damaged" in capsys.readouterr().err


def test_a_merge_says_why_no_plan_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(tmp_path)
    ledger(run).write_bytes(b"\0" * 99)
    assert main(["merge", str(run), "-o", str(tmp_path / "out")]) == 2
    assert "it holds no plan, 1 damaged record or file: ledger/" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "[]", '{"seed": 1', "folder"])
def test_a_merge_does_not_lose_the_damage_of_run_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    """Two parts that both lost it would be held for parts of one run, and the merged one would look whole."""
    run = made(tmp_path)
    (run / "run.json").unlink()
    with ledger(run).open("a") as lines:  # by a process that measured
        lines.write('{"v":1,"t":0.5,"m":0.5,"kind":"run_start","run":"r","pid":1}\n')
    if content == "folder":
        (run / "run.json").mkdir()
    elif content is not None:
        (run / "run.json").write_text(content)
    assert read_run(run).damaged
    assert main(["merge", str(run), "-o", str(tmp_path / "out"), "--partial"]) == 2
    assert "run.json: " in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_value_of_run_json_that_was_changed_is_named_and_a_lost_one_too(tmp_path: Path) -> None:
    run, record = made(tmp_path), {"schema_version": SCHEMA_VERSION, "options": {"seed": 4}}
    text = text_of(record)
    (run / "run.json").write_text(text)
    assert not read_run(run).damaged and read_run(run).metadata == record
    (run / "run.json").write_text(text.replace('"seed": 4', '"seed": 5'))
    assert [damage.reason for damage in read_run(run).damaged if "checksum" in damage.reason]
    (run / "run.json").unlink()
    assert not read_run(run).damaged  # These lines were written by no process that measured.
    with ledger(run).open("a") as lines:
        lines.write('{"v":1,"t":0.5,"m":0.5,"kind":"run_start","run":"r","pid":1}\n')
    (damage,) = read_run(run).damaged
    assert damage.file == "run.json" and "is not there" in damage.reason
