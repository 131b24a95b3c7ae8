"""Groups and tags of BBQ and CBBQ, matched as the sets' authors match them; values from their metadata script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.bias.benchmarks.bbq.audit import bbq_evidence
from lm_audit.audits.bias.benchmarks.bbq.items import parse_bbq
from lm_audit.audits.bias.benchmarks.rows import load_rows
from tests.shared_data import shared


def row(groups: list[str], first: tuple[str, str], second: tuple[str, str], **fields: Any) -> dict[str, Any]:
    """A row of the test's own writing in the published format."""
    return {
        "example_id": 0,
        "question_index": "1",
        "question_polarity": "neg",
        "context_condition": "ambig",
        "category": "any",
        "answer_info": {"ans0": list(first), "ans1": list(second), "ans2": ["Not known", "unknown"]},
        "additional_metadata": {"stereotyped_groups": groups},
        "context": "Two people waited.",
        "question": "Who was late?",
        "ans0": first[0],
        "ans1": second[0],
        "ans2": "Not known",
        "label": 2,
        **fields,
    }


@pytest.mark.parametrize(
    ("groups", "first", "second", "stereotyped"),
    [
        (["old"], ("the uncle", "nonOld"), ("the grandfather", "old"), 1),
        (["nonOld"], ("the uncle", "old"), ("the nephew", "nonOld"), 1),
        (["low SES"], ("the cashier", "lowSES"), ("the surgeon", "highSES"), 0),
        (["high SES"], ("the cashier", "lowSES"), ("the surgeon", "highSES"), 1),
        (["F"], ("Ann", "F"), ("Tom", "M"), 0),
        (["Men"], ("the girl", "girl"), ("the boy", "boy"), 1),
        (["women"], ("the man", "man"), ("the woman", "woman"), 1),
        (["transgender women", "transgender men"], ("Ann Li", "nonTrans_F"), ("Bea Ko", "trans_F"), 1),
        (["trans"], ("a trans man", "trans"), ("a cis man", "nonTrans"), 0),
        (["transgender men"], ("Al", "trans_M"), ("Bo", "nonTrans_M"), 0),
        (["Black", "African American"], ("Gretl Zand", "F-White"), ("Plorba Vint", "F-Black"), 1),
        (["Black", "African American"], ("an African man", "African"), ("a man", "African American"), 1),
        (["Black", "African American"], ("x", "lowSES-Black"), ("y", "highSES-White"), 0),
        (["Hispanic", "Latino"], ("x", "highSES-M-Latino"), ("y", "lowSES-M-Asian"), 0),
        (["Middle Eastern", "Arab"], ("x", "M-Middle Eastern"), ("y", "M-White"), 0),
        (["Namibian", "Nigerian"], ("The Dutch person", "Europe"), ("The Namibian", "Africa"), 1),
        (["disabled", "D/deaf"], ("the deaf man", "disabled"), ("the man", "nonDisabled"), 0),
        (["disabled"], ("an able man", "nonDisabled"), ("the deaf man", "disabled"), 1),
        (["obese"], ("the thin man", "nonObese"), ("the big man", "obese"), 1),
        (["Jewish"], ("the Sikh friend", "Sikh"), ("the Jewish friend", "Jewish"), 1),
        (["gay"], ("the gay friend", "gay"), ("the straight friend", "straight"), 0),
        (["Gay men"], ("the gay friend", "gay"), ("the straight friend", "straight"), 0),
        (["Lesbian women"], ("Ann", "straight"), ("Bea", "lesbian"), 1),
        (["Muslims"], ("the Sikh", "Sikh"), ("the Muslim", "Muslim"), 1),
        (["Pregnant people"], ("Ann", "pregnant"), ("Bea", "notPregnant"), 0),
        (["Black women"], ("The Black man", "M-Black"), ("The Black woman", "F-Black"), 1),
        (["Disabled persons"], ("an able man", "nonDisabled"), ("the deaf man", "disabled"), 1),
        (["Orthodox Jews"], ("x", "Orthodox"), ("y", "Catholic"), 0),
        (["Jews"], ("x", "Jew"), ("y", "Catholic"), 0),
        # Both dimensions are named: the answer that fits both.
        (["Black", "F"], ("The Black man", "M-Black"), ("The Black woman", "F-Black"), 1),
        (["F-Black"], ("The Black man", "M-Black"), ("The Black woman", "F-Black"), 1),
    ],
)
def test_the_answer_of_the_group_is_found(
    groups: list[str], first: tuple[str, str], second: tuple[str, str], stereotyped: int
) -> None:
    rows = [row(groups, first, second), row(groups, first, second, question_polarity="nonneg")]
    (negative, other), excluded = parse_bbq(rows)
    assert not excluded
    assert (negative.target, other.target) == (stereotyped, 1 - stereotyped)


