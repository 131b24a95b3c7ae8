"""What a failing case says may hold any character: no worker, no Allure and no terminal breaks on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.toy_audit import audit_project, last_run, outcomes, run_pytest

AUDIT = r"""
import warnings

import pytest
from lm_audit.plugin import Case, cases

TEXT = "\x1b[31m\u202e\ufffe\ud800"


class Untold:
    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.bias
@cases([Case(kind) for kind in ("fail", "error", "chained", "assert", "untold", "skip", "xfail")])
def test_gap(case, evidence):
    warnings.warn(TEXT + "warned")
    warnings.warn(BytesWarning(TEXT + "bytes"))
    if case.id == "fail":
        pytest.fail(TEXT)
    if case.id == "error":
        raise ValueError(TEXT, [TEXT])
    if case.id == "chained":
        try:
            raise KeyError(TEXT)
        except KeyError as error:
            raise RuntimeError("x") from error
    if case.id == "untold":
        raise ValueError(Untold())
    if case.id == "skip":
        pytest.skip(TEXT)
    if case.id == "xfail":
        pytest.xfail(TEXT)
    assert TEXT == "x"
"""
OUTCOMES = dict.fromkeys(("fail", "error", "chained", "assert", "untold"), "failed") | {
    "skip": "skipped",
    "xfail": "passed",
}


@pytest.mark.parametrize(
    "words", [("-n", "1"), ("-p", "allure_pytest", "--alluredir", "allure")], ids=["worker", "allure"]
)
def test_hidden_characters_in_what_failed(tmp_path: Path, words: tuple[str, ...]) -> None:
    if "allure_pytest" in words:
        pytest.importorskip("allure_pytest")
    project = audit_project(tmp_path, AUDIT)
    done = run_pytest(project, *words)
    assert done.code == pytest.ExitCode.TESTS_FAILED and "INTERNALERROR" not in done.output, done.output
    assert not set(done.output) & {"\x1b", "\u202e", "\ufffe", "\ud800"} and r"\ud800" in done.output
    assert r"\ud800warned" in done.output and r"\ud800bytes" in done.output
    assert outcomes(last_run(project)) == OUTCOMES


PANIC = r"""
import pytest
from lm_audit.plugin import Case, cases
from tokenizers import Regex, normalizers


@pytest.mark.bias
@cases([Case(kind) for kind in ("first", "second")])
def test_gap(case, evidence):
    normalizers.Replace(Regex(r"(x+x+)+y"), "").normalize_str("x" * 99)
"""


def test_rules_of_a_tokenizer_that_never_end_are_told_in_a_line(tmp_path: Path) -> None:
    project = audit_project(tmp_path, PANIC)
    done = run_pytest(project)
    assert done.code == pytest.ExitCode.TESTS_FAILED and done.counts == {"failed": 2}
    assert "PanicException of a library in Rust (tokenizers, safetensors): Onig: Regex search error" in done.output
    assert 'normalize_str("x" * 99)' not in done.output


def test_a_name_that_workers_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    project = audit_project(tmp_path, AUDIT)
    done = run_pytest(project, "-n", "1", "--data", "bbq=\udcff.jsonl")
    assert done.code == pytest.ExitCode.USAGE_ERROR and "INTERNALERROR" not in done.output, done.output
    assert r"bbq=\udcff.jsonl is no UTF-8" in done.output
