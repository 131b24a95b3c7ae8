"""Labels that only many rows together show, and options and texts in forms that a single row does not tell."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.leakage import Benchmark, load_benchmark
from lm_audit.audits.leakage.items.benchmarks import named_benchmarks
from lm_audit.errors import DataError

WORDS = ["red", "blue", "green", "grey", "tall", "small", "house", "cat", "dog", "river", "stone", "clay"]
Load = Callable[..., Benchmark]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Reads rows as a benchmark of JSON lines."""

    def read(rows: Sequence[dict[str, Any]], **options: Any) -> Benchmark:
        path = tmp_path / "x.jsonl"
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
        return load_benchmark(path, **options)

    return read


def options(row: int) -> list[str]:
    """Four options that no other row has."""
    return [f"{WORDS[(row * 5 + k * 7) % 12]} {WORDS[(row + k) % 12]} {row}{k}" for k in range(4)]


def asked(texts: Callable[[int], Sequence[str]], rows: int = 8) -> list[dict[str, Any]]:
    return [{"question": f"Question {row}?", "options": list(texts(row)), "answer": "B"} for row in range(rows)]


NAMES = ("אבגד", "აბგდ", "কখগঘ", "ሀለሐመ", "១២៣៤", "١٢٣٤", "१२३४", "𝐀𝐁𝐂𝐃", "🅐🅑🅒🅓", "ABCD", ["الف", "ب", "پ", "ت"])
FRAMES = (
    "{}. {}",
    "({}) {}",
    "{}) {}",
    "<b>{}</b> {}",
    "\\textbf{{{}}} {}",
    "«{}» {}",
    "{}; {}",
    "{}.) {}",
    "\u200f{}: {}",
)


@pytest.mark.parametrize("names", NAMES, ids=range(len(NAMES)))
@pytest.mark.parametrize("frame", FRAMES)
def test_labels_of_any_alphabet_between_any_marks_are_taken_off(load: Load, names: Sequence[str], frame: str) -> None:
    found = load(asked(lambda row: [frame.format(*pair) for pair in zip(names, options(row), strict=True)]))
    assert [item.options for item in found.items] == [tuple(options(row)) for row in range(8)]
    assert any("labels such as (A) were taken off" in guess for guess in found.guesses)


@pytest.mark.parametrize("frame", ["{1}（{0}）", "{1} - {0}", "{1} <{0}>", "{1} ({0})", "{1}\n[{0}]"])
@pytest.mark.parametrize("names", ["ABCD", "АБВГ", "אבגד"])
def test_labels_behind_the_options_are_taken_off(load: Load, names: str, frame: str) -> None:
    found = load(asked(lambda row: [frame.format(*pair) for pair in zip(names, options(row), strict=True)]))
    assert [item.options for item in found.items] == [tuple(options(row)) for row in range(8)]


def test_rows_in_which_only_some_options_bear_the_label_of_the_set_are_left_out(load: Load) -> None:
    rows = asked(lambda row: [f"{name}. {text}" for name, text in zip("אבגד", options(row), strict=True)], rows=20)
    rows[7]["options"][2] = "no label"
    found = load(rows)
    assert len(found.items) == 19
    assert found.excluded == {"some options bear a label and others do not": 1}


@pytest.mark.parametrize(
    "texts",
    [
        lambda row: ["Yes, " + options(row)[0], "No, " + options(row)[1]],
        lambda row: ["x > 0", "y > 0", "z > 0"],
        lambda row: [f"the {text}" for text in options(row)],
        lambda row: [f"{row}.5 m", f"{row + 1}.5 m", f"{row + 2}.5 m"],
        lambda row: options(row),
    ],
    ids=range(5),
)
def test_options_that_bear_no_label_stay(load: Load, texts: Callable[[int], list[str]]) -> None:
    found = load(asked(texts))
    assert [item.options for item in found.items] == [tuple(texts(row)) for row in range(8)]


