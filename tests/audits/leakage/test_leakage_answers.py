"""What real multiple-choice files look like: answers of every form, labels in options, missing headers, odd shapes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.leakage import load_benchmark, shuffled_orders
from lm_audit.audits.leakage.items.answers.readings import CONTRADICTION
from lm_audit.audits.leakage.items.columns import parse_mapping
from lm_audit.audits.leakage.items.labels.of_a_row import without_labels
from lm_audit.audits.leakage.items.loading import cached_benchmark
from lm_audit.errors import DataError, DataWarning, UsageError
from tests.shared_data import shared

Writer = Callable[..., Path]
FOUR = ["red clay", "blue sand", "green loam", "grey silt"]


@pytest.fixture
def written(tmp_path: Path) -> Writer:
    """Writes rows into a JSONL file of the test's own and gives its path."""
    numbers = count()

    def write(*rows: Any) -> Path:
        path = tmp_path / f"set{next(numbers) or ''}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def answers(path: Path, **options: Any) -> list[str]:
    return [item.answer for item in load_benchmark(path, **options).items]


def ask(*given: Any, options: Any = FOUR, **more: Any) -> list[dict[str, Any]]:
    return [
        {"question": f"Which soil {k}?", "choices": options, "answer": value, **more} for k, value in enumerate(given)
    ]


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ([1, 4, 2], ["A", "D", "B"]),
        ([0, 3, 1], ["A", "D", "B"]),
        (["1", "4", "2"], ["A", "D", "B"]),
        ([0.0, 2.0], ["A", "C"]),
        (["0", "2.0"], ["A", "C"]),
        (["b", "(C)", "D.", "Option A"], ["B", "C", "D", "A"]),
        (["ABD", "C、A", "B,C", ["A", "C"]], ["A,B,D", "A,C", "B,C", "A,C"]),
        (["blue sand", "Grey  Silt", "red clay"], ["B", "D", "A"]),
        ([[0, 2], [1], [3]], ["A,C", "B", "D"]),
        (["1,3", "4", "2"], ["A,C", "D", "B"]),
        ([None, "", "B", float("nan"), -1], ["", "", "B", "", ""]),
    ],
)
def test_forms_of_answers(written: Writer, given: list[Any], right: list[str]) -> None:
    assert answers(written(*ask(*given))) == right


SIGNS = ["-1", "0", "1", "2"]


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (["-1", "0", "1", "2"], ["A", "B", "C", "D"]),
        ([-1, -1.0], ["A", "A"]),
        (["A", "-1", "D"], ["A", "", "D"]),
        ([["1", "-1"], ["0"], ["2"]], ["A,C", "B", "D"]),
    ],
)
def test_minus_one_is_an_answer_where_the_set_answers_by_texts(
    written: Writer, given: list[Any], right: list[str]
) -> None:
    assert answers(written(*ask(*given, options=SIGNS))) == right


def test_minus_one_is_no_answer_where_other_rows_cannot_say_it(written: Writer) -> None:
    hidden = [*ask(-1, -1, options=SIGNS), *ask(-1, options=FOUR)]
    assert answers(written(*hidden)) == ["", "", ""]
    numbered = [*ask(-1, options=SIGNS), *ask(0, 3, -1, options=FOUR)]
    assert answers(written(*numbered)) == ["", "A", "D", ""]
    padded = ask([2, -1, -1], [0, 3, -1], options=FOUR)
    assert answers(written(*padded)) == ["C", "A,D"]


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (["A. red clay", "(B)", "Ａ", "Answer: C"], ["A", "B", "A", "C"]),
        (["（Ｄ）", "答案：B", "Antwort: C", "The answer is D."], ["D", "B", "C", "D"]),
        (["**D**", "\\boxed{B}", "C) green loam", "(a) Red clay, because of iron"], ["D", "B", "C", "A"]),
        (["２", "４", "(1)"], ["B", "D", "A"]),
        (["1. red clay", "4) grey silt"], ["A", "D"]),
    ],
)
def test_letters_and_numbers_in_whatever_they_are_wrapped(written: Writer, given: list[Any], right: list[str]) -> None:
    assert answers(written(*ask(*given))) == right


