"""Case ids are a public contract: their grammar, their stability, and the errors for what would break them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.case import Case, CaseSource
from lm_audit.plugin.options.model_choice import parse_choice, parse_choices
from lm_audit.plugin.options.run_options import RunOptions
from tests.plugin.toy_audit import audit_project, run_pytest

IDS = """
import pytest
from lm_audit.plugin import Case, cases

@cases(lambda options: [Case("a"), Case("b", model="tiny"), Case("c", model="sft=tiny:3")])
def test_model(language_model): pass

@cases([Case("a")])
def test_text(case): pass

def test_bare(language_model): pass

def test_evidence(evidence): pass
"""


def collected(folder: Path, *arguments: str) -> list[str]:
    done = run_pytest(folder, "--collect-only", "-q", *arguments)
    return [line for line in done.output.splitlines() if "::" in line]


def test_ids_hold_model_device_and_case(tmp_path: Path) -> None:
    audit_project(tmp_path, IDS)
    found = collected(tmp_path, "--model", "tiny", "--model", "big=tiny:7", "--device", "cpu", "--device", "cuda")
    assert sorted(found) == sorted(
        f"test_toy.py::{name}"
        for name in (
            "test_model[tiny@cpu-a]", "test_model[tiny@cuda-a]", "test_model[tiny@cpu-b]", "test_model[tiny@cuda-b]",
            "test_bare[tiny@cpu]", "test_bare[tiny@cuda]",
            "test_model[big@cpu-a]", "test_model[big@cuda-a]", "test_bare[big@cpu]", "test_bare[big@cuda]",
            "test_model[sft@cpu-c]", "test_model[sft@cuda-c]",
            "test_text[a]", "test_evidence",
        )
    )  # fmt: skip


def test_the_default_model_is_smollm2(tmp_path: Path) -> None:
    audit_project(tmp_path, IDS)
    assert "test_toy.py::test_model[smollm2@cpu-a]" in collected(tmp_path, "--device", "cpu")


@pytest.mark.parametrize(
    ("text", "name", "spec"),
    [
        ("smollm2", "smollm2", "smollm2"),
        ("org/name", "name", "org/name"),
        ("org/name@v1.0", "name", "org/name@v1.0"),
        ("org/name@refs/pr/3", "name", "org/name@refs/pr/3"),
        ("/models/llama-3.2/", "llama-3.2", "/models/llama-3.2/"),
        ("./m/Q4.gguf", "Q4", "./m/Q4.gguf"),
        ("new=org/name@main", "new", "org/name@main"),
        ("a=/p=q/r", "a", "/p=q/r"),
        ("/p=q/r", "r", "/p=q/r"),
    ],
)
def test_names_of_models(text: str, name: str, spec: str) -> None:
    choice = parse_choice(text)
    assert (choice.name, choice.spec) == (name, spec)


@pytest.mark.parametrize("text", ["", "a[b=tiny", "a@b=tiny", "my model=tiny", "/models/a b", "x="])
def test_names_that_would_break_ids_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--model"):
        parse_choice(text)


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"'tiny' is taken by '/a/tiny'; give each model its own with --model NAME=SPEC"
    ):
        parse_choices(["/a/tiny", "/b/tiny"])


@pytest.mark.parametrize("case_id", ["", "a@b", "a[b", "a]b", "a b", "a\nb"])
def test_case_ids_that_would_break_ids_are_refused(case_id: str) -> None:
    with pytest.raises(UsageError, match="case id"):
        Case(case_id)


def test_a_case_id_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'a' is given twice"):
        CaseSource([Case("a"), Case("a")]).cases(RunOptions())


@pytest.mark.parametrize("other", ["a\u200db", "ab\ufe0f", "a\u034fb", "ab\U000e0100", "ab\u3164"])
def test_case_ids_that_look_the_same_are_refused_by_what_they_hold(other: str) -> None:
    with pytest.raises(UsageError) as error:
        CaseSource([Case("ab"), Case(other)]).cases(RunOptions())
    assert f"'ab' and {other!a} look the same" in str(error.value)


@pytest.mark.parametrize("other", ["a\u200bb", "aB", "\u0430b", "é"])
def test_case_ids_that_are_shown_apart_are_two(other: str) -> None:
    assert len(CaseSource([Case("ab"), Case(other)]).cases(RunOptions())) == 2
    with pytest.raises(UsageError, match="look the same"):
        CaseSource([Case("é"), Case("e\u0301")]).cases(RunOptions())


def test_bad_input_at_collection_is_one_clear_line(tmp_path: Path) -> None:
    source = """
from lm_audit.errors import DataError
from lm_audit.plugin import cases
def bad(options):
    raise DataError("expected 3 columns, found 2", file="pairs.csv", row=7)
@cases(bad)
def test_x(case): pass
"""
    audit_project(tmp_path, source)
    done = run_pytest(tmp_path)
    assert done.code == 2
    assert "pairs.csv, row 7: expected 3 columns, found 2" in done.output
    assert "Traceback" not in done.output
