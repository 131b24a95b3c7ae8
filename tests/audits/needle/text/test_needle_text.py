"""Sentences, units and draws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lm_audit.audits.needle import Haystack, split_sentences
from lm_audit.audits.needle.haystack.sources import distractors, from_path
from lm_audit.audits.needle.haystack.text import normalise
from lm_audit.audits.needle.samples.drawing import derived_rng, draw_distinct, draw_item, words
from lm_audit.errors import DataError, UsageError
from tests.audits.needle.text.needle_tokenizers import small_tokenizer
from tests.present import present
from tests.shared_data import shared


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two? Three!", ["One.", "Two?", "Three!"]),
        (
            "Mr. Knightley met Mrs. Elton at St. James. They bowed.",
            ["Mr. Knightley met Mrs. Elton at St. James.", "They bowed."],
        ),
        ('"Go!" she said. "Now?"', ['"Go!" she said.', '"Now?"']),
        ("It cost 3.50 in all. Version 2.0 is out.", ["It cost 3.50 in all.", "Version 2.0 is out."]),
        ("J. Austen wrote it. E. B. White did not.", ["J. Austen wrote it.", "E. B. White did not."]),
        ("Use e.g. this one. Or that, etc. and so on.", ["Use e.g. this one.", "Or that, etc. and so on."]),
        ("So it was I. Nobody else.", ["So it was I.", "Nobody else."]),
        ("He waited ... and left. (She stayed.) Why?", ["He waited ... and left.", "(She stayed.)", "Why?"]),
        (
            "子曰：“学而时习之，不亦说乎？有朋自远方来，不亦乐乎？”孔子笑。",
            ["子曰：“学而时习之，不亦说乎？", "有朋自远方来，不亦乐乎？”", "孔子笑。"],
        ),
        ("真的！！他说。Then English. 再说。", ["真的！！", "他说。", "Then English.", "再说。"]),
        ("a line\nanother line", ["a line", "another line"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


def test_real_texts_split_into_sentences_of_sensible_length() -> None:
    english = normalise(shared("data/haystack/en_austen_emma.txt").read_text(encoding="utf-8"))
    sentences = split_sentences(english)
    assert 14 < len(english.split()) / len(sentences) < 30
    assert not [s for s in sentences if re.search(r"\b(Mr|Mrs|Dr)\.$", s)]
    chinese = normalise(shared("data/haystack/zh_guwen_lunyu_mengzi.txt").read_text(encoding="utf-8"))
    assert 10 < len(chinese) / len(split_sentences(chinese)) < 40


def test_units_are_words_and_chinese_characters_with_their_marks() -> None:
    haystack = Haystack("Hello “dear” world 子曰：“学而时习之。” end.", small_tokenizer("byte-level"))
    units = [haystack.slice(i, i + 1) for i in range(len(haystack))]
    assert units == ["Hello", "“dear”", "world", "子", "曰：", "“学", "而", "时", "习", "之。”", "end."]


def test_slices_join_copies_as_sentences_are_joined() -> None:
    haystack = Haystack("One two. Three.", small_tokenizer("byte-level"))
    assert haystack.slice(1, 7) == "two. Three. One two. Three. One"
    assert Haystack("子曰。", small_tokenizer("byte-level")).slice(0, 4) == "子曰。子曰。"


# A prompt that fills its length (test_needle_lengths.py) needs this of every kind.
@pytest.mark.parametrize(
    "kind", ["byte-level", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("sentencepiece", "tiktoken"))]
)
def test_counts_of_units_add_up_to_the_tokens_of_the_text(kind: str) -> None:
    haystack = Haystack("essay", small_tokenizer(kind))
    text = haystack.slice(1000, 3000)
    counted = haystack.tokens_before(3000) - haystack.tokens_before(1000)
    assert abs(haystack.encoder.count(text) - counted) <= 1
    assert haystack.n_tokens == haystack.encoder.count(haystack.text)


def test_no_window_needs_repetition_where_the_text_is_long_enough() -> None:
    from lm_audit.audits.needle import NeedleTask, build_sample

    haystack = Haystack("essay", small_tokenizer("byte-level"))
    starts = set()
    for index in range(20):
        sample = build_sample(haystack, length=8000, depth=50, needle=NeedleTask(), seed=1, index=index)
        starts.add(sample.metadata["window_start"])
        assert sample.metadata["window_start"] + sample.metadata["window_units"] <= len(haystack)
    assert len(starts) > 15


def test_empty_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    path.write_text(" \n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"empty\.txt.*holds no text"):
        Haystack(path, small_tokenizer("byte-level"))


def test_file_in_another_encoding_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("café".encode("latin-1"))
    with pytest.raises(DataError, match="neither UTF-8 nor GB18030"):
        Haystack(path, small_tokenizer("byte-level"))


def test_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.txt").write_text(f"Text {name}.", encoding="utf-8")
    assert Haystack(tmp_path, small_tokenizer("byte-level")).text == "Text a. Text b. Text c."


def test_word_lists_are_large_and_without_repetition() -> None:
    for kind in ("adjectives", "nouns"):
        found = words(kind)
        assert len(found) == len(set(found)) >= 300
        assert all(word.isalpha() and word.islower() for word in found)


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("numbers", r"[1-9]\d{6}"),
        ("words", r"[a-z]+-[a-z]+"),
        ("uuids", r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    ],
)
def test_items_have_their_form(kind: str, pattern: str) -> None:
    rng = derived_rng(1, kind)
    assert all(re.fullmatch(pattern, draw_item(rng, kind)) for _ in range(200))


def test_items_contain_neither_each_other_nor_stand_in_the_text() -> None:
    found = draw_distinct(
        derived_rng(1, "x"), "words", 200, taken=["bold-cat"], absent_from=lambda item: not item.startswith("b")
    )
    assert len(set(found)) == 200
    assert not any(one in other for one in found for other in [*found, "bold-cat"] if one is not other)
    assert not any(one.startswith("b") for one in found)


def test_distractors_repeat_no_key_and_no_value() -> None:
    lines = distractors(3000, "words", "numbers", 1).text.splitlines()
    found = [re.fullmatch(r"One of the special magic numbers for (\S+) is: (\d+)\.", line) for line in lines]
    pairs = [present(one).groups() for one in found]
    assert len({key for key, _ in pairs}) == len({value for _, value in pairs}) == 3000


def test_more_items_than_there_are_is_an_error() -> None:
    with pytest.raises(UsageError, match="no further item"):
        draw_distinct(derived_rng(1, "x"), "words", 1, absent_from=lambda item: False)


def test_paragraphs_end_sentences() -> None:
    haystack = Haystack("CHAPTER 1\n\n\nNo one knew.\nSo be it\n\n  - listed", small_tokenizer("byte-level"))
    assert haystack.text == "CHAPTER 1 No one knew. So be it - listed"
    starts = [haystack.slice(unit, unit + 1) for unit in haystack.sentence_starts[:-1]]
    assert starts == ["CHAPTER", "No", "So", "-"]
    assert Haystack("子曰\n\n学而", small_tokenizer("byte-level")).text == "子曰学而"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("essays.json", '{"text": "one\\n\\ntwo"}'),
        ("rows.json", '[{"text": "one"}, {"text": "two"}]'),
        ("rows.jsonl", '{"text": "one"}\n{"text": "two"}\n'),
        ("rows.csv", "id,text\n1,one\n2,two\n"),
    ],
)
def test_a_file_of_rows_is_read_as_rows(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert from_path(tmp_path / name).text == "one\n\ntwo"


def test_a_broken_file_of_rows_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"text": "one"')
    with pytest.raises(DataError, match=r"rows\.json: is not JSON"):
        from_path(tmp_path / "rows.json")