@pytest.mark.parametrize(
    "answer",
    [
        "A. words that are no option",
        "(B) green loam",
        "b) grey silt",
        "Ｂ．green loam",
        "Answer: C. none of these",
        "(a) because of iron",
        "The answer is D: blue sand",
        "A. red clay, B. blue sand",
        "A. red clay and blue sand",
        "1) green loam",
        "E. red clay",
        "A: redder clay",
        "**C** - red clay",
        "A (blue sand)",
    ],
)
def test_words_that_contradict_their_letter_leave_the_row_out_by_name(written: Writer, answer: str) -> None:
    benchmark = load_benchmark(written(*ask("A", "B", "C", answer)))
    assert [item.answer for item in benchmark.items] == ["A", "B", "C"]
    [left_out] = benchmark.exclusions
    assert left_out.row == 4 and (answer in left_out.reason or "none of the options" in left_out.reason)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("(B) ", "B"),
        ("B) Blue  sand.", "B"),
        ("Ｂ．blue sand", "B"),
        ("c: 'green loam'", "C"),
        ("Answer: D", "D"),
        ("Answer: D. grey silt", "D"),
        ("Option B", "B"),
        ("option (c)", "C"),
        ("A. red clay (since it holds iron)", "A"),
        ("D\u2014grey silt", "D"),
        ("\uff24", "D"),
        ("d", "D"),
        ("【Ｃ】", "C"),
        ("B (blue sand)", "B"),
        ("D（Grey silt）.", "D"),
    ],
)
def test_a_letter_and_the_words_of_its_option(written: Writer, answer: str, right: str) -> None:
    assert answers(written(*ask("A", "B", "C", answer))) == ["A", "B", "C", right]


def test_an_option_that_begins_like_another_is_told_from_it(written: Writer) -> None:
    options = ["red", "red clay", "clay"]
    assert answers(written(*ask("B. red clay", "A. red", options=options))) == ["B", "A"]
    benchmark = load_benchmark(written(*ask("B", "A", "A. red clay", options=options)))
    assert benchmark.excluded == {CONTRADICTION: 1}


def test_options_that_look_like_a_letter_and_words_are_texts(written: Writer) -> None:
    options = ["B. Franklin", "A. Lincoln", "G. Washington"]
    rows = ask("A. Lincoln", "B. Franklin", "G. Washington", options=options)
    assert answers(written(*rows)) == ["B", "A", "C"]


@pytest.mark.parametrize(
    ("given", "right"), [(["Option 2", "Option 1", "Option 4"], "BAD"), (["Option 0", "Option 2"], "AC")]
)
def test_numbered_options_count_as_the_set_says(written: Writer, given: list[str], right: str) -> None:
    assert answers(written(*ask(*given))) == list(right)


def test_a_letter_before_the_text_of_another_option_is_no_answer(written: Writer) -> None:
    benchmark = load_benchmark(written(*ask("A. blue sand", "B", "C")))
    assert benchmark.excluded == {CONTRADICTION: 1}
    dates = ask("4. May", "3. March", options=["3. March", "4. May", "5. June"])
    assert answers(written(*dates)) == ["B", "A"]


@pytest.mark.parametrize(
    ("options", "given", "change", "right", "changed"),
    [
        (["2", "3", "1", "0"], ["0", "1", "2", "3"], "answer-base=0", "DCAB", "ABCD"),
        (["2", "3", "1", "4"], [1, 2, 3, 4], "answer-base=1", "CABD", "ABCD"),
        (["B", "A", "D", "C"], ["A", "B", "C", "D"], "answer-as=letters", "BADC", "ABCD"),
    ],
)
def test_answers_that_are_texts_and_numbers_or_letters_alike_are_told(
    written: Writer, options: list[str], given: list[Any], change: str, right: str, changed: str
) -> None:
    path = written(*ask(*given, options=options))
    [guess] = load_benchmark(path).guesses
    assert "answers read as the texts of options" in guess and f"--leakage-columns {change}" in guess
    assert answers(path) == list(right)
    assert answers(path, columns=change) == list(changed) and not load_benchmark(path, columns=change).guesses
    if change.startswith("answer-as"):
        assert answers(path, columns="answer-as=texts") == list(right)


def test_texts_that_agree_with_the_numbers_are_no_guess(written: Writer) -> None:
    path = written(*ask("0", "1", "2", options=["0", "1", "2"]))
    assert not load_benchmark(path).guesses


