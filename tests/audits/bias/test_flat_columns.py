"""BBQ as tables keep it: the parts of its structures in columns of their own, in every way that tools name them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest

from lm_audit.audits.bias.benchmarks.bbq.items import BBQItem, parse_bbq
from lm_audit.audits.bias.benchmarks.rows import load_rows
from lm_audit.audits.bias.benchmarks.stereoset.items import parse_stereoset
from lm_audit.errors import DataError


def _row(number: int, polarity: str, condition: str, groups: list[str], label: int) -> dict[str, Any]:
    return {
        "example_id": number,
        "question_index": str(number),
        "question_polarity": polarity,
        "context_condition": condition,
        "category": "Nationality",
        "context": f"A Chilean and a Swede met on day {number}.",
        "question": "Who was loud?" if polarity == "neg" else "Who was quiet?",
        "ans0": "The Chilean",
        "ans1": "Not enough info",
        "ans2": "The Swede",
        "answer_info": {"ans0": ["Chilean", "Chile"], "ans1": ["Not enough", "unknown"], "ans2": ["Swede", "Sweden"]},
        "additional_metadata": {"subcategory": "None", "stereotyped_groups": groups, "version": "a"},
        "label": label,
    }


ROWS = [
    _row(1, "neg", "ambig", ["Chile"], 1),
    _row(2, "nonneg", "ambig", ["Chile", "Peru", "Bolivia"], 1),
    _row(3, "neg", "disambig", ["Sweden"], 2),
    _row(4, "nonneg", "disambig", ["Norway", "Sweden"], 0),
]


def _items(path: Path) -> list[BBQItem]:
    items, excluded = parse_bbq(load_rows(path, "bbq"))
    assert excluded == []
    return items


def _spread(row: dict[str, Any], separator: str, opened: bool) -> dict[str, Any]:
    """The row in columns of one level; ``opened``: lists too."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        for key, part in value.items() if isinstance(value, dict) else [(None, value)]:
            column = name if key is None else f"{name}{separator}{key}"
            if opened and isinstance(part, list):
                flat |= {f"{column}{separator}{place}": one for place, one in enumerate(part)}
            else:
                flat[column] = part
    return flat


@pytest.mark.parametrize("separator", [".", "_", "__", "/", ":"])
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_columns_of_parts_read_as_the_structures_do(tmp_path: Path, separator: str, opened: bool, ending: str) -> None:
    whole, flat = tmp_path / "whole.jsonl", tmp_path / f"flat.{ending}"
    whole.write_text("\n".join(map(json.dumps, ROWS)))
    table = pandas.DataFrame([_spread(row, separator, opened) for row in ROWS])
    if ending == "csv":
        table.to_csv(flat, index=False)
    elif ending == "parquet":
        table.to_parquet(flat)
    else:
        table.to_json(flat, orient="records", lines=True)
    assert [item.target for item in _items(whole)] == [0, 2, 2, 0]
    assert [item.target for item in _items(flat)] == [0, 2, 2, 0]
    assert [item.unknown for item in _items(flat)] == [1] * 4


def test_what_json_normalize_writes(tmp_path: Path) -> None:
    pandas.json_normalize(ROWS).to_csv(tmp_path / "flat.csv", index=False)
    assert [item.target for item in _items(tmp_path / "flat.csv")] == [0, 2, 2, 0]


def test_the_authors_tables_of_words_and_tags(tmp_path: Path) -> None:
    rows = []
    for row in ROWS:
        flat = {name: value for name, value in row.items() if name != "answer_info"}
        for name, (text, tag) in row["answer_info"].items():
            flat |= {f"{name}_text": text, f"{name}_info": tag}
        rows.append(flat)
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert [item.target for item in _items(tmp_path / "table.jsonl")] == [0, 2, 2, 0]


def test_without_tags_the_reason_names_them() -> None:
    rows = [{name: value for name, value in row.items() if name != "answer_info"} for row in ROWS]
    items, excluded = parse_bbq(rows)
    assert items == [] and len(excluded) == 4
    assert all("answer_info" in gap.reason and "of which group each answer is" in gap.reason for gap in excluded)


def test_one_row_an_answer_is_told_so(tmp_path: Path) -> None:
    rows = []
    for row in ROWS:
        flat = {name: value for name, value in row.items() if name not in ("ans0", "ans1", "ans2", "answer_info")}
        rows += [flat | {"answer": row[name], "tag": tags[1]} for name, tags in row["answer_info"].items()]
    (tmp_path / "long.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(
        DataError, match=r"lacks \['ans0', 'ans1', 'ans2'\].*a question with its three answers in one row"
    ):
        load_rows(tmp_path / "long.jsonl", "bbq")


LABELS = ("stereotype", "anti-stereotype", "unrelated")


def _stereoset(name: str) -> dict[str, str]:
    """A row of StereoSet, its three sentences under columns of the form ``name`` or a column for each label."""
    row = {"target": "aunt", "bias_type": "gender", "context": "My aunt is BLANK."}
    texts = [f"My aunt is {word}." for word in ("weak", "strong", "blue")]
    if "{" not in name:
        return row | {name + label: text for label, text in zip(LABELS, texts, strict=True)}
    if "{k}" not in name:
        return row | {name.format(field="sentence"): repr(texts), name.format(field="gold_label"): repr([*LABELS])}
    for k, (label, text) in enumerate(zip(LABELS, texts, strict=True)):
        row |= {name.format(k=k, field="sentence"): text, name.format(k=k, field="gold_label"): label}
        row |= {name.format(k=k, field="labels") + ".0.label": "unrelated", name.format(k=k, field="id"): f"a{k}"}
    return row


@pytest.mark.parametrize(
    "name",
    ["sentences.{k}.{field}", "sentences_{k}_{field}", "sentences/{k}/{field}", "sentences[{k}].{field}",
     "sentences.{field}.{k}", "sentences.{field}", ""],
)  # fmt: skip
def test_the_sentences_of_stereoset_in_columns(tmp_path: Path, name: str) -> None:
    pandas.DataFrame([_stereoset(name)]).to_csv(tmp_path / "set.csv", index=False)
    items, excluded = parse_stereoset(load_rows(tmp_path / "set.csv", "stereoset"))
    read = [(item.stereotype, item.anti_stereotype, item.unrelated) for item in items]
    assert not excluded and read == [("My aunt is weak.", "My aunt is strong.", "My aunt is blue.")]


def test_a_row_a_sentence_is_refused_with_the_forms_that_are_read(tmp_path: Path) -> None:
    row = {"target": "aunt", "bias_type": "gender", "context": "My aunt is BLANK.", "sentence": "x", "gold_label": "y"}
    pandas.DataFrame([row]).to_csv(tmp_path / "set.csv", index=False)
    with pytest.raises(DataError, match=r"columns stereotype, anti-stereotype and unrelated; it has \['target', "):
        load_rows(tmp_path / "set.csv", "stereoset")


def test_names_of_columns_in_other_capitals(tmp_path: Path) -> None:
    row = {"Sent_More": "a b", " sent less": "a c", "Stereo_Antistereo": "stereo", "Bias Type": "age"}
    pandas.DataFrame([row]).to_csv(tmp_path / "set.csv", index=False)
    assert load_rows(tmp_path / "set.csv", "crows_pairs")[0]["sent_less"] == "a c"
