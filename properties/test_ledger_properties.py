"""Whatever is recorded comes back, and whatever damages a ledger costs no more than the lines it hits."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lm_audit.runstore import read_run
from lm_audit.runstore.attempt import AttemptWriter
from lm_audit.runstore.layout import RunFolder
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.normalise import plain, restored
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
