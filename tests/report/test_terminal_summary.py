"""The summary in the terminal: fits its width, says the verdicts, shows what needs attention first."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.report.terminal import summary_lines
from lm_audit.runstore.run import read_run

from .made_runs import MadeCase, share, write_run


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(shown: Path, width: int) -> None:
    lines = summary_lines(read_run(shown), width=width)
    assert max(map(len, lines)) <= width
    assert any("missed" in line for line in lines) and "\x1b" not in "".join(lines)


def test_it_says_value_interval_and_verdict_of_each_case(shown: Path) -> None:
    lines = summary_lines(read_run(shown), width=140)
    line = next(line for line in lines if "gender-en" in line and "tuned-v3" in line)
    assert line.split()[0] == "\u2717" and line.split()[-4:] == ["[0.60,", "0.76]", "120", "missed"]
    text = "\n".join(lines)
    assert "VOID leakage" in text and "gates: 1 missed, 2 undecided, 3 met" in text
    assert "2 planned cases never ended; --resume 20260101-120000-abcd" in text


def test_colour_is_only_colour(shown: Path) -> None:
    import re

    run = read_run(shown)
    coloured = summary_lines(run, width=120, color=True)
    assert "\x1b[" in "".join(coloured)
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured]
    assert plain == [line.rstrip() for line in summary_lines(run, width=120)]


def test_many_cases_leave_only_those_that_need_attention(tmp_path: Path) -> None:
    cases = [MadeCase(f"evals/test_a.py::test_a[m@cpu-{k}]", "a", "m", metrics={"a.x": share(0.4)}) for k in range(60)]
    cases.append(MadeCase("evals/test_a.py::test_a[m@cpu-bad]", "a", "m", outcome="crashed", message="worker died"))
    lines = summary_lines(read_run(write_run(tmp_path / "run", cases)), width=100)
    assert len(lines) < 10 and any("bad" in line and "crashed" in line for line in lines)
    assert "and 60 cases that need no attention" in "\n".join(lines)


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    cases = [
        MadeCase("evals/test_a.py::test_a[m@cpu-\x1b[31mred]", "a", "m", outcome="error", message="\x1b]0;title\x07")
    ]
    lines = summary_lines(read_run(write_run(tmp_path / "run", cases)), width=100)
    assert "\x1b" not in "".join(lines) and "\\x1b]0;title" in "".join(lines)
