"""Sets whose options stand in no column of their own: right and wrong texts apart, lists within questions, padding."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from lm_audit.audits.leakage import anchored_slots, load_benchmark
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.labels.in_a_question import listed_in
from lm_audit.errors import DataError

FOUR = ["red clay", "blue sand", "green loam", "grey silt"]
KEY = [2, 0, 3, 1, 1, 2, 0, 3]
RIGHT = ["ABCD"[k] for k in KEY]
Row = dict[str, Any]
Make = Callable[[int, list[str]], Row]


def asked(n: int) -> str:
    return f"Which soil is it, {n}?"


def written(folder: Path, rows: list[Row], ending: str) -> Path:
    path = folder / f"set.{ending}"
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif ending == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:  # as pandas writes lists and records into a cell
        with path.open("w", encoding="utf-8", newline="") as stream:
            table = csv.DictWriter(stream, rows[0])
            table.writeheader()
            table.writerows([{name: "" if v is None else v for name, v in row.items()} for row in rows])
    return path


def read(folder: Path, rows: list[Row], ending: str = "jsonl") -> Benchmark:
    return load_benchmark(written(folder, rows, ending))


def answers(benchmark: Benchmark) -> list[str]:
    return [item.answer for item in benchmark.items]


BY_ROLE: dict[str, tuple[Make, int]] = {
    "gpqa": (
        lambda n, t: {
            "Pre-Revision Question": "Old?", "Pre-Revision Correct Answer": "old", "Question": asked(n),
            "Correct Answer": t[0], "Incorrect Answer 1": t[1], "Incorrect Answer 2": t[2], "Incorrect Answer 3": t[3],
            "Explanation": "Since it is. " * 20, "Subdomain": "Soil", "Record ID": f"rec{n}",
        }, 0,
    ),
    "sciq": (
        lambda n, t: {
            "question": asked(n), "distractor3": t[0], "distractor1": t[1], "distractor2": t[2], "correct_answer": t[3],
            "support": "Dug.",
        }, 3,
    ),
    "truthfulqa": (
        lambda n, t: {
            "Type": "Adversarial", "Question": asked(n), "Best Answer": t[0], "Best Incorrect Answer": t[1],
            "Correct Answers": f"{t[0]}; so it is", "Incorrect Answers": f"{t[1]}; {t[2]}",
        }, 0,
    ),
    "truthfulqa generation": (
        lambda n, t: {
            "question": asked(n), "best_answer": t[0], "correct_answers": [t[0]], "incorrect_answers": t[1:],
        }, 0,
    ),
    "open trivia": (
        lambda n, t: {"type": "multiple", "question": asked(n), "correct_answer": t[0], "incorrect_answers": t[1:]}, 0,
    ),
    "distractors in one text": (
        lambda n, t: {"question": asked(n), "correct_answer": t[0], "distractors": "; ".join(t[1:])}, 0,
    ),
    "distractors": (lambda n, t: {"question": asked(n), "answer": t[0], "distractors": t[1:]}, 0),
}  # fmt: skip


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("name", BY_ROLE)
def test_right_and_wrong_texts_in_columns_of_their_own(tmp_path: Path, name: str, ending: str) -> None:
    make, place = BY_ROLE[name]
    texts = [FOUR[n % 4 :] + FOUR[: n % 4] for n in range(8)]
    benchmark = read(tmp_path, [make(n, texts[n]) for n in range(8)], ending)
    assert answers(benchmark) == ["ABCD"[place]] * 8
    assert [list(item.options) for item in benchmark.items] == [t[: len(benchmark.items[0].options)] for t in texts]
    assert [item.question for item in benchmark.items] == [asked(n) for n in range(8)]
    # What a model knows must not look like memory: only the wrong ones change places.
    assert all(anchored_slots(item) == {place} for item in benchmark.items)
    assert any(f"the right one stands in place {'ABCD'[place]} in 8 of 8 questions" in one for one in benchmark.guesses)


def test_texts_with_semicolons_in_columns_that_hold_one_option_each_stay_whole(tmp_path: Path) -> None:
    rows = [
        {"question": asked(n), "yes": "red; still red", "maybes": "blue | or so", "answer": "AB"[n % 2]}
        for n in range(8)
    ]
    benchmark = load_benchmark(written(tmp_path, rows, "csv"), columns="options=yes|maybes")
    assert benchmark.items[0].options == ("red; still red", "blue | or so") and answers(benchmark) == ["A", "B"] * 4


@pytest.mark.parametrize(("count", "odd", "held"), [(20, 0, True), (20, 2, True), (20, 3, False), (19, 0, False)])
def test_right_options_that_stand_in_one_place_keep_it(tmp_path: Path, count: int, odd: int, held: bool) -> None:
    rows = [{"question": asked(n), "choices": FOUR, "answer": int(n < odd)} for n in range(count - 1)]
    benchmark = read(tmp_path, [*rows, {"question": "Last?", "choices": FOUR, "answer": "0"}])
    assert [item.held for item in benchmark.items] == [
        (0,) if held and item.answer == "A" else () for item in benchmark.items
    ]
    assert any("the right option stands in place A in" in one for one in benchmark.guesses) is held


LISTS = {
    "bbh": "{q}\nOptions:\n(A) red clay\n(B) blue sand\n(C) green loam\n(D) grey silt",
    "arc table": "{q} (A) red clay (B) blue sand (C) green loam (D) grey silt",
    "hle": "{q}\n\nAnswer Choices:\nA. red clay\nB. blue sand\nC. green loam\nD. grey silt",
    "prompt": "{q}\nA) red clay\nB) blue sand\nC) green loam\nD) grey silt\nAnswer:",
    "numbers": "{q}\n1. red clay\n2. blue sand\n3. green loam\n4. grey silt",
    "korean": "{q}\n\n### 선택지:\n(A) red clay\n(B) blue sand\n(C) green loam\n(D) grey silt\n### 정답:",
    "marked": "{q}\n**Options:**\n(A) red clay\n(B) blue sand\n(C) green loam\n(D) grey silt\n\nYour choice:",
    "exam": "{q}\nA．red clay B．blue sand C．green loam D．grey silt",
    "chinese": "{q}\n选项：\nA、red clay\nB、blue sand\nC、green loam\nD、grey silt\n答案：",
}


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("answer", ["({})", "{}", "text"])
def test_options_that_questions_list_at_their_end(tmp_path: Path, name: str, ending: str, answer: str) -> None:
    say = [FOUR[k] if answer == "text" else answer.format("1234"[k] if name == "numbers" else "ABCD"[k]) for k in KEY]
    rows = [{"input": LISTS[name].format(q=asked(n)), "target": say[n]} for n in range(8)]
    benchmark = read(tmp_path, rows, ending)
    assert answers(benchmark) == RIGHT
    assert {item.options for item in benchmark.items} == {tuple(FOUR)}
    assert [item.question for item in benchmark.items] == [asked(n) for n in range(8)]
    assert any("those that 'input' lists at its end are read" in one for one in benchmark.guesses)


def test_options_behind_dashes(tmp_path: Path) -> None:
    rows = [{"input": f"{asked(n)}\nOptions:\n- Yes\n- No", "target": ["Yes", "No"][n % 2]} for n in range(6)]
    benchmark = read(tmp_path, rows)
    assert answers(benchmark) == ["A", "B"] * 3 and benchmark.items[0].options == ("Yes", "No")


@pytest.mark.parametrize(
    "text",
    [
        "Is it so that (A) red and (B) blue are colours?",
        "Consider 1. the rock and 2. the sand. Which is older?",
        "A. Smith and B. Jones met. Who was late?",
        "(A) red (B) blue (C) green",
        "Which?\n- one\n- two",
        "Which of these: (A) red (C) blue (B) green",
        "",
    ],
)
def test_questions_that_list_no_options_for_sure(text: str) -> None:
    assert listed_in(text) is None


def test_what_fills_up_lists_of_options_is_none(tmp_path: Path) -> None:
    rows = [{"question": asked(n), "options": FOUR + ["N/A"] * (1 + n % 3), "answer": RIGHT[n]} for n in range(8)]
    benchmark = read(tmp_path, rows)
    assert {item.options for item in benchmark.items} == {tuple(FOUR)} and answers(benchmark) == RIGHT
    assert any("was left out of 8 questions" in one for one in benchmark.guesses)
    alone = [{"question": asked(n), "options": [*FOUR, "N/A"], "answer": "E"} for n in range(8)]
    assert answers(read(tmp_path, alone)) == ["E"] * 8  # one of a kind may be an option
    wrong = [*rows, {**rows[0], "question": "Last?", "answer": "E"}]
    assert [gone.row for gone in read(tmp_path, wrong).exclusions] == [9]


def test_lists_that_hold_a_passage_and_its_questions(tmp_path: Path) -> None:
    """DREAM as its authors publish it, and as its table on the hub."""
    right = [FOUR[k % 3] for k in KEY]
    parts = [{"question": asked(n), "choice": FOUR[:3], "answer": right[n]} for n in range(8)]
    (tmp_path / "dream.json").write_text(
        json.dumps([[["M: Dig.", "W: Where?"], parts[2 * m : 2 * m + 2], f"4-{m}"] for m in range(4)]), encoding="utf-8"
    )
    benchmarks = [load_benchmark(tmp_path / "dream.json")]
    for ending in ("jsonl", "csv", "parquet"):
        benchmarks.append(read(tmp_path, [{"dialogue": ["M: Dig.", "W: Where?"], **part} for part in parts], ending))
    for benchmark in benchmarks:
        assert answers(benchmark) == ["ABC"[k % 3] for k in KEY]
        assert [item.question for item in benchmark.items] == [f"M: Dig.\nW: Where?\n{asked(n)}" for n in range(8)]


def test_questions_in_blocks_of_a_text_file(tmp_path: Path) -> None:
    """LogiQA as its authors publish it."""
    options = "".join(f"\n{letter}.{text}" for letter, text in zip("ABCD", FOUR, strict=True))
    path = tmp_path / "Train.txt"
    path.write_text(
        "".join(f"\n{RIGHT[n].lower()}\nThey dug.\n{asked(n)}{options}\n" for n in range(8)), encoding="utf-8"
    )
    benchmark = load_benchmark(path)
    assert answers(benchmark) == RIGHT and benchmark.items[1].options == tuple(FOUR)
    assert benchmark.items[1].question == f"They dug.\n{asked(1)}"
    for text in ("Some text.\n", "a\nWhich?\nA.red\n", f"Which?{options}\n", "\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"Train\.txt"):
            load_benchmark(path)


@pytest.mark.parametrize("cell", ["question", "questions"])
def test_records_that_a_table_holds_as_text(tmp_path: Path, cell: str) -> None:
    choices = [{"label": letter, "text": text} for letter, text in zip("ABCD", FOUR, strict=True)]
    if cell == "question":
        rows: list[Row] = [
            {"question": {"stem": asked(n), "choices": choices}, "answerKey": RIGHT[n]} for n in range(8)
        ]
    else:
        parts = [{"question": asked(n), "options": FOUR, "gold_label": KEY[n] + 1} for n in range(8)]
        rows = [{"article": "They dug.", "questions": parts}]
    assert answers(read(tmp_path, rows, "csv")) == RIGHT


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("statement", lambda: {"option_list": dict(zip("ABCD", FOUR, strict=True))}),
        ("question", lambda: {"option": dict(zip("ABCD", FOUR, strict=True))}),
        ("prompt", lambda: {f"solution{k}": text for k, text in enumerate(FOUR)}),
        ("question", lambda: {"choices": FOUR, "solution1": "Dig.", "solution2": "Wait.", "statement": "It is."}),
        ("question", lambda: {"choices": FOUR, "option": "B", "dialogue": ""}),
        ("question", lambda: {"choices": FOUR, "correct_answer": None, "distractors": FOUR[1:]}),
    ],
    ids=["jec-qa", "cmb", "global piqa", "solutions", "an option", "with all options"],
)
def test_more_names_of_options(tmp_path: Path, question: str, options: Callable[[], Row], ending: str) -> None:
    rows = [
        {question: asked(n), **options(), "answer": KEY[n] if "solution0" in options() else RIGHT[n]} for n in range(8)
    ]
    benchmark = read(tmp_path, rows, ending)
    assert answers(benchmark) == RIGHT and benchmark.items[0].options == tuple(FOUR)


@pytest.mark.parametrize("stored", ["records", "lists"])
def test_questions_of_a_passage_as_the_hub_stores_them(tmp_path: Path, stored: str) -> None:
    parts = [{"question": asked(n), "options": FOUR, "gold_label": KEY[n] + 1} for n in range(8)]
    held: Any = parts if stored == "records" else {name: [part[name] for part in parts] for name in parts[0]}
    assert answers(read(tmp_path, [{"article": "They dug.", "questions": held}], "parquet")) == RIGHT


REORDERED: dict[str, tuple[list[str], Any, bool]] = {
    "same text, letter": (FOUR[::-1], "B", False),
    "same text": (FOUR[::-1], "green loam", False),
    "another text, letter": (FOUR[::-1], "C", True),
    "another text": (FOUR[::-1], "red clay", True),
    "no answer": (FOUR[::-1], None, False),
}


@pytest.mark.parametrize("name", REORDERED)
def test_another_right_text_behind_another_order_is_told(tmp_path: Path, name: str) -> None:
    options, answer, told = REORDERED[name]
    rows = [{"question": asked(n), "choices": FOUR, "answer": RIGHT[n]} for n in range(8)]
    again = {"question": asked(0), "choices": options, "answer": answer}
    benchmark = read(tmp_path, [*rows, again])
    assert len(benchmark.items) == 9 and benchmark.repeated == 0  # its order is another item
    assert any("1 of 9 rows ask what an earlier row asks" in one for one in benchmark.guesses)
    found = [one for one in benchmark.guesses if "in another order with another right text" in one]
    assert bool(found) is told
    if told:
        assert "row 9 of" in found[0] and "where row 1 of" in found[0] and "says 'green loam'" in found[0]
    twice = read(tmp_path, [*rows, again, {**again, "answer": "A"}])
    assert twice.repeated == 1
    assert any("says A where row 9 of" in one for one in twice.guesses) is (answer is not None)


@pytest.mark.parametrize(
    "columns", ["question=article", "question=citing_prompt,options=holding_0|holding_1,answer=label"]
)
def test_what_a_refusal_names_is_enough(tmp_path: Path, columns: str) -> None:
    rows: list[Row] = [
        {"article": asked(n), "options": FOUR, "answers": RIGHT[n]}
        if "article" in columns
        else {"citing_prompt": asked(n), "holding_0": FOUR[0], "holding_1": FOUR[1], "label": KEY[n] % 2}
        for n in range(8)
    ]
    path = written(tmp_path, rows, "jsonl")
    with pytest.raises(DataError, match="has no column for question"):
        load_benchmark(path)
    assert len(load_benchmark(path, columns=columns).items) == 8
