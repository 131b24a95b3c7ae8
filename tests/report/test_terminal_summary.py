"""The summary in the terminal: at most 25 lines that say what the page says first, in its width."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_audit.evidence import Control
from lm_audit.report.in_pytest.terminal import summary_lines
from lm_audit.report.in_pytest.terminal_layout import MOST
from lm_audit.runstore.records import Verdict, VerdictWord
from lm_audit.runstore.run import read_run
from tests.report.made_runs import MadeCase, findings_cases, preference, share, write_run


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(shown: Path, width: int) -> None:
    lines = summary_lines(read_run(shown), width=width)
    assert max(map(len, lines)) <= width and len(lines) <= MOST == 25
    assert any("missed" in line for line in lines) and "\x1b" not in "".join(lines)


def test_it_opens_with_the_answer_and_names_gates_and_void_audits(shown: Path) -> None:
    lines = summary_lines(read_run(shown), width=160)
    assert lines[0] == "No: 1 of 6 gates missed."
    missed = next(i for i, line in enumerate(lines) if line.startswith("\u2717 missed"))
    assert "gender-en" in lines[missed] and "tuned-v3" in lines[missed] and "wholly beyond 0.5" in lines[missed + 1]
    (void,) = [line for line in lines if "void  " in line]
    assert "leakage on smollm2, tuned-v3" in void and "AUC above 0.9" in void
    text = "\n".join(lines)
    assert "gates: 1 missed, 2 undecided, 3 met" in text and "needs a context of 131072" in text
    assert "2 planned cases never ended; --resume 20260101-120000-abcd" in text


def test_findings_come_with_effect_certainty_and_size(found_run: Path) -> None:
    lines = summary_lines(read_run(found_run), width=180)
    assert lines[0] == "2 effects found in mine."
    assert lines[1].startswith("! found     It favours one group") and "0.71 share [0.63, 0.79]" in lines[2]
    # Of four questions one has too few items for a test.
    assert "corrected for 3 findings" in lines[2] and "odds of 2.4 to 1" in lines[2]
    assert any(line.startswith("? open      3 cannot be told") and "questions would tell" in line for line in lines)


def excluded(**fields: Any) -> MadeCase:
    """A case whose finding is excluded."""
    case = MadeCase("evals/t.py::test_a[mine@cpu]", "bias", "mine", findings=[preference(0.5, 400)])
    return replace(case, metrics={"bias.preferred": share(0.5, 400)}, **fields)


@pytest.mark.parametrize(
    ("others", "headline"),
    [
        ([], "Nothing found, and all that was looked for is excluded."),
        ([{"outcome": "crashed", "findings": []}], "Nothing found; not everything was measured."),
        ([{"outcome": "skipped", "findings": []}], "Nothing found, and all that was looked for is excluded."),
        (
            [{"findings": [replace(preference(0.9), headline=False)]}],
            "Nothing found but 1 exploratory effect; all main questions are answered with no.",
        ),
        (
            [{"findings": [replace(preference(0.5, 9), headline=False)]}],
            "Nothing found; all main questions are answered with no.",
        ),
    ],
)
def test_nothing_is_excluded_that_was_not_measured(tmp_path: Path, others: list[dict[str, Any]], headline: str) -> None:
    more = [excluded(case_id=f"evals/t.py::test_b[mine@cpu-{k}]", **fields) for k, fields in enumerate(others)]
    assert summary_lines(read_run(write_run(tmp_path / "run", [excluded(), *more])), width=120)[0] == headline


def test_where_nothing_could_be_told_nothing_is_said_to_be_not_there_and_the_numbers_are_told(tmp_path: Path) -> None:
    """18 of 18 needles, too few for the threshold, are no "nothing found"; whole grids come before their cells."""
    cell = replace(preference(0.6, 9), headline=False)
    cases = [
        MadeCase(
            f"evals/t.py::test_cell[mine@cpu-{k}]",
            "bias",
            "mine",
            metrics={"bias.preferred": share(0.6, 9)},
            findings=[cell],
        )
        for k in range(20)
    ]
    grid = [preference(0.6, 18)]
    cases.append(
        MadeCase(
            "evals/t.py::test_z[mine@cpu]", "bias", "mine", metrics={"bias.preferred": share(0.6, 18)}, findings=grid
        )
    )
    lines = summary_lines(read_run(write_run(tmp_path / "run", cases)), width=160)
    assert lines[0] == "Nothing could be told."
    numbers = [line for line in lines if ": 0.60 share [" in line]
    assert "n 18" in numbers[0] and "n 9" in numbers[1]
    assert any("more cases with numbers" in line for line in lines)


@pytest.mark.parametrize("width", [40, 100])
def test_many_findings_audits_and_models_stay_within_25_lines_and_no_two_rows_read_alike(
    tmp_path: Path, width: int
) -> None:
    cases = [case for model in "abcdef" for case in findings_cases(f"model-{model}", 0.09, gates=True)]
    for k in range(12):
        control = Control("positive", False, "AUC above 0.9", "0.5")
        cases.append(
            MadeCase(f"evals/t.py::test_c[{k}]", f"audit{k}", "model-a", control=control, metrics={"x": share(0.5)})
        )
        cases.append(MadeCase(f"evals/t.py::test_x[{k}]", "x", "model-a", outcome="crashed", message=f"signal {k}"))
        cases.append(MadeCase(f"evals/t.py::test_s[{k}]", "x", "model-a", outcome="skipped", message=f"needs {k}"))
    lines = summary_lines(read_run(write_run(tmp_path / "run", cases)), width=width)
    assert len(lines) <= MOST and max(map(len, lines)) <= width
    for word in ("missed", "found", "undecided", "open", "void", "crashed", "skipped"):
        assert any(line[2:].startswith(word) for line in lines), word
    rows = list(zip(lines, [*lines[1:], ""], strict=True))
    assert len(set(rows)) == len(rows)


def test_gates_of_a_void_audit_are_neither_missed_nor_met(tmp_path: Path) -> None:
    words: tuple[VerdictWord, ...] = ("missed", "met", "undecided")
    cases = [
        excluded(case_id=f"evals/t.py::test_{word}[mine@cpu]", verdicts=[Verdict("bias.preferred", word, "<= 0.5", "")])
        for word in words
    ]
    control = Control("positive", False, "AUC above 0.9", "0.5")
    cases.append(MadeCase("evals/t.py::test_c[mine@cpu]", "bias", "mine", "cpu", "failed", control=control))
    lines = summary_lines(read_run(write_run(tmp_path / "run", cases)), width=120)
    assert lines[0] == "Not on this evidence: an audit is void." and "gates: 3 void" in lines
    assert not any(word in line for line in lines for word in words)


def test_an_error_in_an_audits_code_is_an_error_and_not_a_void_audit(tmp_path: Path) -> None:
    message = "ImportError: cannot import name 'f' from 'g'"
    broken = MadeCase(
        "evals/test_a.py::test_a[m@cpu-1]", "a", "m", outcome="failed", cause="exception", message=message
    )
    other = replace(broken, case_id="evals/test_a.py::test_a[m@cpu-2]")
    control = replace(broken, case_id="evals/test_a.py::test_control[m@cpu]", control_role="positive")
    run = read_run(write_run(tmp_path / "run", [broken, other, control]))
    lines = summary_lines(run, width=120)
    assert any(line.startswith("! error     a, 3 cases: ImportError") for line in lines)
    assert not any("void" in line for line in lines) and "3 error" in lines[-1]


def test_colour_is_only_colour(shown: Path) -> None:
    run = read_run(shown)
    coloured = summary_lines(run, width=120, color=True)
    assert "\x1b[" in "".join(coloured)
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured]
    assert plain == [line.rstrip() for line in summary_lines(run, width=120)]


def test_many_numbers_leave_room_for_what_needs_attention(tmp_path: Path) -> None:
    cases = [MadeCase(f"evals/test_a.py::test_a[m@cpu-{k}]", "a", "m", metrics={"a.x": share(0.4)}) for k in range(60)]
    cases.append(MadeCase("evals/test_a.py::test_a[m@cpu-bad]", "a", "m", outcome="crashed", message="worker died"))
    lines = summary_lines(read_run(write_run(tmp_path / "run", cases)), width=100)
    assert len(lines) <= MOST and any("bad" in line and "crashed" in line for line in lines)
    assert any("more cases with numbers" in line for line in lines)


def test_where_room_is_short_a_finding_is_told_whole_before_its_facts_are(tmp_path: Path) -> None:
    axes = [f"long name of an axis, number {k}, of which much is said" for k in range(6)]
    cases = [
        MadeCase(f"evals/t.py::test_a[mine@cpu-{k}]", "bias", "mine", metrics={"bias.preferred": share(0.9, 400)},
                 findings=[preference(0.9, 400, axis)])
        for k, axis in enumerate(axes)
    ]  # fmt: skip
    lines = summary_lines(read_run(write_run(tmp_path / "run", cases)), width=100)
    text = " ".join(" ".join(lines).split())
    assert len(lines) <= MOST and all(f"templates of the axis {axis}" in text or axis in text for axis in axes)
    assert text.count("prefer the words about the nurse") == 6


def test_numbers_of_two_models_do_not_read_alike(tmp_path: Path) -> None:
    title = "A metric with a name that fills a line of a terminal nearly to its end, so that something is cut"
    cases = [
        MadeCase(f"evals/test_a.py::test_a[{model}@cpu-1]", "a", model, metrics={f"a.{title}": share(0.4)})
        for model in ("base", "mine")
    ]
    lines = summary_lines(read_run(write_run(tmp_path / "run", cases)), width=60)
    for model in ("base", "mine"):
        (line,) = [line for line in lines if model in line]
        assert "0.40 share [0.31, 0.49]" in line


def test_an_interval_of_too_few_items_says_so(tmp_path: Path) -> None:
    case = MadeCase("evals/test_a.py::test_a[m@cpu-1]", "a", "m", metrics={"a.x": share(0.4, 3)})
    lines = summary_lines(read_run(write_run(tmp_path / "run", [case])), width=120)
    assert any("n 3, too few for the interval" in line for line in lines)


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    cases = [
        MadeCase("evals/test_a.py::test_a[m@cpu-\x1b[31mred]", "a", "m", outcome="error", message="\x1b]0;title\x07")
    ]
    lines = summary_lines(read_run(write_run(tmp_path / "run", cases)), width=100)
    assert "\x1b" not in "".join(lines) and "\\x1b]0;title" in "".join(lines)
