"""Options that a table made of JSON spreads over columns, and other forms in which pandas writes a set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest

from lm_audit.audits.leakage.items.item import Item, duplicate_options
from lm_audit.audits.leakage.items.loading import load_benchmark

TEXTS = ["a heron", "a stork", "an egret", "a crane"]
RIGHT = ["C", "A", "D", "B", "B"]
NESTED: list[dict[str, Any]] = [
    {
        "question": f"Which bird is number {k}?",
        "choices": {"text": [f"{text} {k}" for text in TEXTS], "label": list("ABCD")},
        "answerKey": letter,
    }
    for k, letter in enumerate(RIGHT)
]


def _flat(row: dict[str, Any], named: str, names: str) -> dict[str, Any]:
    texts = row["choices"]["text"]
    return {"question": row["question"], "answer": row["answerKey"]} | {
        f"{named}{name}": text for name, text in zip(names, texts, strict=True)
    }


def _as_said(path: Path) -> bool:
    items = load_benchmark(path).items
    return [item.answer for item in items] == RIGHT and [list(item.options) for item in items] == [
        row["choices"]["text"] for row in NESTED
    ]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("named", "names"), [("choices.", "ABCD"), ("options.", "0123"), ("options/", "abcd"), ("answer_choices.", "0123")]
)
def test_an_option_a_column_under_the_name_of_the_list(tmp_path: Path, named: str, names: str, ending: str) -> None:
    path = tmp_path / f"set.{ending}"
    table = pandas.DataFrame([_flat(row, named, names) for row in NESTED])
    if ending == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_json(path, orient="records", lines=True)
    assert _as_said(path)


def test_what_json_normalize_makes_of_records(tmp_path: Path) -> None:
    pandas.json_normalize(NESTED).to_csv(tmp_path / "set.csv", index=False)
    stems = [
        {"question": {"stem": r["question"], "choices": _records(r["choices"])}, "answerKey": r["answerKey"]}
        for r in NESTED
    ]
    pandas.json_normalize(stems).to_json(tmp_path / "stems.jsonl", orient="records", lines=True)
    assert _as_said(tmp_path / "set.csv") and _as_said(tmp_path / "stems.jsonl")


def _records(choices: dict[str, list[str]]) -> list[dict[str, str]]:
    return [{"text": text, "label": label} for text, label in zip(choices["text"], choices["label"], strict=True)]


@pytest.mark.parametrize("names", ["ABCD", "abcd", "PQRS", "1234"])
def test_options_each_in_a_record_of_its_label(tmp_path: Path, names: str) -> None:
    rows = [
        {
            "question": row["question"],
            "options": [{name: text} for name, text in zip(names, row["choices"]["text"], strict=True)],
            "answer": names["ABCD".index(row["answerKey"])],
        }
        for row in NESTED
    ]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert _as_said(tmp_path / "set.jsonl")


@pytest.mark.parametrize("orient", ["split", "records", "columns", "index", "table"])
def test_every_form_in_which_pandas_writes_a_table(tmp_path: Path, orient: Any) -> None:
    table = pandas.DataFrame([_flat(row, "", "ABCD") for row in NESTED])
    table.to_json(tmp_path / "set.json", orient=orient)
    assert _as_said(tmp_path / "set.json")


@pytest.mark.parametrize("written", ["#### {}", "####{}.", "## {}"])
def test_a_letter_behind_number_signs(tmp_path: Path, written: str) -> None:
    rows = [_flat(row, "", "ABCD") | {"answer": written.format(row["answerKey"])} for row in NESTED]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert _as_said(tmp_path / "set.jsonl")


@pytest.mark.parametrize("digits", ["٠١٢٣٤", "०१२३४", "๐๑๒๓๔", "０１２３４", "၀၁၂၃၄"])
@pytest.mark.parametrize("base", [0, 1])
def test_numbers_in_digits_of_another_script(tmp_path: Path, digits: str, base: int) -> None:
    rows = [_flat(r, "", "ABCD") | {"answer": digits["ABCD".index(r["answerKey"]) + base]} for r in NESTED]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert _as_said(tmp_path / "set.jsonl")


def test_a_column_of_a_huge_number_makes_no_huge_list(tmp_path: Path) -> None:
    rows = [_flat(row, "options.", "0123") | {"options.999999999999": "a swan"} for row in NESTED]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert len(load_benchmark(tmp_path / "set.jsonl").items[0].options) <= 5


@pytest.mark.parametrize(
    "twin", ["caf\u00e9 au lait", "cafe\u0301 au lait", "caf\u00e9  au lait ", "caf\u00e9 au\u200b lait"]
)
def test_options_that_look_the_same_are_twins(twin: str) -> None:
    assert duplicate_options(Item("1", "f", "Which?", ("tea", "caf\u00e9 au lait", twin))) == ("B", "C")
    assert duplicate_options(Item("1", "f", "Which?", ("tea", "caf\u00e9 au lait", "cafe au lait", "Tea"))) is None