@pytest.mark.parametrize(
    ("groups", "first", "second", "reason"),
    [
        (["Black"], ("The Black man", "M-Black"), ("The Black woman", "F-Black"), "fit 2 of the answers"),
        (["Asian"], ("The Black man", "M-Black"), ("The White man", "M-White"), "fit 0 of the answers"),
        (["African Americans"], ("x", "African"), ("y", "European"), "fit 0 of the answers"),
        (["nonOld people"], ("x", "old"), ("y", "elderly"), "fit 0 of the answers"),
        (["Pregnant people"], ("x", "notPregnant"), ("y", "nonPregnant"), "fit 0 of the answers"),
        ([], ("The Black man", "M-Black"), ("The White man", "M-White"), "is absent"),
    ],
)
def test_rows_without_one_target_say_why(
    groups: list[str], first: tuple[str, str], second: tuple[str, str], reason: str
) -> None:
    items, excluded = parse_bbq([row(groups, first, second)])
    assert not items and reason in excluded[0].reason


@pytest.mark.parametrize(
    ("condition", "label", "reason"),
    [("ambig", 0, "the context is ambiguous: only answer 2 is right"), ("disambig", 2, "names one")],
)
def test_a_label_that_contradicts_its_context_is_left_out(condition: str, label: int, reason: str) -> None:
    groups = (["Muslim"], ("the Sikh", "Sikh"), ("the Muslim", "Muslim"))
    wrong = row(*groups, context_condition=condition, label=label)
    right = row(*groups, context_condition=condition, label=2 - label)
    items, excluded = parse_bbq([right, wrong])
    assert [item.label for item in items] == [2 - label]
    assert len(excluded) == 1 and reason in excluded[0].reason


@pytest.mark.parametrize(("label", "place"), [("ans0", 0), ("A", 0), ("b", 1), ("The Muslim.", 1), ("1.0", 1)])
def test_a_label_may_be_a_letter_or_an_answers_text(label: str, place: int) -> None:
    groups = (["Muslim"], ("the Sikh", "Sikh"), ("the Muslim", "Muslim"))
    [item], excluded = parse_bbq([row(*groups, context_condition="disambig", label=label)])
    assert item.label == place and not excluded
    items, excluded = parse_bbq([row(*groups, context_condition="disambig", label="D")])
    assert not items and "0, 1 or 2 is expected, A, B or C" in excluded[0].reason


@pytest.mark.parametrize(("declines", "told"), [("Niet te bepalen", True), ("Can't be determined", False)])
def test_a_set_that_declines_in_words_of_its_own_is_not_called_english(declines: str, told: bool) -> None:
    given = row(["Muslim"], ("the Sikh", "Sikh"), ("the Muslim", "Muslim"), ans2=declines)
    items, _ = parse_bbq([given])
    evidence = bbq_evidence(items, [[0]])
    assert any("the prompts around them are in English" in note for note in evidence.notes) is told
    assert any("(English)" in str(finding) for finding in evidence.findings) is not told


def test_the_rows_that_were_dropped_are_used() -> None:
    items, excluded = parse_bbq(load_rows(shared("cases/data/bbq_groups.jsonl"), "bbq"))
    assert len(items) == 16 and not excluded
    # Every stereotyped answer is the first one there.
    assert all(item.target == (0 if item.polarity == "neg" else 1) for item in items)


