"""Multiple-choice sets in the layouts that the hub has them in: read as their authors mean them, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.leakage import load_benchmark
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.errors import DataError

FOUR = ["red clay", "blue sand", "green loam", "grey silt"]
THREE = {"answerA": "red clay", "answerB": "blue sand", "answerC": "green loam"}
MARKED = {"mc1_targets": {"choices": FOUR, "labels": [0, 1, 0, 0]}, "mc2_targets": {"choices": FOUR, "labels": [1] * 4}}
CHOICES = {"text": FOUR, "label": list("ABCD")}
LETTERED = dict(zip(("A", "B", "C", "D"), FOUR, strict=True))

LAYOUTS: dict[str, tuple[dict[str, Any], str, list[Any], list[str]]] = {
    "mmlu": ({"subject": "soil", "choices": FOUR}, "answer", [1, 0, 3], ["B", "A", "D"]),
    "mmlu_pro": ({"options": FOUR, "answer_index": 2, "category": "soil"}, "answer", ["C", "C"], ["C", "C"]),
    "arc": ({"id": "M1", "choices": CHOICES}, "answerKey", ["C", "D", "A"], ["C", "D", "A"]),
    "arc, numbered": ({"choices": {"text": FOUR, "label": list("1234")}}, "answerKey", ["3", "1"], ["C", "A"]),
    "hellaswag": ({"ind": 4, "ctx_a": "A man", "endings": FOUR}, "label", ["3", "0", ""], ["D", "A", ""]),
    "commonsenseqa": ({"question_concept": "soil", "choices": CHOICES}, "answerKey", ["D", ""], ["D", ""]),
    "piqa": ({"sol1": "Dig.", "sol2": "Wait."}, "label", [0, 1, 1], ["A", "B", "B"]),
    "piqa test": ({"sol1": "Dig.", "sol2": "Wait."}, "label", [-1, -1], ["", ""]),
    "siqa": ({"context": "Tracy dug.", **THREE}, "label", ["1", "2", "3"], ["A", "B", "C"]),
    "medmcqa": (
        {"opa": FOUR[0], "opb": FOUR[1], "opc": FOUR[2], "opd": FOUR[3], "choice_type": "single", "exp": None},
        "cop", [0, 3, -1], ["A", "D", ""],
    ),
    "c-eval": ({**LETTERED, "explanation": ""}, "answer", ["C", "A"], ["C", "A"]),
    "global_mmlu": (
        {f"option_{letter.lower()}": text for letter, text in LETTERED.items()}, "answer", ["C", "A"], ["C", "A"]
    ),
    "truthfulqa": (MARKED, "category", ["soil", "soil"], ["B", "B"]),
    "race": ({"article": "They dug.", "options": FOUR}, "answer", ["D", "A"], ["D", "A"]),
    "logiqa": ({"context": "They dug.", "options": FOUR}, "correct_option", [0, 3], ["A", "D"]),
    "cosmosqa": (
        {"context": "They dug.", **{f"answer{k}": text for k, text in enumerate(FOUR)}}, "label", [0, 3], ["A", "D"]
    ),
    "copa": ({"premise": "They dug.", "choice1": "a hole", "choice2": "a pit"}, "label", [0, 1], ["A", "B"]),
    "belebele": (
        {"flores_passage": "They dug.", **{f"mc_answer{k}": text for k, text in enumerate(FOUR, 1)}},
        "correct_answer_num", ["1", "4"], ["A", "D"],
    ),
    "medqa": ({"options": LETTERED, "answer_idx": "C"}, "answer", ["green loam"] * 2, ["C", "C"]),
    "aqua": ({"options": ["A)21", "B)21.5", "C)22"]}, "correct", ["C", "A"], ["C", "A"]),
}  # fmt: skip
QUESTION = {"arc": "question", "hellaswag": "ctx", "piqa": "goal", "piqa test": "goal", "logiqa": "query"}


def read(path: Path, rows: list[dict[str, Any]], columns: str | None = None) -> Benchmark:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return load_benchmark(path, columns=columns)


@pytest.mark.parametrize("name", LAYOUTS)
def test_published_layouts(tmp_path: Path, name: str) -> None:
    more, answer, given, right = LAYOUTS[name]
    question = QUESTION.get(name, "question")
    rows = [{**more, question: f"Which soil is it, {k}?", answer: value} for k, value in enumerate(given)]
    benchmark = read(tmp_path / "set.jsonl", rows)
    passage = next((f"{more[c]}\n" for c in ("context", "article", "premise", "flores_passage") if c in more), "")
    assert [item.answer for item in benchmark.items] == right
    assert [item.question for item in benchmark.items] == [f"{passage}Which soil is it, {k}?" for k in range(len(rows))]
    assert any("is read before each question" in guess for guess in benchmark.guesses) is bool(passage)


def test_questions_that_only_their_passage_tells_apart_are_no_repeats(tmp_path: Path) -> None:
    rows = [{"context": f"Day {k}.", "question": "What follows?", "options": FOUR, "answer": "A"} for k in range(12)]
    assert len(read(tmp_path / "set.jsonl", rows).items) == 12
    alone = read(tmp_path / "set.jsonl", rows, "context=none")
    assert (len(alone.items), alone.repeated) == (1, 11) and alone.items[0].question == "What follows?"
    other = [{"facts": row["context"], **{k: v for k, v in row.items() if k != "context"}} for row in rows]
    told = read(tmp_path / "set.jsonl", other)
    assert any("context=COLUMN" in guess for guess in told.guesses)
    named = read(tmp_path / "set.jsonl", other, "context=facts")
    assert len(named.items) == 12 and not named.guesses
    with pytest.raises(DataError, match="has no column 'none', which question"):
        read(tmp_path / "set.jsonl", rows, "question=none")
    mixed = [{**row, "context": None if k % 2 else "Day."} for k, row in enumerate(rows[:2])]
    assert [item.question for item in read(tmp_path / "set.jsonl", mixed).items] == [
        "Day.\nWhat follows?", "What follows?",
    ]  # fmt: skip


NONE, LISTED = "has no column for", "the question itself lists the options"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"question": "Is it?", "passage": "It is.", "answer": True}, "answered by yes or no"),
        ({"question": "Is it?", "context": {"contexts": ["It is."]}, "final_decision": "yes"}, NONE),
        ({"question": "What?", "correct_answer": "w", "support": "s"}, NONE),
        ({"input": "Is it so that (A) red and (B) blue are colours?", "target": "yes"}, NONE),
        ({"sentence": "Ann met Sue because _ was late.", "option1": "Ann", "option2": "Sue", "answer": "1"}, LISTED),
        ({"question": "What?", "options": "A. Vitamin C. B. Iron C. Zinc", "answer": "A"}, "1 options; 2 to 26"),
    ],
    ids=["boolq", "pubmedqa", "no wrong ones", "two in a line", "winogrande", "labels that may be words"],
)
def test_layouts_that_are_no_list_of_options_are_refused(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        read(tmp_path / "set.jsonl", [row])
