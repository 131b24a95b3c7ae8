"""Names of models, sets and tags are read as they are written, and no two of a run look alike."""

from __future__ import annotations

import unicodedata
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from lm_audit.errors import UsageError
from lm_audit.evidence import Evidence
from lm_audit.plugin.options.model_choice import parse_choice, parse_choices
from lm_audit.plugin.options.run_options import parse_data
from lm_audit.plugin.options.without_effect import refuse_misspelt_data
from lm_audit.report.writing.of_evidence import report
from lm_audit.shared.names import alike, look, readable, twin, unreadable

NFD = unicodedata.normalize("NFD", "modèle")

PAIRS = [
    ("A", "a"),
    ("Llama-3", "llama-3"),
    ("model", "mod\u0435l"),  # Cyrillic e
    ("MODEL", "\u039cODEL"),  # Greek capital mu
    ("HBT", "\u041d\u0412\u0422"),  # Cyrillic capitals
    ("gpt-2", "\uff47\uff50\uff54-2"),  # full width
    ("a\u0301b", "\u00e1b"),  # an accent of its own, as one letter
    ("kalt", "\U0001d424alt"),  # a mathematical letter
    ("ab", "a\ufe00b"),  # a variation selector
    ("straße", "STRASSE"),
    ("file", "ﬁle"),  # a ligature
]
APART = [("a", "b"), ("m1", "ml"), ("o1", "01"), ("é", "e"), ("型甲", "型乙"), ("модель", "model"), ("a-b", "a_b")]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_names_that_look_alike(first: str, second: str) -> None:
    assert look(first) == look(second) and alike(["x", first, "y", second]) == (first, second)
    assert "looks like" in twin(first, ["x", second])
    models = [f"{name}=tiny" for name in (first, second)]
    with pytest.raises(UsageError, match=r"look alike|as two characters|cannot be seen"):
        parse_choices(models)
    with pytest.raises(UsageError, match=r"look alike|as two characters|cannot be seen"):
        parse_data([f"{name}=/data.csv" for name in (first, second)])


@pytest.mark.parametrize(("first", "second"), APART)
def test_names_that_are_told_apart(first: str, second: str) -> None:
    assert look(first) != look(second)
    assert [choice.name for choice in parse_choices([f"{first}=tiny", f"{second}=tiny"])] == [first, second]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("a\x1b[31m", r"U\+001B"),
        ("a\nb", r"U\+000A"),
        ("a\x00", r"U\+0000"),
        ("a\u202eb", r"U\+202E"),
        ("a\u200bb", r"U\+200B"),
        ("\ud800", r"U\+D800"),
        (NFD, "as two characters"),
        (" a", "white space"),
    ],
)
def test_text_that_cannot_be_read_back_is_no_tag(text: str, message: str) -> None:
    with pytest.raises(ArgumentTypeError, match=message):
        readable(text)


@pytest.mark.parametrize("text", ["nightly", "release 1.2", "型甲", "modèle", "ß", "ночь"])
def test_readable_text_is_taken_as_it_is(text: str) -> None:
    assert readable(text) == text and unreadable(text) is None


@pytest.mark.parametrize("name", [NFD, "a\u200bb", "a\u202e", "\ufeffa"])
def test_names_of_models_that_cannot_be_read_back_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--model"):
        parse_choice(f"{name}=tiny")
    with pytest.raises(UsageError, match="--data"):
        parse_data([f"{name}=/x"])
    with pytest.raises(UsageError, match="model="):
        report(Evidence("bias"), tmp_path / "run", model=name)


@pytest.mark.parametrize("name", ["bbq\u200b", "сrows_pairs", "ｂｂｑ"])
def test_a_set_that_looks_like_a_public_one_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"no public set is called|cannot be seen"):
        refuse_misspelt_data(parse_data([f"{name}=/x"]))
