"""Sets as `datasets` saves them, Arrow files, and JSON documents whose rows stand under a name: in every audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pyarrow.ipc
import pytest

from lm_audit.audits.bias.benchmarks.rows import load_rows
from lm_audit.audits.given.columnar_rows import columnar_rows
from lm_audit.audits.given.given_rows import given_rows
from lm_audit.audits.leakage.items.loading import load_benchmark
from lm_audit.audits.needle.haystack.sources import from_path
from lm_audit.audits.privacy.data.documents import read_documents
from lm_audit.errors import DataError

QUESTIONS = [
    {"question": f"Which number is {k}?", "choices": [str(k), f"not {k}", "neither", "both"], "answer": (k * 3) % 4}
    for k in range(12)
]
FEATURES = datasets.Features(
    {
        "question": datasets.Value("string"),
        "choices": datasets.Sequence(datasets.Value("string")),
        "answer": datasets.ClassLabel(names=["A", "B", "C", "D"]),
    }
)
RIGHT = ["ABCD"[(k * 3) % 4] for k in range(12)]
PAIRS = [
    {"sent_more": f"Old cat {k} naps.", "sent_less": f"Young cat {k} naps.", "stereo_antistereo": 1, "bias_type": "age"}
    for k in range(6)
]
LABELS = datasets.Features(
    {name: datasets.Value("string") for name in ("sent_more", "sent_less", "bias_type")}
    | {"stereo_antistereo": datasets.ClassLabel(names=["stereo", "antistereo"])}
)


def _set(rows: list[dict[str, Any]], features: datasets.Features | None) -> datasets.Dataset:
    return datasets.Dataset.from_list(rows, features=features)


def test_a_saved_set_of_questions_has_its_labels_by_name(tmp_path: Path) -> None:
    _set(QUESTIONS, FEATURES).save_to_disk(tmp_path / "saved", num_shards=3)
    assert [item.answer for item in load_benchmark(tmp_path / "saved").items] == RIGHT
    alone = sorted((tmp_path / "saved").glob("*.arrow"))[0]
    assert [item.answer for item in load_benchmark(alone).items] == RIGHT[:4]


def test_saved_splits_are_subjects_and_one_alone_is_its_folder(tmp_path: Path) -> None:
    both = {"train": _set(QUESTIONS[:8], FEATURES), "test": _set(QUESTIONS[8:], FEATURES)}
    datasets.DatasetDict(both).save_to_disk(tmp_path / "saved")
    assert dict(load_benchmark(tmp_path / "saved").by_file) == {"train": 8, "test": 4}
    assert [item.answer for item in load_benchmark(tmp_path / "saved" / "test").items] == RIGHT[8:]


def test_rows_that_were_chosen_are_those_that_are_read(tmp_path: Path) -> None:
    _set(QUESTIONS, FEATURES).select([7, 2, 5]).save_to_disk(tmp_path / "saved")
    assert [item.answer for item in load_benchmark(tmp_path / "saved").items] == [RIGHT[k] for k in (7, 2, 5)]
    state = json.loads((tmp_path / "saved" / "state.json").read_text())
    (tmp_path / "saved" / "state.json").write_text(json.dumps(state | {"_indices_data_files": [{"filename": "i"}]}))
    with pytest.raises(DataError, match="flatten_indices"):
        load_benchmark(tmp_path / "saved")


def test_a_saved_public_set(tmp_path: Path) -> None:
    _set(PAIRS, LABELS).save_to_disk(tmp_path / "saved")
    rows = load_rows(tmp_path / "saved", "crows_pairs")
    assert [row["stereo_antistereo"] for row in rows] == ["antistereo"] * 6
    assert len({(row["_file"], row["_row"]) for row in rows}) == 6
    (tmp_path / "saved" / "state.json").unlink()  # as in the cache of the library: files alone, with what tells of them
    assert len(load_rows(tmp_path / "saved", "crows_pairs")) == 6


@pytest.mark.parametrize("form", ["stream", "file"])
def test_both_forms_of_an_arrow_file(tmp_path: Path, form: str) -> None:
    table = _set(QUESTIONS, FEATURES).data.table
    path = tmp_path / "rows.arrow"
    opened = pyarrow.ipc.new_stream if form == "stream" else pyarrow.ipc.new_file
    with opened(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    assert [row["answer"] for _, row in columnar_rows(path)] == RIGHT


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.97])
def test_a_damaged_arrow_file_is_named(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "rows.arrow"
    table = _set(QUESTIONS, FEATURES).data.table
    with pyarrow.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(DataError, match=r"rows\.arrow"):
        list(columnar_rows(path))


def test_an_arrow_file_by_another_name_is_told(tmp_path: Path) -> None:
    _set(PAIRS, LABELS).save_to_disk(tmp_path / "saved")
    next((tmp_path / "saved").glob("*.arrow")).rename(tmp_path / "pairs.csv")
    with pytest.raises(DataError, match=r"name it \.arrow"):
        load_rows(tmp_path / "pairs.csv", "crows_pairs")


def test_an_absent_file_of_a_saved_set_is_told(tmp_path: Path) -> None:
    _set(QUESTIONS, FEATURES).save_to_disk(tmp_path / "saved", num_shards=2)
    sorted((tmp_path / "saved").glob("*.arrow"))[1].unlink()
    with pytest.raises(DataError, match="data-00001-of-00002"):
        load_benchmark(tmp_path / "saved")


def test_texts_of_a_saved_set(tmp_path: Path) -> None:
    texts = [f"Text {k} of many. " * 20 for k in range(3)]
    _set([{"text": text} for text in texts], None).save_to_disk(tmp_path / "saved")
    assert read_documents(tmp_path / "saved") == texts
    assert from_path(tmp_path / "saved").text == "\n\n".join(texts)


Rows = list[dict[str, Any]]
WRAPPED: dict[str, Callable[[Rows], dict[str, Any]]] = {
    "a split": lambda rows: {"validation": rows},
    "another case": lambda rows: {"Train": rows},
    "the row service": lambda rows: {
        "features": [{"feature_idx": 0, "name": "x"}],
        "rows": [{"row_idx": k, "row": row, "truncated_cells": []} for k, row in enumerate(rows)],
    },
    "splits": lambda rows: {"train": rows[:2], "test": rows[2:]},
    "splits under data": lambda rows: {"version": "1", "data": {"train": rows[:2], "test": rows[2:]}},
    "columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    "columns of a split": lambda rows: {"test": {name: [row[name] for row in rows] for name in rows[0]}},
    "columns by the numbers of rows": lambda rows: {
        name: {str(k): row[name] for k, row in enumerate(rows)} for name in rows[0]
    },
    "rows by their numbers": lambda rows: {str(k): row for k, row in enumerate(rows)},
    "columns named once": lambda rows: {
        "columns": list(rows[0]),
        "index": list(range(len(rows))),
        "data": [list(row.values()) for row in rows],
    },
    "examples": lambda rows: {"name": "set", "examples": rows},
}


@pytest.mark.parametrize("form", WRAPPED)
def test_rows_under_a_name(tmp_path: Path, form: str) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(WRAPPED[form](PAIRS)))
    assert [row["sent_more"] for row in load_rows(path, "crows_pairs")] == [row["sent_more"] for row in PAIRS]
    assert [row.values["sent_more"] for row in given_rows(path)] == [row["sent_more"] for row in PAIRS]
    path.write_text(json.dumps(WRAPPED[form](QUESTIONS)))
    assert [item.answer for item in load_benchmark(path).items] == RIGHT


@pytest.mark.parametrize(
    "document", [{"text": "x", "parts": [{"a": 1}]}, {"train": PAIRS, "more": PAIRS}, {"data": PAIRS, "rows": PAIRS}, 7]
)
def test_a_document_that_may_mean_something_else_is_refused(tmp_path: Path, document: object) -> None:
    (tmp_path / "set.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"set\.json"):
        list(given_rows(tmp_path / "set.json"))


@pytest.mark.parametrize("name", ["context", "dialogue", "premise"])
def test_what_comes_before_the_endings_is_the_question(tmp_path: Path, name: str) -> None:
    rows = [{name: f"He went up {k} steps.", "label": k % 2} | dict(ending_0="Down.", ending_1="Up.") for k in range(4)]
    (tmp_path / "endings.jsonl").write_text("\n".join(map(json.dumps, rows)))
    items = load_benchmark(tmp_path / "endings.jsonl").items
    assert [(item.question, item.answer) for item in items] == [
        (f"He went up {k} steps.", "AB"[k % 2]) for k in range(4)
    ]


def test_a_wrapped_row_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set.json").write_text(json.dumps([{"row_idx": 0, "row": 5}]))
    with pytest.raises(DataError, match="row 1: is a JSON int; an object is expected"):
        load_rows(tmp_path / "set.json", "bbq")