def test_a_mapping_of_texts_to_marks_says_which_are_right(load: Load) -> None:
    """The first release of TruthfulQA, and BIG-bench's scores of targets."""
    for marks in ([1, 0, 0, 0], [True, False, False, False], [0.0, 0.0, 1.0, 0.0]):
        rows = asked(lambda row, marks=marks: options(row))  # type: ignore[misc]
        for row in rows:
            row["options"] = dict(zip(row["options"], marks, strict=True))
            del row["answer"]
        found = load(rows)
        assert [item.options for item in found.items] == [tuple(options(row)) for row in range(8)]
        assert {item.answer for item in found.items} == {"ABCD"[list(marks).index(1)]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_one_option_a_line_has_no_line_end(load: Load, end: str) -> None:
    rows = asked(options)
    for row in rows:
        row["options"] = end.join(row["options"])
    assert [item.options for item in load(rows).items] == [tuple(options(row)) for row in range(8)]


def test_of_two_answer_columns_the_one_with_more_values_counts(load: Load) -> None:
    rows = [row | {"answer": "A" if k == 3 else None, "label": "B"} for k, row in enumerate(asked(options))]
    assert {item.answer for item in load(rows).items} == {"B"}
    rows = [row | {"answer": "C" if k != 3 else None, "label": "C"} for k, row in enumerate(asked(options))]
    benchmark = load(rows)
    assert [item.answer for item in benchmark.items] == ["C"] * 8
    assert any("1 rows have no answer in 'answer' and one in 'label'" in guess for guess in benchmark.guesses)


def test_long_texts_that_are_not_read_are_told_and_explanations_are_not(load: Load) -> None:
    rows = [row | {"narrative": ["She said: " + "word " * 30], "rationale": "since " * 40} for row in asked(options)]
    assert [guess for guess in load(rows).guesses if "'narrative' are not read" in guess and "rationale" not in guess]
    read = load(rows, columns="context=narrative")
    assert read.items[0].question.startswith("She said") and not read.guesses


def test_a_passage_that_no_row_has_is_not_said_to_be_read(load: Load) -> None:
    assert not load([row | {"passage": None} for row in asked(options)]).guesses
    late = [row | {"passage": "x" if k == 290 else None} for k, row in enumerate(asked(options, rows=300))]
    assert [guess for guess in load(late).guesses if "'passage' is read before each question" in guess]


def test_a_file_whose_name_is_no_text_is_read(tmp_path: Path) -> None:
    """Names of files may be any bytes; what a report and a seed are made of must be text."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff\x1b.jsonl"))
    path.write_text("\n".join(map(json.dumps, asked(options))), encoding="utf-8")
    found = load_benchmark(path)
    assert all(item.key.encode() for item in found.items) and found.name.encode()
    [name] = named_benchmarks([str(path)], ())
    assert name.isprintable() and name.encode()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("options=A|A|B", "'A' read twice, as options"),
        ("question=A,options=A|B", "'A' read twice, as question and options"),
        ("options=question|A|B", "'question' read twice, as question and options"),
        ("context=question", "'question' read twice, as question and context"),
        ("context=A,options=A|B", "'A' read twice, as context and options"),
        ("context=answer", "they would be given away"),
    ],
)
def test_a_column_is_read_once(load: Load, columns: str, says: str) -> None:
    rows = [{"question": f"Question {k}?", "A": f"red {k}", "B": "blue", "answer": "A"} for k in range(8)]
    with pytest.raises(DataError, match=re.escape(says)):
        load(rows, columns=columns)
    assert load(rows, columns="options=A|B,answer=A").items[0].answer == "A", "texts of a right option and wrong ones"


@pytest.mark.parametrize(
    ("columns", "answers", "told"),
    [
        ("answer-base=1", "AB", True),
        ("answer-base=1", [1, 2], False),
        ("answer-as=labels", "AB", True),
        ("answer-as=letters", "AB", False),
        ("answer-as=texts", ["red 0", "red 1"], False),
        ("header=no", "AB", True),
    ],
)
def test_a_mapping_that_nothing_follows_is_told(load: Load, columns: str, answers: Sequence[Any], told: bool) -> None:
    rows = [{"question": f"Q{k}?", "choices": [f"red {k}", f"blue {k}"], "answer": answers[k]} for k in range(2)]
    found = load(rows, columns=columns)
    assert [f"`--leakage-columns {columns}` changes nothing" in guess for guess in found.guesses] == [True] * told


def test_an_empty_cell_written_out_is_no_option(load: Load) -> None:
    """``str()`` of a missing fifth option; in a list it is an option like others."""
    rows = [{"question": f"Q{k}?", "A": f"red {k}", "B": "nan", "C": "nan", "answer": "A"} for k in range(6)]
    rows[0] |= {"B": "blue", "C": "grey"}
    rows[1] |= {"B": "nan", "C": "grey"}
    rows[2:] = [row | {"B": "blue"} for row in rows[2:]]
    assert [item.options[1:] for item in load(rows).items] == [("blue", "grey"), ("nan", "grey"), *[("blue",)] * 4]
    listed = [{"question": f"Q{k}?", "choices": [f"naan {k}", "nan"], "answer": "B"} for k in range(6)]
    assert {item.options[1] for item in load(listed).items} == {"nan"}
