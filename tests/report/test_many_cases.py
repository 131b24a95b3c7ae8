"""What a run's end costs grows with its cases, not with their square: counted in calls, since times tell little."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from lm_audit.report.in_pytest.terminal import summary_lines
from lm_audit.report.writing.of_run import write_all
from lm_audit.runstore.ledger import Ledger
from lm_audit.runstore.run import read_run
from tests.report.made_runs import MadeCase, share, write_run

FEW = 40


def calls_of(function: Callable[[], object]) -> int:
    """How many calls, those of built-in functions included, ``function`` makes."""
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return made


def write(folder: Path, many: int) -> Path:
    """A run of so many cases with a metric each, all judged by a later session."""
    cases = [
        MadeCase(f"t.py::test_bias[m@cpu-{at}]", "bias", "m", metrics={"bias.rate": share(0.5)}) for at in range(many)
    ]
    write_run(folder, cases)
    judging = Ledger(folder / "ledger", "controller", session=2)
    for case in cases:
        judging.write("judged", case_id=case.case_id, outcome="passed", message="", cause=None, verdicts=[])
    judging.close()
    return folder


def test_the_end_of_a_run_is_linear_in_its_cases(tmp_path: Path) -> None:
    def end(folder: Path) -> None:
        write_all(folder)
        summary_lines(read_run(folder, shown=True))

    few, many = write(tmp_path / "few", FEW), write(tmp_path / "many", 3 * FEW)
    end(few)  # What is loaded and remembered once is no part of either.
    first, second = calls_of(lambda: end(few)), calls_of(lambda: end(many))
    end_of_none = (3 * first - second) / 2  # Where calls are BASE + EACH * cases.
    assert end_of_none > 0, f"{first} calls for {FEW} cases, {second} for {3 * FEW}"
