"""Several columns that may say which option is right, and marks that say it of each option."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.leakage import load_benchmark
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.errors import DataError

FOUR = ["red clay", "blue sand", "green loam", "grey silt"]
KEY = [2, 0, 3, 1, 1, 2, 0, 3]
RIGHT = ["ABCD"[k] for k in KEY]
OTHER = ["ABCD"[(k + 1) % 4] for k in KEY]
MARKS = [[int(k == right) for k in range(4)] for right in KEY]


def read(folder: Path, columns: str | None = None, /, **given: Any) -> Benchmark:
    """A set of eight questions with these columns beside the question; ``choices`` unless others are among them."""
    asked: dict[str, Any] = {"question": [f"Which soil is it, {k}?" for k in range(8)], "choices": [FOUR] * 8}
    rows = [{name: values[k] for name, values in (asked | given).items() if values} for k in range(8)]
    path = folder / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return load_benchmark(path, columns=columns)


def answers(benchmark: Benchmark) -> list[str]:
    return [item.answer for item in benchmark.items]


AGREEING: dict[str, list[Any]] = {
    "answer": list(RIGHT),
    "label": list(KEY),
    "answer_idx": [k + 1 for k in KEY],
    "answer_text": [FOUR[k] for k in KEY],
    "gold": [[k] for k in KEY],
    "labels": MARKS,
    "target_scores": [dict(zip(FOUR, marks, strict=True)) for marks in MARKS],
}


@pytest.mark.parametrize("first", AGREEING)
@pytest.mark.parametrize("second", AGREEING)
def test_columns_that_agree_are_no_matter(tmp_path: Path, first: str, second: str) -> None:
    benchmark = read(tmp_path, **{first: AGREEING[first], second: AGREEING[second]})
    assert answers(benchmark) == RIGHT
    assert not any("differ" in guess for guess in benchmark.guesses)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("label", OTHER),
        ("answer_idx", ["ABCD".index(letter) + 1 for letter in OTHER]),
        ("answer_text", [FOUR["ABCD".index(letter)] for letter in OTHER]),
        ("gold", [[letter] for letter in OTHER]),
        ("labels", [[int("ABCD"[k] == letter) for k in range(4)] for letter in OTHER]),
        ("is_correct", [["ABCD"[k] == letter for k in range(4)] for letter in OTHER]),
    ],
)
def test_columns_that_contradict_each_other_are_refused_with_the_row(
    tmp_path: Path, name: str, values: list[Any]
) -> None:
    one_row = [*AGREEING[name][:5], values[5], *AGREEING[name][6:]] if name in AGREEING else values
    for second in (values, one_row):
        with pytest.raises(DataError, match=rf"has two answers: 'answer' says . where '{name}' says") as error:
            read(tmp_path, answer=RIGHT, **{name: second})
        assert str(error.value.file).endswith("set.jsonl") and error.value.row is not None
    assert error.value.row == (6 if name in AGREEING else 1)
    assert answers(read(tmp_path, "answer=answer", answer=RIGHT, **{name: values})) == RIGHT
    assert answers(read(tmp_path, f"answer={name}", answer=RIGHT, **{name: values})) == OTHER


def test_marks_in_the_options_contradict_a_column(tmp_path: Path) -> None:
    records = [[{"text": t, "is_correct": bool(m)} for t, m in zip(FOUR, marks, strict=True)] for marks in MARKS]
    assert answers(read(tmp_path, choices=records)) == RIGHT
    assert answers(read(tmp_path, choices=records, answer=RIGHT)) == RIGHT
    with pytest.raises(DataError, match=r"'answer' says . where the marks in choices says"):
        read(tmp_path, choices=records, answer=OTHER)
    assert answers(read(tmp_path, "answer=answer", choices=records, answer=OTHER)) == OTHER


@pytest.mark.parametrize(
    "more",
    [
        {"label": ["easy", "hard"] * 4},
        {"correct": [True, False] * 4},
        {"target": ["a sentence of its own"] * 8},
        {"labels": [list("ABCD")] * 8},
        {"ra": [77] * 8},
        {"label": [None] * 8, "gold": [""] * 8},
        {"answer_text": [FOUR[KEY[0]], *[None] * 7]},
    ],
)
def test_columns_that_hold_something_else_are_no_answers(tmp_path: Path, more: dict[str, list[Any]]) -> None:
    benchmark = read(tmp_path, answer=RIGHT, **more)
    assert answers(benchmark) == RIGHT and not benchmark.guesses


@pytest.mark.parametrize(
    "more",
    [
        {"label": [0, 1, 2, 3] * 2},  # classes of any kind
        {"correct_answer": [None, None, None, "A", *[None] * 4]},  # the corrections of a few (MMLU-Redux)
    ],
)
def test_doubtful_columns_that_differ_are_told(tmp_path: Path, more: dict[str, list[Any]]) -> None:
    benchmark = read(tmp_path, answer=RIGHT, **more)
    assert answers(benchmark) == RIGHT
    [told] = benchmark.guesses
    assert told.startswith("answers are read from 'answer': 'answer' says") and f"answer={next(iter(more))}" in told


def test_an_answer_in_words_of_its_own_leaves_the_key_to_another_column(tmp_path: Path) -> None:
    words = [f"It must be so, since day {k} was dry." for k in range(8)]
    assert answers(read(tmp_path, answer=words, answerKey=RIGHT)) == RIGHT
    with pytest.raises(DataError, match="none of the options"):
        read(tmp_path, answer=words)


def test_a_column_beside_says_where_numbers_count_from(tmp_path: Path) -> None:
    middle = [1, 2, 1, 2, 1, 2, 1, 2]
    with pytest.raises(DataError, match="answer-base=0"):
        read(tmp_path, answer=middle)
    for base in (0, 1):
        texts = [FOUR[k - base] for k in middle]
        assert answers(read(tmp_path, answer=middle, answer_text=texts)) == ["ABCD"[k - base] for k in middle]


def test_answers_under_a_name_nobody_knows_are_told(tmp_path: Path) -> None:
    benchmark = read(tmp_path, richtig=RIGHT, level=list(range(8)))
    assert answers(benchmark) == [""] * 8
    [told] = benchmark.guesses
    assert "'richtig' may be one: `--leakage-columns answer=richtig` reads it" in told
    assert answers(read(tmp_path, "answer=richtig", richtig=RIGHT)) == RIGHT


@pytest.mark.parametrize("name", ["Correct answer(s)", "correct_options", "correctOptionIndex", "answer_indices"])
def test_numbers_under_a_name_that_says_answers_are_told(tmp_path: Path, name: str) -> None:
    numbers = ["ABCD".index(letter) + 1 for letter in RIGHT]
    for cells in (numbers, [[number] for number in numbers]):
        benchmark = read(tmp_path, **{name: cells}, level=[1, 2] * 4)
        assert f"`--leakage-columns answer={name}` reads it" in benchmark.guesses[0]
        assert answers(read(tmp_path, f"answer={name}", **{name: cells})) == RIGHT
    assert not read(tmp_path, A_correct=[0, 1] * 4, B_correct=[1, 0] * 4).guesses


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("labels", MARKS),
        ("labels", [[str(mark) for mark in marks] for marks in MARKS]),
        ("labels", [str(marks) for marks in MARKS]),
        ("is_correct", [[mark == 1 for mark in marks] for marks in MARKS]),
        ("answer", [str(marks) for marks in MARKS]),
        ("labels", [["right" if mark else "wrong" for mark in marks] for marks in MARKS]),  # classes of the hub
        ("target_scores", [dict(zip("ABCD", marks, strict=True)) for marks in MARKS]),
        ("target_scores", [json.dumps(dict(zip(FOUR, marks, strict=True))) for marks in MARKS]),
    ],
)
def test_marks_of_each_option(tmp_path: Path, name: str, values: list[Any]) -> None:
    assert answers(read(tmp_path, **{name: values})) == RIGHT


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("mc1_targets", lambda marks: {"choices": FOUR, "labels": marks}),
        ("mc1_targets", lambda marks: dict(zip(FOUR, marks, strict=True))),
        ("target_scores", lambda marks: dict(zip(FOUR, marks, strict=True))),
        ("choices", lambda marks: {"text": FOUR, "is_correct": marks}),
        ("options", lambda marks: {"key": list("ABCD"), "value": FOUR, "is_correct": marks}),
        ("options", lambda marks: [{"text": t, "correct": m} for t, m in zip(FOUR, marks, strict=True)]),
        (
            "choices",
            lambda marks: [{"atext": FOUR[k], "aid": k, "isCorrect": mark} for k, mark in enumerate(marks)],
        ),
    ],
    ids=range(7),
)
def test_options_that_hold_their_marks(tmp_path: Path, column: str, value: Any) -> None:
    given = {"choices": [], column: [value(marks) for marks in MARKS]}
    benchmark = read(tmp_path, **given)
    assert answers(benchmark) == RIGHT
    assert {item.options for item in benchmark.items} == {tuple(FOUR)}


def test_a_list_of_options_is_no_row_of_marks(tmp_path: Path) -> None:
    yes_no = [["yes", "no"]] * 8
    assert answers(read(tmp_path, choices=yes_no, answer=yes_no)) == ["A,B"] * 8
    assert answers(read(tmp_path, choices=yes_no, labels=[["no", "yes"]] * 8)) == [""] * 8


def test_short_texts_with_scores_are_options(tmp_path: Path) -> None:
    scores = [{"+": int(k == 0), "-": int(k == 1)} for k in KEY[:4] * 2]
    benchmark = read(tmp_path, choices=[], target_scores=scores)
    assert benchmark.items[0].options == ("+", "-")
    assert answers(benchmark) == ["", "A", "", "B"] * 2
    assert any("4 of 8 questions have no option marked as right; the first is row 1" in g for g in benchmark.guesses)


def test_how_many_are_right_is_told_or_refused(tmp_path: Path) -> None:
    two = [*MARKS[:3], [1, 1, 0, 0], *MARKS[4:]]
    several = read(tmp_path, labels=two)
    assert answers(several)[3] == "A,B"
    assert "1 of 8 questions have several options marked as right; the first is row 4" in several.guesses[0]
    none = read(tmp_path, labels=[*MARKS[:3], [0] * 4, *MARKS[4:]])
    assert answers(none)[3] == ""
    assert "1 of 8 questions have no option marked as right; the first is row 4" in none.guesses[0]
    assert not read(tmp_path, labels=[[0] * 4] * 8).guesses
    targets = [{"choices": FOUR, "labels": marks} for marks in two]
    one = read(tmp_path, choices=[], mc1_targets=targets)
    assert [(left.row, left.reason) for left in one.exclusions] == [
        (4, "mc1_targets marks 2 options as right; exactly one is")
    ]
    halves: list[Any] = [*MARKS[:3], [0.5, 0.5, 0, 0], *MARKS[4:]]
    scores = [dict(zip(FOUR, marks, strict=True)) for marks in halves]
    [left] = read(tmp_path, choices=[], target_scores=scores).exclusions
    assert left.row == 4 and "not all 0 or 1" in left.reason


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"choices": [], "answers": [FOUR] * 8, "correct_answer_id": KEY}, None),  # QuAIL; ReClor with label
        ({"choices": [], "choice": [FOUR] * 8, "answer": [FOUR[k] for k in KEY]}, None),  # DREAM
        ({"answer_text": RIGHT}, None),  # M3Exam
        ({"question": [], "instruction": [f"Which {k}?" for k in range(8)], "answer": RIGHT}, "Which 0?"),  # Okapi
        ({"question": [], "startphrase": [f"Which {k}?" for k in range(8)], "label": KEY}, "Which 0?"),  # SWAG
        (
            {
                "question": [],
                "choices": [],
                "qtext": [f"Which {k}?" for k in range(8)],
                "answers": [[{"aid": k, "atext": text} for k, text in enumerate(FOUR, 1)]] * 8,
                "ra": [k + 1 for k in KEY],
            },
            "Which 0?",
        ),  # HEAD-QA
    ],
)
def test_more_layouts_of_public_sets(tmp_path: Path, given: dict[str, list[Any]], asked: str | None) -> None:
    benchmark = read(tmp_path, **given)
    assert answers(benchmark) == RIGHT and benchmark.items[0].options == tuple(FOUR)
    assert asked in (None, benchmark.items[0].question)


def test_a_list_of_accepted_answers_is_no_list_of_options(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column for options"):
        read(tmp_path, choices=[], answers=[["Paris", "the city of Paris"]] * 8)


def test_numbers_with_a_mark_each_are_options(tmp_path: Path) -> None:
    scores = [{"54": int(k == 0), "58": int(k == 1), "56": int(k == 2)} for k in [0, 1, 2, 0, 1, 2, 0, 1]]
    for column in ("mc1_targets", "options"):
        benchmark = read(tmp_path, choices=[], **{column: scores})
        assert benchmark.items[0].options == ("54", "58", "56") and answers(benchmark) == list("ABCABCAB")
