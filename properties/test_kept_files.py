"""What one run left on disk and another reads back, with any bytes in it: values of the right kind, or the name."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lm_audit.audits.privacy.stages.four_stages import is_done
from lm_audit.errors import StoreError
from lm_audit.models.endpoint.client.budget import Budget
from lm_audit.models.endpoint.client.kept import KeptAnswers
from lm_audit.models.files.disk_cache import build_once
from lm_audit.plugin.parallel.durations import read_durations
from lm_audit.report.allure.results import complete_results
from lm_audit.report.tables.summary import read_summary
from lm_audit.runstore import read_run
from lm_audit.shared.answers import answers_in
from lm_audit.shared.sealed import sealed

KEY = "0" * 32
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
written = json_values.map(lambda value: json.dumps(value).encode())
contents = (
    st.binary(max_size=200)
    | written
    | st.dictionaries(st.text(max_size=5), json_values, min_size=1).map(
        lambda value: sealed(json.dumps(value).encode())
    )
)


def durations(file: Path) -> None:
    for table in read_durations(file):
        assert all(isinstance(name, str) and seconds >= 0 for name, seconds in table.items())


def kept_answers(file: Path) -> None:
    try:
        kept = KeptAnswers(file.parent)
    except StoreError as error:
        assert str(file) in str(error)
        return
    answer = kept.get(KEY)
    assert answer is None or isinstance(answer, dict)


def spent(file: Path) -> None:
    assert isinstance(Budget(5, file.parent).total, int)


def answers(file: Path) -> None:
    with answers_in(file):
        pass


def run(file: Path) -> None:
    folder = file.parent if file.name == "run.json" else file.parent.parent
    (folder / "ledger").mkdir(exist_ok=True)
    found = read_run(folder, shown=True)
    assert isinstance(found.metadata, dict)


def summary(file: Path) -> None:
    found = read_summary(file.parent)
    assert found is None or found["version"]


def stage(file: Path) -> None:
    assert is_done(file.parent) in (True, False)


def seal(file: Path) -> None:
    folder = file.with_suffix("")
    folder.mkdir()
    (folder / "weights").write_bytes(b"damaged")
    build_once(folder, lambda scratch: (scratch / "weights").touch())
    assert not (folder / "weights").read_bytes()


def allure(file: Path) -> None:
    folder = file.parent / "run"
    (folder / "ledger").mkdir(parents=True)
    assert complete_results(read_run(folder), file.parent) == 0


READERS: dict[str, Callable[[Path], None]] = {
    "durations.json": durations,
    "answers.jsonl": kept_answers,
    "a.spent": spent,
    "case.jsonl": answers,
    "run.json": run,
    "ledger/main-1.jsonl": run,
    "summary.json": summary,
    "stage.json": stage,
    "thing.seal": seal,
    "a-result.json": allure,
}


def read(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        READERS[name](path)


@pytest.mark.parametrize("name", READERS)
@settings(deadline=None, max_examples=15)
@given(content=contents)
@example(b"")
@example(b"{")
@example(b"[" * 20_000)
@example(b"9" * 5_000)
@example(b'{"tokens": "' + b"9" * 5_000 + b'"}')
@example(b"\xff\xfe\x00")
@example(b'{"cases": {"a": "x"}, "loads": [1]}')
@example(b'{"cases": {"a": NaN}, "loads": {"b": -1}}')
@example(b'{"tokens": 1e400}\n')
@example(b'{"tokens": [1]}\n')
@example(b'{"key": "' + b"z" * 32 + b'", "answer": {}}\n')
@example(b'{"key": "' + KEY.encode() + b'", "answer": [1]}\n')
@example(b'{"labels": [1], "attachments": null, "titlePath": 3, "stop": "x"}')
@example(b'{"labels": [{"name": "case_id"}], "name": [], "titlePath": [[]], "stop": true}')
@example(b'{"version": 1, "headlines": [3]}')
def test_any_bytes(name: str, content: bytes) -> None:
    read(name, content)


@pytest.mark.parametrize("name", ["answers.jsonl", "case.jsonl"])
@settings(deadline=None, max_examples=30)
@given(record=st.dictionaries(st.sampled_from(["key", "answer", "odd"]), json_values | st.just(KEY), min_size=1))
def test_answers_of_any_form_with_a_right_seal(name: str, record: dict[str, Any]) -> None:
    read(name, sealed(json.dumps(record).encode()) + b"\n")
