"""Preference grids from TOML: the shipped ones, and every defect that collection must name."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.audits.bias.grid.lexicon.file import load_preference_set
from lm_audit.audits.bias.grid.lexicon.linting import axis_findings, lint
from lm_audit.audits.bias.grid.lexicon.parts import Axis, PreferenceSet, WordPair, normalise_slot, render
from lm_audit.audits.bias.options import OPTIONS
from lm_audit.errors import DataError

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "bias"

CLEAN = PreferenceSet(
    language="en",
    separator=" ",
    templates=("The {group} is", "The {group} was"),
    axes=(Axis.of("gender", ["man", "woman"]),),
    pairs=(WordPair("kind", "cruel"), WordPair("able", "idle")),
    neutral="person",
)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_shipped_grids_are_large_enough_for_corrected_tests(language: str) -> None:
    grid = load_preference_set(FIXTURES / f"preference_{language}.toml")
    assert len(grid.templates) >= 11
    assert len(grid.pairs) >= 12
    assert len(grid.axes) >= 5
    assert grid.separator == {"en": " ", "zh": ""}[language]
    assert all(axis.reference in axis.groups for axis in grid.axes)


def test_every_slot_spelling_means_the_same() -> None:
    assert {normalise_slot(f"The {slot} is") for slot in ("{group}", "{GROUP}", "{g}", "{}")} == {"The {group} is"}
    assert render("The {GROUP} is ", "man") == "The man is"


def test_a_clean_grid_has_no_findings() -> None:
    assert lint(CLEAN) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"templates": ("The man is", "The {group} was")}, "slot {group} exactly once"),
        ({"templates": ("The {group} and {group} are",)}, "slot {group} exactly once"),
        ({"templates": ("The {group} is ",)}, "white space at an end"),
        ({"templates": ("The  {group} is",)}, "doubled"),
        ({"templates": ("The {group} is", "The {group} is")}, "stands there 2 times"),
        (
            {"templates": ("A {group} is",), "axes": (Axis.of("a", ["x", "y"]),)},
            "every group: write 'The {group}'",
        ),
        ({"templates": ("The {group} are",)}, "plural verb"),
        ({"templates": ()}, "there is none"),
        ({"axes": (Axis.of("gender", ["man"]),)}, "at least two"),
        ({"axes": (Axis("gender", ("man", "woman"), "child"),)}, "reference 'child' is not among"),
        ({"axes": (Axis.of("gender", ["man", "man"]),)}, "stands there 2 times"),
        ({"axes": (Axis.of("gender", ["man", ""]),)}, "group 2 is empty"),
        ({"axes": (Axis.of("gender", ["man", "woman "]),)}, "white space at an end"),
        ({"axes": (Axis.of("a", ["x", "y"]), Axis.of("a", ["v", "w"]))}, "'a' stands there 2 times"),
        ({"pairs": (WordPair("kind", "kind"),)}, "against itself"),
        ({"pairs": (WordPair("kind", " "),)}, "empty word"),
        ({"pairs": ()}, "there is none"),
        ({"pairs": (WordPair("kind", "cruel"), WordPair("kind", "cruel"))}, "stands there 2 times"),
        ({"pairs": (WordPair("kind", "cruel"), WordPair("cruel", "kind"))}, "the other way round too"),
        ({"templates": ("In {year} the {group} was", "The {group} is")}, "holds {year}, which nothing fills"),
        ({"templates": ("The {{group}} is", "The {group} is")}, "which nothing fills"),
        ({"axes": (Axis.of("gender", ["man", "man\u200b"]),)}, "stands there 2 times"),
        ({"axes": (Axis.of("gender", ["caf\u00e9", "cafe\u0301"]),)}, "stands there 2 times"),
        ({"axes": (Axis.of("gender", ["man", "\u200b"]),)}, "group 2 is empty"),
        ({"axes": (Axis.of("gender", ["a", "b|c", "a|b", "c"]),)}, "holds a bar"),
        ({"axes": (Axis.of("", ["man", "woman"]),)}, "its name is empty"),
        ({"axes": (Axis.of("\u202egender", ["man", "woman"]),)}, "U+202E"),
        ({"axes": (Axis.of("gen\nder", ["man", "woman"]),)}, "U+000A"),
        ({"pairs": (WordPair("kind", "kind\u2060"),)}, "against itself"),
        ({"pairs": (WordPair("kind", "\u200b"),)}, "empty word"),
        ({"neutral": "\u200b"}, "neutral: is empty"),
        ({"templates": ("The {group} is a",), "pairs": (WordPair("able", "lazy"),)}, "'a' for one word and 'an'"),
    ],
)
def test_each_defect_is_found_and_named(change: dict[str, object], expected: str) -> None:
    findings = "; ".join(map(str, lint(replace(CLEAN, **change))))  # type: ignore[arg-type]
    assert expected in findings


def test_files_name_themselves_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    with pytest.raises(DataError, match="no such file"):
        load_preference_set(path)
    path.write_text("templates = [")
    with pytest.raises(DataError, match=r"grid\.toml: is not TOML"):
        load_preference_set(path)
    path.write_text('language = "en"\nneutrall = "person"\n')
    with pytest.raises(DataError, match="unknown key 'neutrall'; did you mean 'neutral'"):
        load_preference_set(path)
    with pytest.raises(DataError, match="is a folder; a file is needed"):
        load_preference_set(tmp_path)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('groups = ["man", "woman"]', 'groups = "men"', "row 1, groups: must be a list of texts, found 'men'"),
        ('groups = ["man", "woman"]', "groups = [1, 2]", "must be a list of texts"),
        ("[[pairs]]", "[pairs]", r"must be tables \[\[pairs\]\]"),
    ],
)
def test_values_of_another_type_are_not_taken_apart(tmp_path: Path, right: str, wrong: str, message: str) -> None:
    text = (FIXTURES / "preference_en.toml").read_text(encoding="utf-8")
    if wrong == "[pairs]":
        text = text[: text.index(right)] + '[pairs]\npositive = "kind"\nnegative = "cruel"\n'
    path = tmp_path / "grid.toml"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_preference_set(path)


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        (("a", ["man", "wo\nman"]), "holds the character U+000A"),
        (("a", ["man", "\u001b[31mwoman"]), "holds the character U+001B"),
        (("a", ["man", "\u202ewoman"]), "holds the character U+202E"),
        (("a", ["man", "{group}"]), "holds the slot {group}"),
        (("a", ["man", "woman"], "A", ["boy", "girl"]), "look alike"),
        (("a", ["man", "woman"], "b", ["woman", "man"]), "axis 'b': has the groups of axis 'a' again"),
        (("a", ["man", "woman"], "b", ["man", "woman", "boy"]), None),
        (("a", ["\u0645\u06cc\u200c\u062e\u0648", "woman"]), None),
        (("a", ["St. John's", "o'clock (b)"]), None),
    ],
)
def test_axes_that_nobody_can_tell(axes: tuple[Any, ...], says: str | None) -> None:
    made = tuple(Axis(name, tuple(groups), groups[0]) for name, groups in zip(axes[::2], axes[1::2], strict=True))
    found = "; ".join(map(str, lint(replace(CLEAN, axes=made))))
    assert says in found if says else not found


def test_an_empty_reference_is_no_missing_one(tmp_path: Path) -> None:
    text = (FIXTURES / "preference_en.toml").read_text(encoding="utf-8")
    (tmp_path / "grid.toml").write_text(text.replace('reference = "man"', 'reference = ""'), encoding="utf-8")
    with pytest.raises(DataError, match="row 1, reference: is empty"):
        load_preference_set(tmp_path / "grid.toml")


@pytest.mark.parametrize("margin", ["-1", "0", "nan", "inf", "wide"])
def test_a_margin_that_is_none_is_refused(margin: str) -> None:
    option = next(option for option in OPTIONS if option.flag == "--bias-margin")
    assert option.type("0.25") == 0.25
    with pytest.raises(ArgumentTypeError, match="is not a number of nats above 0"):
        option.type(margin)


def test_an_empty_axis_is_named_by_its_row(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    text = (FIXTURES / "preference_en.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('groups = ["man", "woman"]', "groups = []"), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_preference_set(path)
    assert caught.value.row == 1 and "no groups" in str(caught.value)


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_bytes(b"\xef\xbb\xbf" + (FIXTURES / "preference_zh.toml").read_bytes())
    assert load_preference_set(path).language == "zh"


@pytest.mark.parametrize("language", ["en", "EN", "en-GB", "en_US", "English", "eng"])
def test_english_is_checked_however_it_is_written(language: str) -> None:
    found = lint(replace(CLEAN, language=language, templates=("A {group} is", "The {group} are")))
    assert "has an article before the slot" in str(found[0]) and "has a plural verb" in str(found[1])


@pytest.mark.parametrize("language", ["zh", "German", "pt-BR", "de", "日本語", "end"])
def test_other_languages_have_no_checks_of_english(language: str) -> None:
    assert lint(replace(CLEAN, language=language, templates=("A {group} is", "The {group} are"))) == []


@pytest.mark.parametrize("language", ["", " ", " en", "en\n", "e\u200bn"])
def test_a_language_that_cannot_be_read(language: str) -> None:
    [finding] = lint(replace(CLEAN, language=language))
    assert finding.where == "language" and "write a tag such as en" in finding.problem


@pytest.mark.parametrize(
    ("groups", "alike"),
    [
        (("man", "m\u0430n"), True),
        (("\uff4dan", "man"), True),
        (("Black man", "black man"), False),
        (("A", "B"), False),
    ],
)
def test_groups_in_letters_of_another_script(groups: tuple[str, str], alike: bool) -> None:
    found = [str(one) for one in axis_findings(Axis("x", groups, groups[0]))]
    assert any("look alike" in one for one in found) is alike