def test_where_numbers_count_from_is_said_and_can_be_changed(written: Writer) -> None:
    path = written(*ask(1, 4, 2))
    [guess] = load_benchmark(path).guesses
    assert guess == "answers read as 1-based numbers: `--leakage-columns answer-base=0` to change"
    with pytest.warns(DataWarning, match="answers read as 1-based numbers"):
        cached_benchmark(str(path), None, None, 0)
    benchmark = load_benchmark(path, columns="answer-base=0")
    assert [item.answer for item in benchmark.items] == ["B", "C"]
    assert benchmark.excluded == {"the answer cannot be read in the way of the others": 1}
    assert not benchmark.guesses


@pytest.mark.parametrize("given", [[1, 2, 1], [0, 4, 1]])
def test_numbers_that_may_count_from_either_are_asked_for(written: Writer, given: list[int]) -> None:
    path = written(*ask(*given))
    with pytest.raises(DataError, match="answer-base=0 or answer-base=1") as error:
        load_benchmark(path)
    assert error.value.file == str(path)


def test_the_whole_set_decides_between_letters_and_texts(written: Writer) -> None:
    words = [
        {"question": f"How {k}?", "choices": ["Good", "Bad", "Fair", "Dab"], "answer": w}
        for k, w in enumerate(("Bad", "Good", "Dab"))
    ]
    assert answers(written(*words)) == ["B", "A", "D"]
    letters = [{"question": "Which letter?", "choices": ["B", "A", "C"], "answer": "A"}, *ask("D", "C")]
    assert answers(written(*letters)) == ["A", "D", "C"]


def test_columns_without_values_are_passed_over(written: Writer) -> None:
    row = {"query": None, "options": FOUR, "choices": None, "answer": None, "label": "C"}
    rows = [{"question": f"Which {k}?", **row} for k in range(3)]
    assert answers(written(*rows)) == ["C"] * 3
    late = [{"question": "Which?", "choices": FOUR}, *ask("B")]
    assert answers(written(*late)) == ["", "B"]


LABELLED = [
    ["(A)red", "(B)blue", "(C)green"],
    ["A) red", "B) blue", "C) green"],
    ["A. red", "B. blue", "C. green"],
    ["a: red", "b: blue", "c: green"],
    ["A、red", "B、blue", "C、green"],
    ["1) red", "2) blue", "3) green"],
    ["① red", "② blue", "③ green"],
    ["[i] red", "[ii] blue", "[iii] green"],
]
UNLABELLED = [
    ["1.5 m", "2.5 m", "3.5 m"],
    ["1:30", "2:30", "3:30"],
    ["1 apple", "2 apples", "3 apples"],
    ["A. Lincoln", "G. Washington", "T. Jefferson"],
    ["Both A and B", "A only", "B only"],
    ["A", "B", "C"],
]


@pytest.mark.parametrize("options", LABELLED)
def test_labels_are_taken_off(written: Writer, options: list[str]) -> None:
    path = written(*ask("B", options=options))
    benchmark = load_benchmark(path)
    assert benchmark.items[0].options == ("red", "blue", "green")
    assert "labels such as (A) were taken off" in benchmark.guesses[0]


@pytest.mark.parametrize("options", UNLABELLED)
def test_what_only_looks_like_labels_stays(options: list[str]) -> None:
    assert without_labels(options) is None


@pytest.mark.parametrize("options", [["(B) red", "(A) blue", "(C) green"], ["(A) red", "(B) blue", "green"]])
def test_labels_that_do_not_fit_are_left_out(written: Writer, options: list[str]) -> None:
    path = written(*ask("B", options=options), *ask("C", "D"))
    benchmark = load_benchmark(path)
    assert len(benchmark.items) == 2 and "label" in next(iter(benchmark.excluded))


def test_a_question_that_lists_its_options_is_left_out(written: Writer) -> None:
    listing = {"question": "Is it red clay, blue sand, green loam or grey silt?", "choices": FOUR, "gold": 0}
    benchmark = load_benchmark(written(listing, *ask("B")))
    assert len(benchmark.items) == 1
    assert "the question itself lists the options" in next(iter(benchmark.excluded))


