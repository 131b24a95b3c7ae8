"""The files beside the page: what each holds, and that all come from the run store alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from lm_audit.errors import StoreError
from lm_audit.report import write_reports
from lm_audit.report.charts.shown_figures import FigureDrawer
from lm_audit.report.page.build import build_page
from lm_audit.report.page.rendering import render_page
from lm_audit.report.tables.item_reading import collect_items
from lm_audit.report.tables.tidy import COLUMNS
from lm_audit.report.wording.names import anchor
from lm_audit.runstore.run import read_run
from lm_audit.stats.estimate import Estimate
from tests.report.made_runs import MadeCase, chart, item_rows, share, write_run

FILES = ("index.html", "metrics.csv", "metrics.parquet", "items.csv", "items.parquet", "evidence.jsonl", "junit.xml")


def test_all_projections_are_rebuilt_from_the_run_store(shown: Path) -> None:
    before = {name: (shown / name).read_bytes() for name in FILES}
    for name in FILES:
        (shown / name).unlink()
    write_reports(shown)
    assert {name for name in FILES if (shown / name).read_bytes() != before[name]} == set()


def test_the_metrics_table_has_a_row_for_each_metric(shown: Path) -> None:
    table = pd.read_parquet(shown / "metrics.parquet")
    run = read_run(shown)
    assert tuple(table.columns) == COLUMNS
    assert len(table) == sum(len(case.last.metrics) for case in run.cases)
    row = table[
        (table.metric == "bias.max_min_disparity")
        & (table.model == "tuned-v3")
        & (table["case"].str.contains("gender"))
    ].iloc[0]
    assert row.value == pytest.approx(0.68) and row.low < row.value < row.high and row.n == 120
    assert (row.verdict, row.state, row.headline) == ("missed", "missed", True)
    void = table[table.metric == "leakage.match_rate"]
    assert set(void[void.control.isna()].state) == {"void"}
    csv = pd.read_csv(shown / "metrics.csv")
    assert csv.shape == table.shape and csv.value.round(9).equals(table.value.round(9))


def test_what_was_told_when_a_model_loaded_stands_on_the_page(tmp_path: Path) -> None:
    told = ("weights <b> of another make", "zeros in lm_head.weight")
    cases = [MadeCase(f"a.py::case[m-{k}]", "bias", model="m", told=told, metrics={"bias.x": share(0.5)}) for k in "ab"]
    run = write_run(tmp_path / "run", cases)
    write_reports(run)
    page = (run / "index.html").read_text()
    assert page.count("Told when m was loaded") == 1
    assert page.count("weights &lt;b&gt; of another make") == 1 and page.count("zeros in lm_head.weight") == 1


def test_the_items_table_holds_every_row_with_its_case(shown: Path) -> None:
    table = pd.read_parquet(shown / "items.parquet")
    assert len(table) == sum(case.last.n_rows for case in read_run(shown).cases)
    assert list(table.columns[:6]) == ["case_id", "audit", "model", "device", "case", "item"]
    assert table.score.dtype == "float64" and table.correct.dtype == bool


def test_columns_of_different_types_meet_as_text(tmp_path: Path) -> None:
    rows: list[list[dict[str, Any]]] = [
        [{"item": "a", "x": 1, "n": 1}],
        [{"item": "a", "x": "one", "n": 0.5, "deep": {"k": [1]}}],
        [{"item": "a", "x": None}],
    ]
    cases = [MadeCase(f"evals/test_a.py::test_a[{k}]", "a", None, None, rows=r) for k, r in enumerate(rows)]
    write_reports(write_run(tmp_path / "run", cases))
    table = pd.read_parquet(tmp_path / "run" / "items.parquet")
    assert table.x.tolist()[:2] == ["1", "one"] and table.n.tolist()[:2] == [1.0, 0.5]
    assert table.deep.tolist()[1] == '{"k": [1]}'


def test_junit_holds_metrics_crashes_and_cases_that_never_ran(shown: Path) -> None:
    suite = ET.parse(shown / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert int(suite.get("tests", 0)) == len(cases) == len(read_run(shown).cases) + 1
    crashed = cases["test_attribution[smollm2@cpu-long]"].find("error")
    assert crashed is not None and "gw1 died" in str(crashed.get("message"))
    never = cases["test_sanity[smollm2@cpu-weights]"].find("error")
    assert never is not None and "never started" in str(never.get("message"))
    grid = cases["test_preference_grid[tuned-v3@cpu-gender-en]"]
    told = {p.get("name"): p.get("value") for p in grid.findall("properties/property")}
    assert told["bias.max_min_disparity"] == "0.68" and told["bias.max_min_disparity.verdict"] == "missed (max 0.5)"
    assert told["state"] == "missed" and grid.find("failure") is not None
    assert int(suite.get("errors", 0)) == len(suite.findall("testcase/error"))


def test_evidence_lines_hold_every_case_as_strict_json(shown: Path) -> None:
    lines = (shown / "evidence.jsonl").read_text().splitlines()
    records = [json.loads(line, parse_constant=lambda name: pytest.fail(f"bare {name}")) for line in lines]
    assert [r["case_id"] for r in records] == [case.case_id for case in read_run(shown).cases]
    grid = records[0]
    assert Estimate.from_json(grid["metrics"]["bias.max_min_disparity"]) == share(0.312, chance=None)
    assert grid["verdicts"][0]["word"] == grid["state"] == "met"


def test_verdict_words_agree_in_every_projection(shown: Path) -> None:
    evidence = {r["case_id"]: r["state"] for r in map(json.loads, (shown / "evidence.jsonl").read_text().splitlines())}
    table = pd.read_csv(shown / "metrics.csv").drop_duplicates("case_id").set_index("case_id").state.to_dict()
    junit = {
        f"{c.get('classname', '').replace('.', '/')}.py::{c.get('name')}": p.get("value")
        for c in ET.parse(shown / "junit.xml").iter("testcase")
        for p in c.findall("properties/property")
        if p.get("name") == "state"
    }
    page = {
        case.record.case_id: case.state.name for audit in build_page(read_run(shown)).audits for case in audit.cases
    }
    assert evidence == junit == page
    assert table == {case_id: evidence[case_id] for case_id in table}


def test_rows_beyond_the_budget_are_cut_alike_and_the_page_says_so(tmp_path: Path) -> None:
    sizes = (4000, 1000, 20)
    cases = [MadeCase(f"evals/test_a.py::test_a[m@cpu-{n}]", "a", "m", rows=item_rows(n, n)) for n in sizes]
    run = read_run(write_run(tmp_path / "run", cases))
    items = collect_items(run, budget=40_000)
    assert sum(len(rows.text) for rows in items.packed.values()) <= 40_000
    shown = [items.packed[case.case_id].shown for case in cases]
    assert shown[2] == 20 and shown[0] / 4000 == pytest.approx(shown[1] / 1000, rel=0.05)
    html = render_page(build_page(run, items))
    assert f"the first {shown[0]:,} are in this page, all are in items.parquet" in html


def test_charts_beyond_the_budget_are_left_to_the_browser(tmp_path: Path) -> None:
    cases = [MadeCase(f"evals/test_a.py::test_a[m@cpu-{k}]", "a", "m", figures=[chart(k)]) for k in range(4)]
    run = read_run(write_run(tmp_path / "run", cases))
    page = build_page(run, drawer=FigureDrawer(static_charts=2))
    figures = [case.figures[0] for audit in page.audits for case in audit.cases]
    assert [figure.svg is not None for figure in figures] == [True, True, False, False]
    html = render_page(page)
    assert 'id="runtime"' in html and html.count('class="chart lazy"') == 2


def test_each_of_very_many_cases_of_one_test_has_its_own_place() -> None:
    ids = [f"evals/test_bias.py::test_preference_grid_of_many[m@cpu-{number}]" for number in range(20_000)]
    assert len({anchor("items", one) for one in ids}) == len(ids)


def test_damaged_and_missing_records_are_named_on_the_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [MadeCase("evals/test_a.py::test_a[m@cpu-x]", "a", "m", rows=item_rows(3, 0))])
    rows = next((folder / "rows").iterdir())
    rows.write_bytes(rows.read_bytes() + b'{"item": "torn')
    with next((folder / "ledger").iterdir()).open("ab") as ledger:
        ledger.write(b'{"v": 1, "t": ')
    html = write_reports(folder).read_text()
    assert "2 damaged records or files" in html and f"rows/{rows.name}, line 4" in html and "ledger/main-" in html


def test_an_older_run_store_still_opens(tmp_path: Path) -> None:
    folder = tmp_path / "20240101-000000-0000"
    (folder / "ledger").mkdir(parents=True)
    case = {"case_id": "evals/test_bias.py::test_old[m@cpu-x]", "attempt": 1}
    old = {"value": 0.4, "low": 0.3, "high": 0.5, "n": 10, "retired_field": "x"}
    records = [
        {"kind": "case_start", **case, "audit": "bias", "model": "m", "device": "cpu"},
        {"kind": "metric", **case, "name": "bias.x", "estimate": old},
        {"kind": "note", **case, "text": "from another time"},
        {"kind": "case_end", **case, "outcome": "passed", "duration_s": 1.0},
    ]
    lines = [json.dumps({"v": 0, "t": float(k), **record}) for k, record in enumerate(records)]
    (folder / "ledger" / "main-1.jsonl").write_text("\n".join(lines) + "\n")
    html = write_reports(folder).read_text()
    assert "from another time" in html and "[0.30, 0.50]" in html and "ledger schema" in html


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no ledger"):
        write_reports(tmp_path)


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    html = write_reports(write_run(tmp_path / "run", [])).read_text()
    assert "Nothing was measured." in html and "No case ran." in html


def test_a_run_in_a_folder_whose_name_is_no_text_is_reported(tmp_path: Path) -> None:
    """Names of folders may be any bytes: the reports are the same as elsewhere."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff\x1b")) / "20260101-000000-0b0b"
    plain = tmp_path / "plain" / odd.name
    for folder in (odd, plain):
        write_run(folder, [MadeCase("t.py::test_x[m@cpu-a]", "bias", "m", metrics={"bias.x": share(0.4)})])
        write_reports(folder)
    for name in ("metrics.csv", "metrics.parquet", "items.csv", "items.parquet", "junit.xml"):
        assert (odd / name).read_bytes() == (plain / name).read_bytes()
    assert (odd / "index.html").exists() and (odd / "summary.json").exists()
