"""Hidden characters in every field of a run: the reports are whole, and show what is there."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.parsers import expat

import pytest

from lm_audit.errors import DataError, DataWarning
from lm_audit.evidence import Control, Figure
from lm_audit.report import write_reports
from lm_audit.report.allure.results import complete_results
from lm_audit.report.comparison.page import render_comparison
from lm_audit.report.comparison.runs import compare_runs
from lm_audit.report.comparison.text import comparison_lines
from lm_audit.report.exporters.flat import flat_metrics, flat_parameters, models_of
from lm_audit.report.in_pytest.terminal import summary_lines
from lm_audit.report.index.all_runs import write_index
from lm_audit.runstore.records import Verdict
from lm_audit.runstore.run import read_run
from tests.report.conftest import Watched
from tests.report.made_runs import MadeCase, share, write_run

CONTROLS = [*map(chr, range(0x20)), "\x7f", *map(chr, range(0x80, 0xA0))]
BIDI = [*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]
OTHERS = [
    *"\u00ad\u200b\u2028\u2029\ue000\ufeff\ufff9\ufdd0\ufdef\ufffe\uffff",
    "\U000e0001",
    "\U0001fffe",
    "\U0010ffff",
]
SURROGATES = [*"\udc00\udc80\udfff\ud800\udbff"]
HIDDEN = "".join((*CONTROLS, *BIDI, *OTHERS, *SURROGATES))
SHOWN = (r"\x00", r"\x0b", r"\x0c", r"\x1b", r"\x7f", r"\x85", r"\u202e", r"\ufffe", r"\ud800", r"\U0010ffff")


def is_shown(text: str) -> bool:
    """Whether nothing in ``text`` is hidden, but for line ends, tabs and joiners."""
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    return all(c in "\n\t\u200d" or (unicodedata.category(c) not in hidden and ord(c) & 0xFFFE != 0xFFFE) for c in text)


def hidden_case(tmp_path: Path) -> MadeCase:
    """Hidden characters wherever a model, a data set, a file or a test may put text."""
    spec = {
        "title": HIDDEN,
        "data": {"values": [{"a": f"{c}{i}", f"b{HIDDEN}": i} for i, c in enumerate(HIDDEN)]},
        "mark": "point",
        "encoding": {"x": {"field": "a"}, "y": {"field": "a"}},
    }
    frames = [{"label": HIDDEN, "tokens": [{"text": c, "value": 0.1, "group": c} for c in HIDDEN]}]
    table = {"columns": [{"name": HIDDEN, "title": HIDDEN}], "rows": [{HIDDEN: c} for c in HIDDEN]}
    file = tmp_path / f"a{''.join(c for c in HIDDEN[1:90] if c != '/')}"
    file.write_text("content")
    return MadeCase(
        f"evals/test_b{HIDDEN}.py::test_x[{HIDDEN}]",
        f"bias{HIDDEN}",
        f"model{HIDDEN}",
        device=f"cpu{HIDDEN}",
        outcome="failed",
        message=HIDDEN,
        metrics={f"bias.x{HIDDEN}": replace(share(0.4), method=HIDDEN, unit=HIDDEN, note=HIDDEN)},
        rows=[{"item": f"{i}{c}", "text": f"{c} {HIDDEN}", f"column{HIDDEN}": 1} for i, c in enumerate(HIDDEN)],
        figures=[
            Figure(f"chart{HIDDEN}", HIDDEN, "vega-lite", spec, HIDDEN),
            Figure("tokens", HIDDEN, "tokens", {"frames": frames}, HIDDEN),
            Figure("table", HIDDEN, "table", table, HIDDEN),
        ],
        control=Control("positive", False, HIDDEN, HIDDEN),
        notes=[HIDDEN],
        parameters={HIDDEN: HIDDEN, "nested": {HIDDEN: [HIDDEN]}},
        verdicts=[Verdict(f"bias.x{HIDDEN}", "missed", HIDDEN, HIDDEN)],
        files=[file],
    )


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports of a run of that case."""
    folder = tmp_path_factory.mktemp("reports") / "20260101-000000-0b0b"
    case = hidden_case(tmp_path_factory.mktemp("files"))
    write_run(folder, [case], planned=[f"never{HIDDEN}"], finished=False, options={"tags": [HIDDEN]}, more=HIDDEN)
    write_reports(folder)
    return folder


