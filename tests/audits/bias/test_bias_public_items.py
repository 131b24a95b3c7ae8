"""Public rows as typed items: what is dirty in them is counted, what is unusable is excluded by name."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.bias.benchmarks.bbq.items import parse_bbq
from lm_audit.audits.bias.benchmarks.crows_pairs.items import parse_crows_pairs
from lm_audit.audits.bias.benchmarks.rows import load_rows
from lm_audit.audits.bias.benchmarks.stereoset.items import LABELS, parse_stereoset
from lm_audit.audits.bias.benchmarks.wino.winobias_items import parse_winobias
from lm_audit.audits.bias.benchmarks.wino.winogender_items import load_occupation_stats, parse_winogender
from lm_audit.errors import DataError
from tests.shared_data import shared


def test_crows_pairs_lint_counts_are_the_known_ones() -> None:
    pairs, excluded = parse_crows_pairs(load_rows(shared("data/bias/crows_pairs_anonymized.csv"), "crows_pairs"))
    counts = Counter(defect for pair in pairs for defect in pair.defects)
    assert [str(gap) for gap in excluded if gap.repeat] == [
        "crows_pairs_anonymized.csv row 1505: repeats row 1462 of crows_pairs_anonymized.csv"
    ]
    assert len(excluded) == 1 and len(pairs) == 1507
    assert len({pair.writer for pair in pairs}) == 77
    assert counts == {
        "several edited spans": 236,
        "unequal word counts": 213,
        "final punctuation in one sentence only": 26,
        "double or outer spaces": 14,
        "non-ASCII characters": 4,
        "case change in the first letter": 4,
    }


def test_pairs_without_a_contrast_are_excluded() -> None:
    base = {"stereo_antistereo": "stereo", "bias_type": "age"}
    rows = [{**base, "sent_more": "Same.", "sent_less": "Same."}, {**base, "sent_more": " ", "sent_less": "Other."}]
    pairs, excluded = parse_crows_pairs(rows)
    assert pairs == []
    assert [gap.reason for gap in excluded] == ["has two identical sentences", "has an empty sentence"]


SAME = [("A caf\u00e9.", "A cafe\u0301."), ("Old cats.", "Old  cats."), ("Old cats.", "Old\u200b cats.\u202c")]


@pytest.mark.parametrize(("one", "other"), SAME, ids=range(3))
def test_texts_that_differ_in_nothing_that_can_be_seen_are_no_contrast(one: str, other: str) -> None:
    pair = {"sent_more": one, "sent_less": other, "stereo_antistereo": "stereo", "bias_type": "age"}
    pairs, excluded = parse_crows_pairs([pair])
    assert not pairs and "as far as can be seen" in excluded[0].reason
    twins = [dict(entry) for entry in STEREOSET["sentences"]]
    twins[0]["sentence"], twins[2]["sentence"] = one, other
    items, excluded = parse_stereoset([{**STEREOSET, "task": "intersentence", "sentences": twins}])
    assert not items and "two candidates of one text" in excluded[0].reason
    answers = {**BBQ, "ans0": one, "ans1": other}
    found, excluded = parse_bbq([answers])
    assert not found and "are the same" in excluded[0].reason


@pytest.mark.parametrize("blank", ["\u200b", "\u200b \u2060", "\u3164", "\u202e"])
def test_a_text_of_which_nothing_can_be_seen_is_none(blank: str) -> None:
    pair = {"sent_more": blank, "sent_less": "A.", "stereo_antistereo": "stereo", "bias_type": "age"}
    assert [gap.reason for gap in parse_crows_pairs([pair])[1]] == ["has an empty sentence"]
    for field in ("context", "question", "ans1"):
        assert "a text is expected" in parse_bbq([{**BBQ, field: blank}])[1][0].reason


def test_stereoset_items_with_two_blanks_are_excluded() -> None:
    items, excluded = parse_stereoset(load_rows(shared("data/bias/stereoset_editbias"), "stereoset"))
    assert len(items) == 1131 - 2
    assert [(gap.file, "2 blanks" in gap.reason) for gap in excluded] == [
        ("dev.json", True),
        ("religion_test.json", True),
    ]


def stereoset_row(context: str, words: tuple[str, ...] = ("tall", "short", "green"), **more: object) -> dict[str, Any]:
    """A row whose candidates fill the first blank of the context, in whichever way that is written."""
    filled = [re.sub(r"\S*(?i:blank)\S*|_{2,}|\[MASK\]|<mask>", word, context, count=1) for word in words]
    labels = ("stereotype", "anti-stereotype", "unrelated")
    sentences = [{"sentence": text, "gold_label": label} for text, label in zip(filled, labels, strict=True)]
    return {"target": "t", "bias_type": "gender", "context": context, "sentences": sentences, **more}


@pytest.mark.parametrize("blank", ["BLANK", "___", "_____", "blank", "[BLANK]", "<blank>", "[MASK]", "{blank}"])
@pytest.mark.parametrize("stated", [{}, {"task": "intrasentence"}, {"task": "Intrasentence "}])
def test_a_blank_however_it_is_written_makes_a_sentence(blank: str, stated: dict[str, str]) -> None:
    [item], excluded = parse_stereoset([stereoset_row(f"Our new neighbour is {blank} as they say.") | stated])
    assert item.task == "intrasentence" and not excluded


@pytest.mark.parametrize("label", ["antistereotype", "anti_stereotype", "Anti Stereotype"])
def test_the_label_of_the_other_side_however_it_is_spelt(label: str) -> None:
    row = stereoset_row("Our new neighbour is BLANK.")
    row["sentences"][1]["gold_label"] = label
    assert len(parse_stereoset([row])[0]) == 1


def test_what_is_no_blank_makes_no_sentence() -> None:
    words = ("They laughed.", "They wept.", "It rained.")
    plain = stereoset_row("He stared at a blank wall.") | {
        "sentences": [{"sentence": w, "gold_label": g} for w, g in zip(words, LABELS, strict=True)]
    }
    [item], excluded = parse_stereoset([plain])
    assert item.task == "intersentence" and not excluded
    unfilled = plain | {"context": "He stared at a ___ wall."}
    assert "the candidates do not fill" in parse_stereoset([unfilled])[1][0].reason
    words_alone = plain | {"context": "He stared: BLANK."}
    assert "the word filled in" in parse_stereoset([words_alone])[1][0].reason
    twice = stereoset_row("The ___ and the ___ met.")
    assert "2 blanks" in parse_stereoset([twice])[1][0].reason
    assert "one of ['intra" in parse_stereoset([plain | {"task": "intra"}])[1][0].reason
    assert "0 blanks" in parse_stereoset([plain | {"task": "intrasentence"}])[1][0].reason


PARSERS = {
    "crows_pairs": parse_crows_pairs,
    "stereoset": parse_stereoset,
    "winobias": parse_winobias,
    "winogender": parse_winogender,
    "bbq": parse_bbq,
}


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("row", [{}, {"context": "c"}, "text", None, ["a"]])
def test_rows_that_are_none_of_the_set_are_named_by_file_and_row(kind: str, row: Any) -> None:
    placed = {**row, "_file": "own.json", "_row": 7} if isinstance(row, dict) else row
    with pytest.raises(DataError, match="a dictionary of columns" if row is placed else f"{kind} rows have") as caught:
        PARSERS[kind]([placed])
    assert caught.value.row == (1 if row is placed else 7)
    assert row is placed or str(caught.value.file) == "own.json"


@pytest.mark.parametrize("tokens", [0, "The cook", ["The", None], {"a": 1}, [["The"]]])
def test_tokens_of_winobias_that_are_no_texts(tmp_path: Path, tokens: object) -> None:
    row = {"tokens": tokens, "coreference_clusters": [0, 0], "type": 1, "condition": "pro"}
    (tmp_path / "set.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="a list of texts is expected") as caught:
        load_rows(tmp_path / "set.jsonl", "winobias")
    assert caught.value.row == 1


@pytest.mark.parametrize(("field", "value"), [("type", "three"), ("type", None), ("condition", "neutral")])
def test_a_winobias_line_of_no_known_part_is_excluded(field: str, value: object) -> None:
    line = {"sentence": "[The cook] thanked the nurse since [he] left.", "type": 1, "condition": "pro"}
    assert parse_winobias([line])[0]
    items, [gap] = parse_winobias([line | {field: value}])
    assert not items and field in gap.reason


def test_winobias_lines_that_bracket_twice_are_parsed() -> None:
    items, excluded = parse_winobias(load_rows(shared("data/bias/winobias"), "winobias"))
    assert len(items) == 3168 - 2 - 6  # the last lines of dev are the first of test again
    assert Counter(gap.repeat for gap in excluded) == {False: 2, True: 6}
    assert all("one other occupation" in gap.reason for gap in excluded if not gap.repeat)
    assert all(item.question.candidates[0] != item.question.candidates[1] for item in items)
    assert all("[" not in item.question.sentence for item in items)
    balance = Counter((item.condition, item.gender) for item in items)
    assert max(balance.values()) - min(balance.values()) < 10


def test_winogender_ids_carry_the_answer() -> None:
    items, excluded = parse_winogender(load_rows(shared("data/bias/winogender/all_sentences.tsv"), "winogender"))
    assert len(items) == 720 and not excluded
    assert Counter(item.gender for item in items) == {"male": 240, "female": 240, "neutral": 240}
    assert sum("someone" in item.question.candidates for item in items) == 360


@pytest.mark.parametrize(("folder", "kind", "count"), [("bbq", "bbq", 5196), ("cbbq", "cbbq", 1172)])
def test_every_published_bbq_row_has_one_target(folder: str, kind: str, count: int) -> None:
    items, excluded = parse_bbq(load_rows(shared(f"data/bias/{folder}"), kind))
    assert len(items) + len(excluded) == count and all(gap.repeat for gap in excluded) and len(excluded) <= 2
    assert all(item.target != item.unknown for item in items)


STEREOSET: dict[str, Any] = {
    "target": "plorb",
    "bias_type": "race",
    "context": "A BLANK came.",
    "sentences": [
        {"sentence": f"A {word} came.", "gold_label": label}
        for word, label in (("loud", "stereotype"), ("calm", "anti-stereotype"), ("blue", "unrelated"))
    ],
}


BBQ: dict[str, Any] = {
    "question_polarity": "neg",
    "context_condition": "ambig",
    "category": "Age",
    "context": "Ann and Bo met.",
    "question": "Who?",
    "ans0": "Ann",
    "ans1": "Bo",
    "ans2": "Unknown",
    "answer_info": {"ans0": ["Ann", "old"], "ans1": ["Bo", "nonOld"], "ans2": ["x", "unknown"]},
    "additional_metadata": {"stereotyped_groups": ["old"]},
    "label": 2,
}


@pytest.mark.parametrize("value", [None, [None], [], {"a": None}, {}, 5, True, "", "  ", "\u200b"])
@pytest.mark.parametrize("field", ["context", "target", "bias_type", "sentence", "sentences", "sentence record"])
def test_what_is_no_text_is_no_stereoset_text(field: str, value: object) -> None:
    broken = {**STEREOSET, field: value}
    if field.startswith("sentence "):
        broken = {**STEREOSET, "sentences": [value, *STEREOSET["sentences"][1:]]}
    elif field == "sentence":
        first = {**STEREOSET["sentences"][0], "sentence": value}
        broken = {**STEREOSET, "sentences": [first, *STEREOSET["sentences"][1:]]}
    items, excluded = parse_stereoset([STEREOSET, broken])
    assert len(items) == 1 and len(excluded) == 1 and excluded[0].row == 2


@pytest.mark.parametrize("value", [[None], {"a": None}, 5, True])
def test_what_is_no_text_is_no_sentence_of_the_other_sets(value: object) -> None:
    pair = {"sent_more": value, "sent_less": "A loud one.", "stereo_antistereo": "stereo", "bias_type": "age"}
    gender = {"sentid": "nurse.patient.0.male.txt", "sentence": value}
    bias = {"sentence": value, "condition": "pro", "type": 1}
    for parse, row in ((parse_crows_pairs, pair), (parse_winogender, gender), (parse_winobias, bias)):
        items, excluded = parse([row])
        assert not items and "text" in excluded[0].reason


@pytest.mark.parametrize("value", [[], ["age"], {"a": 1}])
def test_what_a_set_is_divided_by_is_a_label(value: object) -> None:
    pair = {"sent_more": "A b.", "sent_less": "A c.", "stereo_antistereo": "stereo", "bias_type": value}
    pairs, excluded = parse_crows_pairs([pair, {**pair, "bias_type": "age"}])
    assert len(pairs) == 1 and "bias_type" in excluded[0].reason


@pytest.mark.parametrize("field", [{"category": []}, {"category": {}}, {"stereotyped_groups": 7}])
@pytest.mark.parametrize("groups", [[None], 3, 2.5, {"a": 1}, True])
def test_groups_that_are_no_names_are_left_out(field: dict[str, object], groups: object) -> None:
    wrong = {**BBQ, "additional_metadata": {"stereotyped_groups": groups}}
    items, excluded = parse_bbq([BBQ, wrong, {**BBQ, **field}] if "category" in field else [BBQ, wrong])
    assert len(items) == 1 and all(gap.row >= 2 for gap in excluded)


@pytest.mark.parametrize("share", ["5_0", "５０", "nan", "inf", "1e400", "-1", "100.5", "50%", "0x10", ""])
def test_a_share_of_women_is_a_percentage_in_digits(tmp_path: Path, share: str) -> None:
    path = tmp_path / "occupations-stats.tsv"
    path.write_text(f"occupation\tbls_pct_female\nnurse\t89.6\nclerk\t{share}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"occupations-stats\.tsv, row 3"):
        load_occupation_stats(path)
    path.write_text("occupation\tbls_pct_female\nnurse\t89.6\nclerk\t 0 \n", encoding="utf-8")
    assert load_occupation_stats(path) == {"nurse": 89.6, "clerk": 0.0}
