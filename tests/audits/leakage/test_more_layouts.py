"""More layouts of public sets: nested documents, records with marks, options in one text, answers in any wrapping."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.leakage import load_benchmark
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.labels.in_one_text import labelled_parts
from lm_audit.audits.leakage.items.labels.of_a_row import without_labels
from lm_audit.errors import DataError

FOUR = ["red clay", "blue sand", "green loam", "grey silt"]
KEY = [2, 0, 3, 1, 1, 2, 0, 3]
RIGHT = ["ABCD"[k] for k in KEY]
Row = dict[str, Any]
ROWS: list[Row] = [{"question": f"Which soil is it, {k}?", "choices": FOUR, "answer": RIGHT[k]} for k in range(8)]


def read(folder: Path, text: str, name: str = "set.json", columns: str | None = None) -> Benchmark:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_benchmark(path, columns=columns)


def read_rows(folder: Path, rows: list[Row], columns: str | None = None) -> Benchmark:
    return read(folder, "".join(json.dumps(row) + "\n" for row in rows), "set.jsonl", columns)


def answers(benchmark: Benchmark) -> list[str]:
    return [item.answer for item in benchmark.items]


def always(text: str) -> Callable[[int], Any]:
    return lambda k: text


LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


@pytest.mark.parametrize(
    ("document", "files"),
    [
        ({"soil": ROWS[:4], "rock": ROWS[4:]}, ["soil", "rock"]),
        ({"soil": ROWS[:3], "rock": ROWS[3:]}, ["soil", "rock"]),
        ({"A": ROWS[:4], "B": ROWS[4:]}, ["A", "B"]),
        ({"train": {"soil": ROWS[:3]}, "test": {"soil": ROWS[3:]}}, ["train/soil", "test/soil"]),
        ({"version": "1", "data": {"soil": ROWS[:3], "rock": ROWS[3:]}}, ["soil", "rock"]),
        ({"meta": {"rows": 8}, "items": ROWS}, ["items"]),
        ({f"q{k}": row for k, row in enumerate(ROWS)}, ["set"]),
        ({"soil": {f"q{k}": row for k, row in enumerate(ROWS)}}, ["soil"]),
        ({name: {str(k): row[name] for k, row in enumerate(ROWS)} for name in ROWS[0]}, ["set"]),
        (LINES, ["set"]),
    ],
    ids=[
        "by subject",
        "uneven",
        "letters",
        "split and subject",
        "under data",
        "one list",
        "by id",
        "subject and id",
        "pandas",
        "lines",
    ],
)
def test_documents_of_any_nesting(tmp_path: Path, document: Any, files: list[str]) -> None:
    benchmark = read(tmp_path, document if isinstance(document, str) else json.dumps(document))
    assert answers(benchmark) == RIGHT
    assert list(benchmark.files) == files
    assert [item.question for item in benchmark.items] == [row["question"] for row in ROWS]


@pytest.mark.parametrize(
    ("question", "options", "answer", "first"),
    [
        ("questionText", ["optionA", "optionB", "optionC", "optionD"], "correctIndex", 0),
        ("Question Body", ["Choice 1", "Choice 2", "Choice 3", "Choice 4"], "Key", 1),
        ("question", ["choiceA", "choiceB", "choiceC", "choiceD"], "correctAnswerIndex", 0),
    ],
)
def test_names_joined_by_capitals(tmp_path: Path, question: str, options: list[str], answer: str, first: int) -> None:
    """Their answers were passed over without a word."""
    rows = [
        {question: row["question"], **dict(zip(options, FOUR, strict=True)), answer: KEY[k] + first}
        for k, row in enumerate(ROWS)
    ]

    assert answers(read_rows(tmp_path, rows)) == RIGHT


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_that_is_called_lines_is_an_array(tmp_path: Path, indent: int | None) -> None:
    assert answers(read(tmp_path, json.dumps(ROWS, indent=indent), "set.jsonl")) == RIGHT


def test_a_fault_in_a_part_names_the_part_and_its_row(tmp_path: Path) -> None:
    for rock in ([ROWS[2], 7], {"data": [ROWS[2], 7]}, {"q1": ROWS[2], "q2": 7}, [{"odd": 1}]):
        with pytest.raises(DataError, match=r"set\.json: (holds a JSON dict|has no column for question)"):
            read(tmp_path, json.dumps({"soil": ROWS[:2], "rock": rock}))
    left = read(tmp_path, json.dumps({"soil": ROWS[:4], "rock": [*ROWS[4:], {**ROWS[0], "choices": ["one"]}]}))
    assert [(gone.row, gone.file.endswith("set.json (rock)")) for gone in left.exclusions] == [(5, True)]


@pytest.mark.parametrize("document", [{"soil": ROWS[:2], "notes": [["a", "b", "c"]]}, {"a": {"b": 1}}, [[1, 2]]])
def test_documents_that_are_no_rows_are_refused(tmp_path: Path, document: Any) -> None:
    with pytest.raises(DataError):
        read(tmp_path, json.dumps(document))


def nested(rows: list[Row]) -> dict[str, Row]:
    """Two questions of one passage, as three sets publish them."""
    asked, options = [row["question"] for row in rows], [row["choices"] for row in rows]
    return {
        "race": {
            "article": "They dug.",
            "questions": asked,
            "options": options,
            "answers": [r["answer"] for r in rows],
        },
        "quality": {
            "article": "They dug.",
            "questions": [
                {"question": q, "options": o, "gold_label": k + 1} for q, o, k in zip(asked, options, KEY, strict=True)
            ],
        },
    }


@pytest.mark.parametrize("name", ["race", "quality"])
def test_passages_with_several_questions(tmp_path: Path, name: str) -> None:
    for benchmark in (
        read_rows(tmp_path, [nested(ROWS)[name]]),
        read(tmp_path, json.dumps([nested(ROWS)[name]])),
        read(tmp_path, json.dumps(nested(ROWS)[name])),
    ):
        assert answers(benchmark) == RIGHT
        assert [item.question for item in benchmark.items] == [f"They dug.\n{row['question']}" for row in ROWS]


@pytest.mark.parametrize(
    ("sentences", "quiz", "answer"),
    [
        ("InputSentence{}", "RandomFifthSentenceQuiz{}", "AnswerRightEnding"),
        ("input_sentence_{}", "sentence_quiz{}", "answer_right_ending"),
    ],
)
def test_stories_in_sentences(tmp_path: Path, sentences: str, quiz: str, answer: str) -> None:
    rows = [
        {
            **{sentences.format(n): f"Line {n} of {k}." for n in range(1, 5)},
            quiz.format(1): FOUR[0],
            quiz.format(2): FOUR[1],
            answer: k % 2 + 1,
        }
        for k in range(6)
    ]
    benchmark = read_rows(tmp_path, rows)
    assert answers(benchmark) == ["A", "B"] * 3
    assert benchmark.items[1].question == "Line 1 of 1. Line 2 of 1. Line 3 of 1. Line 4 of 1."


@pytest.mark.parametrize(
    "given",
    [
        {"answers": lambda k: [{"text": t, "correct": n == k} for n, t in enumerate(FOUR)]},
        {"answers": lambda k: [{"answer": t, "isCorrect": n == k} for n, t in enumerate(FOUR)]},
        {"answers": lambda k: json.dumps([{"text": t, "correct": int(n == k)} for n, t in enumerate(FOUR)])},
        {"answers": lambda k: {"text": FOUR, "correct": [n == k for n in range(4)]}},
        {
            **{f"mc_answer{n}": always(text) for n, text in enumerate(FOUR, start=1)},
            "correct_answer_num": lambda k: f"mc_answer{k + 1}",
        },
        {"options": lambda k: [{"Option": t, "Is_Answer": int(n == k)} for n, t in enumerate(FOUR)]},
        {
            "options": lambda k: [{"letter": "ABCD"[n], "body": t} for n, t in enumerate(FOUR)],
            "answer": lambda k: "ABCD"[k],
        },
        {
            "options": lambda k: [{"text": t, "index": n} for n, t in enumerate(FOUR)],
            "answer": lambda k: {"index": k, "text": FOUR[k]},
        },
        {"options": lambda k: FOUR, "Answer Key": lambda k: "ABCD"[k]},
        {"options": lambda k: FOUR, "correct-option": lambda k: "ABCD"[k]},
        {
            "options": lambda k: {f"option_{n}": f"soil {n}" for n in (10, 9, 4, 3, 2, 1, 8, 7, 6, 5)},
            "answer": lambda k: f"option_{k + 1}",
        },
        {
            "Problem": lambda k: f"Which soil is it, {k}?",
            "options": lambda k: "a ) 38 , b ) 27.675 , c ) 3 , 000 , d ) none of these",
            "correct": lambda k: "abcd"[k],
        },
        {"options": lambda k: "(A) red clay (B) blue sand (C) green loam (D) grey silt", "answer": lambda k: "ABCD"[k]},
        {"options": lambda k: "①红土②蓝沙③绿泥④灰土", "answer": lambda k: k + 1},
    ],
    ids=range(14),
)
def test_more_shapes_of_options(tmp_path: Path, given: dict[str, Callable[[int], Any]]) -> None:
    asked = {} if "Problem" in given else {"question": lambda n: f"Which soil is it, {n}?"}
    rows = [
        {name: make(n if name in asked else KEY[n]) for name, make in (asked | given).items()}
        | ({"Problem": f"Which {n}?"} if "Problem" in given else {})
        for n in range(8)
    ]
    benchmark = read_rows(tmp_path, rows)
    assert answers(benchmark) == RIGHT
    assert benchmark.items[0].options[1] in ("blue sand", "27.675", "soil 2", "蓝沙")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a ) 38 , b ) 27.675 , c ) 1 , 000", ["38", "27.675", "1 , 000"]),
        ("A. red; still red; B. blue; C. green", ["red; still red", "blue", "green"]),
        ("A、红 B、蓝", ["红", "蓝"]),
        ("(1) one (2) two (3) three", ["one", "two", "three"]),
        ("1. 2.5 m 2. 3.5 m", ["2.5 m", "3.5 m"]),
        ("A. Vitamin C. B. Iron C. Zinc", None),
        ("A. red B. blue D. green", None),
        ("Both A. and B.", None),
        ("A. red", None),
        ("A. B. red", None),
        ("one, two", None),
    ],
)
def test_options_in_one_text(text: str, parts: list[str] | None) -> None:
    found = labelled_parts(text)
    assert (found and list(found.texts)) == parts


@pytest.mark.parametrize(
    "form",
    [
        "(a ",
        "{a} ",
        "ａ）",
        "א. ",
        "١. ",
        "１．",
        "㉠ ",
        "i ",
        "No. 1 ",
        "1️⃣ ",
        "🅐 ",
        "'A' ",
        '"A": ',
        "<b>A</b> ",
        "क) ",
    ],
)
def test_labels_that_one_row_shows(form: str) -> None:
    series = {
        "a": "abcd", "ａ": "ａｂｃｄ", "א": "אבגד", "١": "١٢٣٤", "１": "１２３４", "㉠": "㉠㉡㉢㉣",
        "i": ["i", "ii", "iii", "iv"],
        "1️⃣": ["1️⃣", "2️⃣", "3️⃣", "4️⃣"], "1": "1234", "🅐": "🅐🅑🅒🅓", "A": "ABCD", "क": "कखगघ",
    }  # fmt: skip
    name = next(name for name in sorted(series, key=len, reverse=True) if name in form)
    assert (
        without_labels([form.replace(name, mark, 1) + text for mark, text in zip(series[name], FOUR, strict=True)])
        == FOUR
    )


@pytest.mark.parametrize(
    "options",
    [
        ["{x} is open", "{y} is open"],
        ["'A' is first", "'C' is first"],
        ["1 apple", "2 apples", "3 apples"],
        ["(a+b)", "(b+c)", "(c+d)"],
        ["i think so", "it rained", "iii"],
    ],
)
def test_texts_that_are_no_labels_stay(options: list[str]) -> None:
    assert without_labels(options) is None


@pytest.mark.parametrize("label", ["Б", "①", "(ii)", "Вариант {} - ", "א. "])
@pytest.mark.parametrize("answered", ["labels", "texts"])
def test_answers_by_labels_that_were_taken_off(tmp_path: Path, label: str, answered: str) -> None:
    series = {"Б": "АБВГ", "①": "①②③④", "(ii)": ["i", "ii", "iii", "iv"], "Вариант {} - ": "АБВГ", "א. ": "אבגד"}[label]
    frame = {"Б": "{}) ", "①": "{} ", "(ii)": "({}) ", "Вариант {} - ": "Вариант {}: ", "א. ": "{}. "}[label]
    options = [frame.format(name) + text for name, text in zip(series, FOUR, strict=True)]
    rows = [
        {"question": f"Which {k}?", "options": options, "answer": series[k] if answered == "labels" else options[k]}
        for k in KEY
        for _ in [0]
    ]
    rows = [row | {"question": f"Which soil is it, {n}?"} for n, row in enumerate(rows)]
    benchmark = read_rows(tmp_path, rows)
    assert answers(benchmark) == RIGHT and benchmark.items[0].options == tuple(FOUR)


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("A and B", "A,B"),
        ("(A), (C)", "A,C"),
        ("(A)(B)", "A,B"),
        ("AC.", "A,C"),
        ("A+D", "A,D"),
        ("A或B", "A,B"),
        ("(b", "B"),
        ('"C"', "C"),
        ("选C", "C"),
        ("正确答案是C。", "C"),
        ("Red clay.", "A"),
        ("‘grey silt’", "D"),
        ({"label": "C"}, "C"),
        ({"label": "C", "text": "green loam"}, "C"),
        ({"id": 3, "content": "grey silt"}, "D"),
    ],
)
def test_answers_in_more_wrappings(tmp_path: Path, given: Any, right: str) -> None:
    assert answers(read_rows(tmp_path, [*ROWS[:6], {**ROWS[6], "answer": given}]))[6] == right


@pytest.mark.parametrize(
    "given", ["and", "A and", "red and blue", -2, -100, 99, "N/A", {"label": "C", "text": "red clay"}]
)
def test_answers_that_say_no_option_leave_the_row_out_by_name(tmp_path: Path, given: Any) -> None:
    benchmark = read_rows(tmp_path, [*ROWS[:6], {**ROWS[6], "answer": given}])
    assert [gone.row for gone in benchmark.exclusions] == [7] and len(benchmark.items) == 6


@pytest.mark.parametrize(
    ("own", "name", "other", "filled"),
    [
        (list(RIGHT), "label", KEY, True),
        (list(KEY), "label", KEY, True),
        (list(RIGHT), "answer_text", [FOUR[k] for k in KEY], True),
        ([k + 1 for k in KEY], "answer_letter", RIGHT, True),
        (list(RIGHT), "level", KEY, False),
        (list(RIGHT), "label", [0, 1, 2, 3] * 2, False),  # classes of any kind
        (list(RIGHT), "label", ["easy", "hard"] * 4, False),
    ],
)
def test_rows_without_an_answer_take_that_of_a_column_that_agrees(
    tmp_path: Path, own: list[Any], name: str, other: list[Any], filled: bool
) -> None:
    rows = [{**row, "answer": None if k in (1, 4) else own[k], name: other[k]} for k, row in enumerate(ROWS)]
    benchmark = read_rows(tmp_path, rows)
    wanted = [answer if filled or k not in (1, 4) else "" for k, answer in enumerate(RIGHT)]
    assert answers(benchmark) == wanted
    told = f"2 rows have no answer in 'answer' and one in {name!r}, which counts there; the first is row 2 of "
    assert any(guess.startswith(told) for guess in benchmark.guesses) is filled


def test_a_question_that_stands_again_with_another_answer_is_told_with_both_rows(tmp_path: Path) -> None:
    again = [{**ROWS[k], "answer": "ABCD"[(KEY[k] + 1) % 4]} for k in range(5)]
    benchmark = read_rows(tmp_path, [*ROWS, *again])
    assert answers(benchmark) == RIGHT and benchmark.repeated == 5
    [told] = benchmark.guesses
    assert told.startswith("5 rows repeat a question and its options with another answer, and the first counts: row 9 ")
    assert "says D where row 1 of" in told and told.endswith(", and 2 more")
    (tmp_path / "two").mkdir()
    for name, rows in (("a", ROWS), ("b", again[:1])):
        (tmp_path / "two" / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
    [told] = load_benchmark(tmp_path / "two").guesses
    assert "row 1 of" in told and "b.json says D where row 1 of" in told and told.endswith("a.json says C")


@pytest.mark.parametrize(
    "again",
    [lambda row: row["answer"], lambda row: FOUR["ABCD".index(row["answer"])], lambda _: None],
    ids=["letter", "text", "none"],
)
def test_a_question_that_stands_again_with_the_same_answer_is_no_contradiction(
    tmp_path: Path, again: Callable[[Row], Any]
) -> None:
    benchmark = read_rows(tmp_path, [*ROWS, *({**row, "answer": again(row)} for row in ROWS[:3])])
    assert benchmark.repeated == 3 and not benchmark.guesses


@pytest.mark.parametrize("sign", [" | ", "|", "; "])
def test_options_in_one_cell_between_signs_are_divided_and_told(tmp_path: Path, sign: str) -> None:
    given = [{**row, "choices": sign.join(FOUR)} for row in ROWS]
    found = read_rows(tmp_path, given)
    assert {item.options for item in found.items} == {tuple(FOUR)} and answers(found) == RIGHT
    assert any("8 questions stand in one cell" in guess for guess in found.guesses)
    assert not any("one cell" in guess for guess in read_rows(tmp_path, ROWS).guesses)
    with pytest.raises(
        DataError, match=r"1 options; 2 to 26 are expected, in one cell divided by \|, by ; or in lines"
    ):
        read_rows(tmp_path, [{**row, "choices": ", ".join(FOUR)} for row in ROWS])


@pytest.mark.parametrize(
    "names", [("I", "II", "III", "IV"), ("op_i", "op_ii", "op_iii", "op_iv"), ("x", "xx", "xxx", "o")]
)
def test_columns_are_called_by_what_tells_them_apart(tmp_path: Path, names: tuple[str, ...]) -> None:
    rows = [{"question": row["question"], **dict(zip(names, FOUR, strict=True))} for row in ROWS]
    answered = [{**row, "answer": names[KEY[k]].removeprefix("op_")} for k, row in enumerate(rows)]
    assert answers(read_rows(tmp_path, answered, f"options={'|'.join(names)}")) == RIGHT


def test_an_explanation_in_the_lines_below_the_letter(tmp_path: Path) -> None:
    rows = [{**row, "answer": f"{RIGHT[k]}\nExplanation: it is wet, unlike loam."} for k, row in enumerate(ROWS)]
    assert answers(read_rows(tmp_path, rows)) == RIGHT
    rows[0]["answer"] = f"{RIGHT[0]}\n{FOUR[(KEY[0] + 1) % 4]}"
    assert answers(read_rows(tmp_path, rows)) == RIGHT[1:]


def test_rows_of_several_splits_in_one_file_are_told(tmp_path: Path) -> None:
    rows = [{**row, "split": "train" if k < 5 else "test"} for k, row in enumerate(ROWS)]
    said = "rows of several splits (train 5, test 3, by the column 'split') are read as one set"
    assert any(said in guess for guess in read_rows(tmp_path, rows).guesses)
    parted = read_rows(tmp_path, rows, "subject=split")
    assert parted.files == ("train", "test") and not parted.guesses
    assert not read_rows(tmp_path, [{**row, "split": "test"} for row in rows]).guesses


def test_a_record_that_holds_the_question_is_opened(tmp_path: Path) -> None:
    inner = [
        {"Question": row["question"], "Options": dict(zip("ABCD", FOUR, strict=True)), "Correct Option": row["answer"]}
        for row in ROWS
    ]
    wrapped = [{"id": k, "data": one, "subject_name": None} for k, one in enumerate(inner)]
    assert answers(read_rows(tmp_path, wrapped)) == RIGHT


@pytest.mark.parametrize(
    "chat",
    [
        lambda asked, reply: {
            "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": reply}]
        },
        lambda asked, reply: {"conversations": [{"from": "human", "value": asked}, {"from": "gpt", "value": reply}]},
        lambda asked, reply: {"messages": {"role": ["user", "assistant"], "content": [asked, reply]}},
        lambda asked, reply: {"prompt": str([{"role": "user", "content": asked}]), "answer": reply},
        lambda asked, reply: {
            "input": [{"role": "system", "content": "A letter."}, {"role": "user", "content": asked}],
            "answer": reply,
        },
    ],
    ids=["messages", "conversations", "lists", "text", "system"],
)
def test_a_conversation_of_one_question(tmp_path: Path, chat: Callable[[str, str], Row]) -> None:
    listed = "".join(f"\n{letter}. {text}" for letter, text in zip("ABCD", FOUR, strict=True))
    rows = [chat(row["question"] + listed, row["answer"]) for row in ROWS]
    benchmark = read_rows(tmp_path, rows)
    assert answers(benchmark) == RIGHT and [item.options for item in benchmark.items] == [tuple(FOUR)] * 8
    assert benchmark.items[1].question == "Which soil is it, 1?"
    logged = [chat(listed, "so") | row for row in ROWS]
    assert read_rows(tmp_path, logged).items[1].question == "Which soil is it, 1?"
    apart = [chat(row["question"], row["answer"]) | {"choices": FOUR} for row in ROWS]
    assert answers(read_rows(tmp_path, apart)) == RIGHT
    more = [{"messages": [{"role": "user", "content": listed}] * 3}]
    with pytest.raises(DataError, match="has no column for question"):
        read_rows(tmp_path, more)