def test_the_page_draws_and_shows_all_of_them(watched: Watched, hidden: Path) -> None:
    html = (hidden / "index.html").read_text(encoding="utf-8")
    assert is_shown(html) and 'class="problem"' not in html and html.count("<svg") > 1
    page = watched.open(hidden / "index.html")
    page.locator("details.case summary").first.click()
    page.locator(".i-row").first.wait_for()
    page.locator(".i-row").nth(11).click()
    body = page.locator("body").inner_text()
    for text in SHOWN:
        assert text in body
    assert is_shown(page.evaluate("document.body.textContent.replaceAll('\\r', '')"))
    watched.assert_clean(hidden / "index.html")


def test_junit_is_valid_xml_for_a_strict_parser(hidden: Path) -> None:
    content = (hidden / "junit.xml").read_bytes()
    expat.ParserCreate().Parse(content, True)
    suite = ET.fromstring(content)
    texts = "".join(suite.itertext()) + "".join(value for element in suite.iter() for value in element.attrib.values())
    assert is_shown(texts) and all(text in texts for text in SHOWN)


@pytest.mark.parametrize("name", ["metrics.csv", "items.csv"])
def test_a_csv_holds_no_control_character(hidden: Path, name: str) -> None:
    text = (hidden / name).read_bytes().decode("utf-8")
    assert is_shown(text)
    rows = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in rows}) == 1 and "\\x0b" in text


def test_parquet_and_the_ledger_keep_what_was_said(hidden: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(hidden / "items.parquet")
    kept = "".join(c for c in HIDDEN if not 0xD800 <= ord(c) < 0xE000)
    assert table.column("text")[0].as_py().startswith(HIDDEN[0]) and kept[:60] in table.column("text")[0].as_py()
    assert read_run(hidden).cases[0].last.notes == (HIDDEN,)
    assert read_run(hidden, shown=True).cases[0].last.notes != (HIDDEN,)


def test_json_for_programs_is_shown_text(hidden: Path, tmp_path: Path) -> None:
    for name in ("evidence.jsonl", "summary.json"):
        for line in (hidden / name).read_text(encoding="utf-8").splitlines():
            assert is_shown(line) and is_shown(json.dumps(json.loads(line), ensure_ascii=False))
    assert complete_results(read_run(hidden, shown=True), tmp_path) == 1
    assert complete_results(read_run(hidden, shown=True), tmp_path) == 1
    (result,) = tmp_path.glob("*-result.json")
    told = json.loads(result.read_text(encoding="utf-8"))
    assert is_shown(json.dumps(told, ensure_ascii=False)) and "\\x0b" in told["name"]
    assert all((tmp_path / file["source"]).is_file() for file in told["attachments"])
    assert any(file["type"] == "image/png" for file in told["attachments"])
    assert is_shown((tmp_path / "environment.properties").read_text(encoding="utf-8"))


def test_terminal_comparison_index_and_exporters_show_them(hidden: Path, watched: Watched) -> None:
    run = read_run(hidden)
    lines = summary_lines(read_run(hidden, shown=True), width=200, color=False)
    lines += comparison_lines(compare_runs(run, run), width=200)
    assert all(is_shown(line) for line in lines) and any("\\x1b" in line for line in lines)
    assert is_shown(render_comparison(compare_runs(run, run)))
    index = write_index(hidden.parent)
    assert is_shown(index.read_text(encoding="utf-8"))
    watched.open(index)
    watched.assert_clean(index)
    told = read_run(hidden, shown=True)
    flat = {**flat_parameters(told), **{key: "" for model in models_of(told) for key in flat_metrics(told, model)}}
    assert is_shown("".join((*flat, *flat.values(), *map(str, models_of(told)))))


def test_errors_and_warnings_say_it_in_shown_text() -> None:
    error = DataError(f"cannot read {HIDDEN}", file=f"f{HIDDEN}", row=3)
    assert is_shown(str(error)) and "\\x1b" in str(error) and error.row == 3
    assert is_shown(str(DataWarning(HIDDEN)))
