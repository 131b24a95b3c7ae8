"""What the terminal tells while cases run and after: findings under -v, percentages up to 100, errors as errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lm_audit.runstore import read_run
from tests.plugin.toy_run import run_pytest, write_project

AUDIT = """
import pytest
from lm_audit import Control, Estimate, Evidence
from lm_audit.findings import claim
from lm_audit.plugin import Case, cases

@pytest.mark.bias
@cases([Case("one", {"value": 0.8}), Case("two", {"value": 0.5})])
def test_share(case, evidence):
    told = Evidence("bias")
    value = case.params["value"]
    told.metric("bias.share", Estimate(value, value - 0.1, value + 0.1, 90, unit="share", chance=0.5))
    told.finding(claim("bias.prefers", told.metrics["bias.share"], found="It prefers one group", absent="No group",
                       unknown="Whether it prefers a group", metric="bias.share"))
    evidence.record(told)

@pytest.mark.leakage
@cases([Case("one"), Case("two")])
def test_broken(case, evidence):
    from json import no_such_name

@pytest.mark.leakage
@cases([Case("planted", control="positive")])
def test_control(case, evidence):
    from json import no_such_name
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_findings_are_told_as_they_come_and_errors_are_errors(tmp_path: Path, workers: tuple[str, ...]) -> None:
    done = run_pytest(write_project(tmp_path, test_a=AUDIT), "-v", *workers, COLUMNS="120")
    text = done.output
    assert "    ! found: It prefers one group" in text and "    ? cannot tell: Whether it prefers a group" in text
    shares = [int(share) for share in re.findall(r"\[ *(\d+)%\]", text)]
    assert shares and max(shares) == 100 and shares == sorted(shares)
    below = text[text.rindex("[100%]") :]
    assert "! error     leakage, 3 cases: ImportError: cannot import name 'no_such_name'" in below
    assert "void" not in below and "! found     It prefers one group" in below
    assert "1 effect found" in below


def test_without_a_terminal_nothing_is_told_and_all_is_recorded(tmp_path: Path) -> None:
    """``-p no:terminal`` takes ``-v`` and ``-q`` away too."""
    write_project(tmp_path, test_toy=AUDIT)
    done = run_pytest(tmp_path, "-p", "no:terminal")
    assert done.code == 1 and not done.output.strip(), done.output
    (page,) = tmp_path.glob("reports/*/index.html")
    assert len(read_run(page.parent).cases) == 5


ASKS = """
import pytest
from lm_audit.plugin import Case, cases

@pytest.mark.bias
@cases([Case("one")])
def test_asks(case, language_model, evidence):
    language_model.told += ("its tokenizer does not know some letters",)
"""


@pytest.mark.slow
def test_what_is_told_of_a_model_while_a_case_asks_it_is_on_the_page(tmp_path: Path) -> None:
    """Letters that a tokenizer does not know are found where a text is read, long after the model was recorded."""
    run_pytest(write_project(tmp_path, test_a=ASKS), "--model", "tiny", "--device", "cpu")

    (page,) = tmp_path.glob("reports/*/index.html")
    assert read_run(page.parent).cases[0].model_details["told"] == ["its tokenizer does not know some letters"]
    assert "does not know some letters" in page.read_text(encoding="utf-8")