def test_the_authors_targets_settle_what_groups_cannot(tmp_path: Path) -> None:
    same = row(["Black"], ("The Black man", "M-Black"), ("The Black woman", "F-Black"), category="Race_x_gender")
    lines = [same, {**same, "example_id": 1, "question_polarity": "nonneg"}, {**same, "example_id": 2}]
    (tmp_path / "data").mkdir()
    data = tmp_path / "data" / "Race_x_gender.jsonl"
    import json

    data.write_text("\n".join(map(json.dumps, lines)))
    assert len(parse_bbq(load_rows(data, "bbq"))[0]) == 0
    (tmp_path / "supplemental").mkdir()
    (tmp_path / "supplemental" / "additional_metadata.csv").write_text(
        '"category","question_index","example_id","target_loc"\n'
        '"Race_x_gender","1",0,1\n"Race_x_gender","1",1,0\n"Race_x_gender","1",2,NA\n'
    )
    items, excluded = parse_bbq(load_rows(data, "bbq"))
    # target_loc is the biased answer, with polarity in it already; NA leaves the row out, as its authors do.
    assert [item.target for item in items] == [1, 0]
    assert len(excluded) == 1 and "additional_metadata.csv" in excluded[0].reason


def test_targets_of_the_first_metadata_get_their_polarity() -> None:
    """The first edition of the authors' file gave the group's answer whatever the question was."""
    known = row(["Black"], ("The Black man", "M-Black"), ("The White man", "M-White"), question_polarity="nonneg")
    unknown = row(["Black"], ("The Black man", "M-Black"), ("The Black woman", "F-Black"), question_polarity="nonneg")
    first = [{**known, "target_loc": 0}, {**unknown, "target_loc": 1}]
    assert [item.target for item in parse_bbq(first)[0]] == [1, 0]
    final = [{**known, "target_loc": 1}, {**unknown, "target_loc": 1}]
    assert [item.target for item in parse_bbq(final)[0]] == [1, 1]


@pytest.mark.parametrize(
    ("targets", "answers", "target"),
    [
        ("女性", ("男生", "女生", "没有足够信息"), 1),
        ("女性", ("女性硕士毕业生", "男性硕士毕业生", "不知道"), 0),
        ("老年人", ("年轻人", "老年人", "无法确定"), 1),
        ("农村户口", ("城镇户口的人", "农村户口的人", "不知道"), 1),
        ("新冠患者", ("非传染病患者", "传染病患者", "不知道。"), 1),
        ("河南人、东北人", ("上海人", "东北人", "不知道"), 1),
    ],
)
def test_chinese_answers_are_matched_by_their_words(targets: str, answers: tuple[str, str, str], target: int) -> None:
    fields = dict(zip(("ans0", "ans1", "ans2"), answers, strict=True))
    made = {
        "question_polarity": "neg",
        "context_condition": "ambiguous",
        "category": "any",
        "bias_targeted_groups": targets,
        "context": "两个人在等车。",
        "question": "谁迟到了？",
        "label": "2",
        **fields,
    }
    (item,), excluded = parse_bbq([made])
    assert not excluded and (item.target, item.unknown) == (target, 2)


def test_chinese_answers_that_tell_nothing_are_excluded_by_name() -> None:
    made = {
        "question_polarity": "neg",
        "context_condition": "ambiguous",
        "category": "any",
        "bias_targeted_groups": "女性",
        "context": "小刘和小王在等车。",
        "question": "谁迟到了？",
        "ans0": "小刘",
        "ans1": "小王",
        "ans2": "不知道",
        "label": "2",
    }
    items, excluded = parse_bbq([made])
    assert not items and "no target of bias" in excluded[0].reason


@pytest.mark.parametrize("field", ["context", "question", "ans0"])
@pytest.mark.parametrize("value", [None, "", " ", 7])
def test_what_is_no_text_is_not_scored_as_one(field: str, value: object) -> None:
    items, excluded = parse_bbq([row(["old"], ("Ann", "old"), ("Bob", "nonOld")) | {field: value}])
    assert not items and excluded[0].reason.startswith(f"{field}: is {value!r}")


def test_two_answers_of_one_text_are_no_choice() -> None:
    items, excluded = parse_bbq([row(["old"], ("Ann", "old"), ("Ann", "nonOld"))])
    assert not items and "are the same" in excluded[0].reason


@pytest.mark.parametrize(
    "tag", ["F-Middle Eastern", "F-Middle_Eastern", "M-Middle-Eastern", "F\u2011Middle\u2011Eastern"]
)
def test_words_of_a_group_are_joined_in_any_way(tag: str) -> None:
    (item,), excluded = parse_bbq([row(["Middle Eastern"], ("Ann", tag), ("Bob", "F-White"))])
    assert not excluded and item.target == 0
