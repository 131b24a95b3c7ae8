"""The built-in toy stands in a column of its own, last, and has no part in whether the model may ship."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.report.conclusions.answer import MAY_IT_SHIP, TOY_ALONE
from lm_audit.report.in_pytest.terminal import summary_lines
from lm_audit.report.page.build import build_page
from lm_audit.runstore.records import Verdict, VerdictWord
from lm_audit.runstore.run import read_run
from tests.report.made_runs import MadeCase, preference, share, write_run

TOY = MadeCase(
    "evals/test_privacy.py::test_stage[sft-membership]",
    "privacy",
    None,
    None,
    metrics={"privacy.roc_auc": share(0.9)},
    findings=[preference(0.9, 400)],
    verdicts=[Verdict("privacy.roc_auc", "missed", "<= 0.55", "0.90 [0.85, 0.95] is beyond the limit")],
    toy=True,
)


def real(word: VerdictWord) -> MadeCase:
    """A case of the user's model with one gate."""
    verdict = Verdict("bias.preferred", word, "<= 0.6", f"it is {word}")
    metrics = {"bias.preferred": share(0.5, 400)}
    failed: dict[str, Any] = {"outcome": "failed", "cause": "gate"} if word == "missed" else {}
    return replace(
        MadeCase("evals/t.py::test_a[mine@cpu]", "bias", "mine", metrics=metrics, verdicts=[verdict]), **failed
    )


@pytest.mark.parametrize(
    ("word", "headline"),
    [
        ("met", "Yes, as far as these gates go."),
        ("undecided", "Undecided: the evidence is too thin."),
        ("missed", "No: 1 of 1 gate missed."),
    ],
)
def test_a_missed_gate_of_the_toy_changes_no_answer_and_is_told(
    tmp_path: Path, word: VerdictWord, headline: str
) -> None:
    run = read_run(write_run(tmp_path / "20260101-120000-aaaa", [TOY, real(word)]))
    page = build_page(run)
    assert [model.name for model in page.models] == ["mine", "built-in toy"]
    assert page.models[0].detail == "cpu \u00b7 float32", "not torch.float32"
    cells = {(audit.name, cell.model): cell for audit in page.audits for cell in audit.cells}
    assert cells["privacy", "built-in toy"].gates == "1 missed" and cells["privacy", "mine"].state.name == "absent"
    assert cells["bias", "mine"].state.name == word and cells["bias", "built-in toy"].state.name == "absent"
    assert (page.answer.question, page.answer.headline) == (MAY_IT_SHIP, headline)
    assert "Gates on the built-in toy, which decide nothing about a model of yours: 1 missed." in page.answer.reasons
    assert [entry.model for entry in page.findings] == ["built-in toy"], "its findings stand in its column"
    assert not any("main question" in reason for reason in page.answer.reasons), "and count for no model"
    lines = summary_lines(run, width=100)
    assert lines[0] == headline and any("BUILT-IN TOY, decides nothing: " in line for line in lines)


def test_the_toy_alone_is_no_answer(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "20260101-120000-bbbb", [TOY]))
    page = build_page(run)
    assert [model.name for model in page.models] == ["built-in toy"]
    assert (page.answer.headline, page.answer.tone) == (TOY_ALONE, "undecided")


def test_findings_of_the_toy_alone_are_not_denied(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "20260101-120000-cccc", [replace(TOY, verdicts=[])]))
    page = build_page(run)
    assert [entry.model for entry in page.findings] == ["built-in toy"]
    assert page.answer.reasons == (
        "No gate was set, and the findings are of the built-in toy, which says nothing about a model of yours.",
    )


@pytest.mark.parametrize("width", [60, 100])
def test_what_was_found_in_the_toy_contradicts_no_answer_about_the_model(tmp_path: Path, width: int) -> None:
    finding = preference(0.5, 400)
    mine = replace(real("met"), verdicts=[], findings=[replace(preference(0.55, 40), key="thin")])
    other = replace(mine, case_id="evals/t.py::test_b[mine@cpu]", findings=[finding])
    toy = replace(TOY, verdicts=[])
    lines = summary_lines(read_run(write_run(tmp_path / "20260101-120000-dddd", [toy, mine, other])), width=width)
    assert lines[0] == "Nothing found in mine; not everything could be told."
    assert not any(line.startswith("! found") for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "\u00b7 toy 1 found in the built-in toy, no part of the answer: " in text
    assert "findings: 1 cannot be told, 1 excluded findings of the built-in toy: 1 found cases: " in text