@pytest.mark.parametrize(
    "asked",
    [
        "Which? (A) red clay (B) blue sand (C) green loam (D) grey silt",
        "Which?\nA. red clay\nB. blue sand\nC. green loam\nD. grey silt\nAnswer:",
        "Which? Answer Choices: (A)red clay (B)blue sand (C)green loam (D)grey silt\nA: Among A to D, the answer is",
    ],
)
def test_a_labelled_list_of_the_options_behind_the_question_is_cut_off(written: Writer, asked: str) -> None:
    benchmark = load_benchmark(written({"question": asked, "choices": FOUR, "gold": 0}, *ask("B")))
    assert benchmark.items[0].question == "Which?" and benchmark.items[0].options == tuple(FOUR)
    assert "1 questions listed their own options at their end; the list was cut off" in benchmark.guesses


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("plorb?,red,blue,green,grey,B\nvint?,1,2,3,4,C\n", None),
        ("plorb?;red;blue;green;grey;b\nvint?;1;2;3;4;c\n", None),
        ("7,plorb?,red,blue,green,grey,2\n8,vint?,1,2,3,4,4\n", "header=no,question=2,options=3|4|5|6,answer=7"),
    ],
)
def test_files_without_a_header(tmp_path: Path, text: str, base: str | None) -> None:
    path = tmp_path / "set.csv"
    path.write_text(text, encoding="utf-8")
    benchmark = load_benchmark(path, columns=base)
    assert [item.question for item in benchmark.items] == ["plorb?", "vint?"]
    assert [item.options[0] for item in benchmark.items] == ["red", "1"]
    assert [item.answer for item in benchmark.items] == (["B", "C"] if base is None else ["B", "D"])
    if base is None:
        assert "no header, read by position" in benchmark.guesses[0]
        with pytest.raises(DataError, match="no column for question"):
            load_benchmark(path, columns="header=yes")


PRINTED = [
    "['0' '4' '2' '6']",
    "[0 4 2 6]",
    "['the first, of the long ones'\n 'the second' 'the third']",
    "[\"a plorb's nose\" 'b' 'c']",
    "{'text': array(['a', 'b'], dtype=object), 'label': array(['A', 'B'], dtype=object)}",
    "['a', 'b', ..., 'y', 'z']",
]


@pytest.mark.parametrize("printed", PRINTED)
def test_printed_arrays_are_refused_by_name(written: Writer, printed: str) -> None:
    path = written(*ask("A", options=printed))
    with pytest.raises(DataError, match="printed array") as error:
        load_benchmark(path)
    assert (error.value.file, error.value.row) == (str(path), 1)


@pytest.mark.parametrize(
    "listed", [str(FOUR), json.dumps(FOUR), "\n".join(FOUR), "['np.array([1])', 'x ... y', 'c', 'd']"]
)
def test_lists_written_as_text_are_read(written: Writer, listed: str) -> None:
    [item] = load_benchmark(written(*ask("B", options=listed))).items
    assert len(item.options) == 4 and item.answer == "B"


SHAPES: list[tuple[Any, Any, str]] = [
    ({"text": FOUR, "label": ["1", "2", "3", "4"]}, "4", "D"),
    ({"label": ["A", "B", "C", "D"], "text": FOUR}, "B", "B"),
    ({"choices": FOUR, "labels": ["p", "q", "r", "s"]}, "r", "C"),
    ([{"label": label, "text": text} for label, text in zip("WXYZ", FOUR, strict=True)], "Y", "C"),
    ({str(k): text for k, text in enumerate(FOUR)}, "2", "C"),
    ({f"{k}": f"no {k}" for k in range(1, 13)}, "11", "K"),
    ([*FOUR, None, ""], "D", "D"),
]


@pytest.mark.parametrize(("options", "answer", "right"), SHAPES)
def test_shapes_of_options(written: Writer, options: Any, answer: Any, right: str) -> None:
    assert answers(written(*ask(answer, options=options))) == [right]


def test_the_first_release_of_arc(written: Writer) -> None:
    choices = [{"text": text, "label": label} for text, label in zip(FOUR, "1234", strict=True)]
    row = {"id": "Q7", "question": {"stem": "Which soil?", "choices": choices}, "answerKey": "3"}
    [item] = load_benchmark(written(row)).items
    assert (item.id, item.question, item.answer, item.options) == ("Q7", "Which soil?", "C", tuple(FOUR))


