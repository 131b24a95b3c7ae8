"""Whatever is recorded comes back, and whatever damages a ledger costs no more than the lines it hits."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lm_audit.evidence import Control
from lm_audit.runstore import read_run
from lm_audit.runstore.attempt import AttemptWriter
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.normalise import plain, restored
from lm_audit.runstore.records import Run
from lm_audit.shared.sealed import sealed, unsealed
from lm_audit.sources import MetricSource
from lm_audit.stats.estimate import Estimate

texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts.filter(lambda key: key != "$float"), inner, max_size=3)
    ),
    max_leaves=8,
)
metrics = st.dictionaries(texts, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4)


def same(left: object, right: object) -> bool:
    """Equality in which NaN equals itself, and an integer is not a float."""
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


@given(values)
def test_values_survive_json(value: object) -> None:
    text = json.dumps(plain(value), allow_nan=False)
    assert same(restored(json.loads(text)), value)


def written(folder: Path, attempts: list[dict[str, float]]) -> tuple[RunFolder, Path]:
    """A run in which one case was tried once for each of ``attempts``."""
    run = RunFolder(folder / "20260101-000000-0000")
    run.create()
    ledger = Ledger(run.ledger, "main")
    for number, recorded in enumerate(attempts, 1):
        writer = AttemptWriter(run, ledger, "t.py::x[a]", number)
        writer.start(audit="bias", model=None, device=None, fingerprint=None)
        for name, value in recorded.items():
            writer.metric(name, Estimate(value))
        writer.end("passed", 1.0)
    ledger.close()
    return run, ledger.path


@given(st.lists(metrics, min_size=1, max_size=3))
def test_the_last_attempt_stands(attempts: list[dict[str, float]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = read_run(written(Path(folder), attempts)[0].path)
    (case,) = run.cases
    found = [{name: e.value for name, e in a.metrics.items()} for a in (*case.earlier, case.last)]
    assert found == attempts
    assert not run.damaged


@given(metrics, st.data())
def test_a_ledger_cut_at_any_byte_keeps_every_whole_line(recorded: dict[str, float], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, path = written(Path(folder), [recorded])
        content = path.read_bytes()
        # As a share: the length of a ledger differs from run to run by the digits of its times.
        cut = data.draw(st.integers(0, 10_000), "cut") * len(content) // 10_000
        path.write_bytes(content[:cut])
        found = read_run(run.path)
    whole = content[:cut].count(b"\n")
    kept = found.cases[0].last.metrics if found.cases else {}
    assert len(kept) == min(max(whole - 1, 0), len(recorded))
    assert {name: e.value for name, e in kept.items()}.items() <= recorded.items()
    assert len(found.damaged) == (0 if content[:cut].endswith(b"\n") or cut == 0 else 1)


@given(metrics, st.data())
def test_garbage_in_a_line_costs_that_line_and_is_named(recorded: dict[str, float], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, path = written(Path(folder), [recorded])
        lines = path.read_bytes().splitlines(keepends=True)
        hit = data.draw(st.integers(1, len(recorded)), "line")
        garbage = data.draw(
            st.binary(min_size=1, max_size=30).filter(lambda b: b.strip() and b"\n" not in b), "garbage"
        )
        lines[hit] = garbage + lines[hit]
        path.write_bytes(b"".join(lines))
        found = read_run(run.path)
    assert [damaged.line for damaged in found.damaged] == [hit + 1] or garbage.strip() == b""
    assert len(found.cases[0].last.metrics) == len(recorded) - 1


hostile = st.sampled_from(
    [None, True, False, -1, 0, 1, 1.5, 1e308, 2**70, "", "x", "passed", "../../x", [], {}, [[1]], ["x"],
     {"a": {"b": [1]}}, {"$float": "nan"}]
)  # fmt: skip


def everything(folder: Path) -> tuple[RunFolder, list[dict[str, object]]]:
    """A run whose one attempt, a control that failed, recorded one of everything; and the records of its ledger."""
    run = RunFolder(folder / "20260101-000000-0000")
    run.create()
    ledger = Ledger(run.ledger, "main")
    ledger.write("run_start", run=run.run_id)
    ledger.write("plan", cases=[{"case_id": "t.py::x[a]"}])
    writer = AttemptWriter(run, ledger, "t.py::x[a]", 1)
    writer.start(audit="bias", model="m", device="cpu", fingerprint="f", control="positive", markers=["bias"])
    writer.model(fingerprint="w", dtype="float32")
    writer.metric("bias.x", Estimate(0.5, 0.4, 0.6, n=10), MetricSource.mean("score", clusters=("item",)))
    writer.rows([{"item": "a", "score": 0.5}])
    writer.parameter("p", 1)
    writer.note("n")
    writer.headline("bias.x")
    writer.control(Control("positive", False, "e", "o"))
    writer.end("failed", 1.0, cause="control")
    ledger.write("run_end", exitstatus=1, interrupted=False)
    ledger.close()
    return run, [json.loads(unsealed(line)) for line in ledger.path.read_bytes().splitlines()]


def resealed(run: RunFolder, records: list[dict[str, object]]) -> Run:
    """The run as read when its ledger holds these records, each with a right checksum."""
    (path,) = run.ledger.glob("*.jsonl")
    path.write_bytes(b"".join(sealed(json.dumps(record).encode()) + b"\n" for record in records))
    return read_run(run.path)


@given(st.data())
def test_a_sealed_record_with_another_value_never_makes_a_failed_case_pass(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, records = everything(Path(folder))
        record = data.draw(st.sampled_from([one for one in records if one["kind"] != "case_end"]), "record")
        where: dict[str, object] = record
        name = data.draw(st.sampled_from(sorted(where.keys() - {"v", "t", "s", "m"})), "field")
        while isinstance(inner := where[name], dict) and inner and data.draw(st.booleans(), "deeper"):
            where, name = inner, data.draw(st.sampled_from(sorted(inner)), "field")
        value = where[name] = data.draw(hostile, "value")
        found = resealed(run, records)
    untyped = name in ("value", "dtype", "p") or record["kind"] == "run_start"
    for case in found.cases:
        kept = case.last.control
        assert case.outcome != "passed" and (kept is None or kept.passed is (name == "passed" and value is True))
        assert case.last.incomplete or case.outcome == "unfinished" or len(case.last.metrics) == 1
    if isinstance(value, dict) and name not in ("where", "options") and not untyped:
        assert found.damaged and all(damage.file.startswith("ledger/") for damage in found.damaged)


@given(st.integers(2, 10), st.data())
def test_a_record_that_stands_twice_counts_once_and_hides_no_lost_one(at: int, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, records = everything(Path(folder))
        last = next(k for k, record in enumerate(records) if record["kind"] == "case_end")
        lost = data.draw(st.integers(3, last - 1).filter(lambda k: k != at), "lost")
        whole = resealed(run, [*records[: at + 1], records[at], *records[at + 1 :]])
        short = resealed(run, [record for k, record in enumerate(records) for _ in range(1 + (k == at)) if k != lost])
    assert whole.damaged and not whole.cases[0].last.incomplete and whole.cases[0].last.n_rows == 1
    assert short.cases[0].last.incomplete