@pytest.mark.parametrize(
    ("columns", "value", "right"),
    [
        (("ans0", "ans1", "ans2"), [1, 1], ["B", "B"]),
        (("sol1", "sol2"), [0, 1], ["A", "B"]),
        (("option1", "option2"), ["1", "2"], ["A", "B"]),
        (("opa", "opb", "opc"), ["c", "a"], ["C", "A"]),
        (("answer_a", "answer_b"), ["a", "b"], ["A", "B"]),
    ],
)
def test_columns_of_public_sets(written: Writer, columns: tuple[str, ...], value: list[Any], right: list[str]) -> None:
    named = dict(zip(columns, FOUR, strict=False))
    rows = [{"question": f"Which {k}?", **named, "label": v} for k, v in enumerate(value)]
    assert answers(written(*rows)) == right


@pytest.mark.parametrize(
    "document",
    [
        ask("B", "C"),
        {"data": ask("B", "C")},
        {"rows": [{"row_idx": k, "row": row} for k, row in enumerate(ask("B", "C"))]},
        {"question": ["x?", "y?"], "choices": [FOUR, FOUR], "answer": ["B", "C"]},
    ],
)
def test_json_documents(tmp_path: Path, written: Writer, document: Any) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert answers(path) == ["B", "C"]
    if isinstance(document, dict) and "question" in document:
        assert answers(written(document)) == ["B", "C"]


def test_more_than_ten_options(written: Writer) -> None:
    options = [f"stone {k}" for k in range(14)] + ["Both K and L", "None of the above"]
    [item] = load_benchmark(written(*ask("M", options=options))).items
    assert item.answer == "M" and len(item.options) == 16
    for order in shuffled_orders(item, 20, seed=0):
        assert [order[k] for k in (10, 11, 14, 15)] == [10, 11, 14, 15]


def test_class_numbers_get_their_names(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "question": datasets.Value("string"),
            "choices": datasets.Sequence(datasets.Value("string")),
            "answer": datasets.ClassLabel(names=["D", "C", "B", "A"]),
        }
    )
    table = {"question": ["x?", "y?"], "choices": [FOUR, FOUR], "answer": [0, 3]}
    datasets.Dataset.from_dict(table, features=features).to_parquet(str(tmp_path / "set.parquet"))
    assert answers(tmp_path / "set.parquet") == ["D", "A"]


def test_more_than_half_unusable_is_refused_and_less_is_said(written: Writer) -> None:
    bad = [{"question": "", "choices": FOUR, "answer": "A"}]
    with pytest.raises(DataError, match="more than half of the rows cannot be used"):
        load_benchmark(written(*({**bad[0], "id": k} for k in range(3)), *ask("A")))
    loss = load_benchmark(written(*bad, *ask("A", "B", "C"))).loss()
    assert loss == "1 of 4 rows (25%) could not be used: 1 because the question is empty"


@pytest.mark.parametrize("wrong", ["answer-base=2", "header=maybe", "question=A,question=B", "answer=", "base=1"])
def test_mappings_that_are_none(wrong: str) -> None:
    with pytest.raises(UsageError, match="column mapping"):
        parse_mapping(wrong)


def test_columns_named_alike_are_asked_for(written: Writer) -> None:
    row = {"question": "x?", "choices": FOUR, "Answer": "A", "answer": "B"}
    path = written(row)
    with pytest.raises(DataError, match="several columns for the answer"):
        load_benchmark(path)
    assert answers(path, columns="answer=Answer") == ["A"]


@pytest.mark.parametrize("right", [(1, 0), (1.0, 0.0), (True, False)])
def test_a_mark_for_each_option_is_no_list_of_numbers(written: Writer, right: tuple[object, object]) -> None:
    yes, no = right
    marks = [[yes, no, no, no], [no, no, yes, no], [no, yes, no, yes], [no, no, no, no]]
    assert answers(written(*ask(*marks))) == ["A", "C", "B,D", ""]


@pytest.mark.parametrize(
    "form", ["{} - x", "{} – x", "{}\tx", "{} x", "**{}** x", "**{}.** x", "<{}> x", "Option {}: x", "choice ({}) x"]
)
@pytest.mark.parametrize("names", ["ABCD", "abcd"])
def test_labels_of_any_make(form: str, names: str) -> None:
    options = [form.replace("x", text).format(name) for name, text in zip(names, FOUR, strict=True)]
    assert without_labels(options) == FOUR


@pytest.mark.parametrize(
    "names", ["一二三四", "ⅠⅡⅢⅣ", "⒜⒝⒞⒟", "❶❷❸❹", "EFGH", "FGHJ", ["First", "Second", "Third", "Fourth"]]
)
def test_labels_of_any_series(names: list[str]) -> None:
    for form in ("{}. ", "{}: ", "（{}）", "Antwort {}: ", "- {}) "):
        assert without_labels([form.format(name) + text for name, text in zip(names, FOUR, strict=True)]) == FOUR


@pytest.mark.parametrize("form", ["#{} x", "{} - x", "{}。x", "Réponse {} : x", "x ({})", "x [{}]."])
@pytest.mark.parametrize("names", ["1234", "ABCD"])
def test_labels_between_the_same_marks(form: str, names: str) -> None:
    options = [form.replace("x", text).format(name) for name, text in zip(names, FOUR, strict=True)]
    assert without_labels(options) == FOUR


@pytest.mark.parametrize("names", ["АБВГ", "가나다라", "アイウエ", "أبجد", "αβγδ", "कखगघ", "甲乙丙丁", "ⒶⒷⒸⒹ"])
def test_labels_of_any_alphabet(names: str) -> None:
    assert without_labels([f"{name}) {text}" for name, text in zip(names, FOUR, strict=True)]) == FOUR
    assert without_labels([f"({name}) {text}" for name, text in zip(names, FOUR, strict=True)]) == FOUR


@pytest.mark.parametrize(
    "options",
    [
        ["1 apple", "2 apples", "3 apples", "4 apples"],
        ["1 - 2 hours", "2 - 3 hours", "3 - 4 hours", "4 - 5 hours"],
        ["a dog", "a cat", "a cow", "a hen"],
        ["I am", "I was", "I will be", "I had been"],
        ["<b> tag", "<a> tag", "<p> tag", "<i> tag"],
        ["α decay", "β decay", "γ decay"],
        ["I only", "II only", "III only"],
        ["1-bromopropane", "2-bromopropane", "3-bromopropane"],
        ["(1, x)", "(2, y)", "(3, z)"],
        ["Vitamin A, cooked", "Vitamin B, raw", "Vitamin C, dried"],
        ["C. elegans", "D. rerio", "E. coli"],
        ["f(a)", "g(b)", "h(c)"],
        ["May 1.", "May 2.", "May 3."],
    ],
)
def test_texts_that_only_look_like_labels_are_kept(options: list[str]) -> None:
    assert without_labels(options) is None


def test_a_running_number_is_no_question(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("0,q one,u,v,w,x,A\n1,q two,u,v,w,x,B\n")
    with pytest.raises(DataError, match="first column holds numbers"):
        load_benchmark(path)
    named = load_benchmark(path, columns="header=no,question=2,options=3|4|5|6,answer=7")
    assert [item.answer for item in named.items] == ["A", "B"]


SEEN = {
    "kmmlu.csv": ["A", "D", "B", "C"],
    "anstext.jsonl": ["B", "A", "A", "A", "A"],
    "label_and_null_answer.jsonl": ["B", "B", "B"],
    "mmlu_noheader.csv": ["B", "C", "A"],
}


@pytest.mark.parametrize("name", SEEN)
def test_inputs_that_gave_a_wrong_answer(name: str) -> None:
    assert answers(shared(f"cases/data/{name}")) == SEEN[name]


def test_the_same_questions_with_and_without_labels() -> None:
    plain = load_benchmark(shared("cases/data/options_plain.jsonl")).items
    labelled = load_benchmark(shared("cases/data/options_with_labels.jsonl")).items
    assert [item.options for item in plain] == [item.options for item in labelled]


def test_the_printed_arrays_of_a_real_export() -> None:
    with pytest.raises(DataError, match="row 2: the options are a printed array"):
        load_benchmark(shared("cases/data/mmlu_pandas_numpy.csv"))


@pytest.mark.parametrize(("copies", "told"), [(1, False), (2, True)])
def test_items_that_stand_there_twice_are_a_warning(tmp_path: Path, copies: int, told: bool) -> None:
    rows = "".join(f"What is {n}?,one {n},two {n},three {n},{'ABC'[n % 3]}\n" for n in range(6))
    for copy in range(copies):
        (tmp_path / f"{copy}.csv").write_text("question,A,B,C,answer\n" + rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cached_benchmark(str(tmp_path), None, None, 0)
    assert any("6 of 12 rows repeat another row, and count once" in str(one.message) for one in caught) is told
