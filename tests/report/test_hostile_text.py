"""Whatever a model or a data set says is shown as text, in every place where the page shows text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lm_audit.evidence import Control, Figure
from lm_audit.report import write_reports
from lm_audit.report.comparison.page import render_comparison
from lm_audit.report.comparison.runs import compare_runs
from lm_audit.report.index.all_runs import write_index
from lm_audit.runstore.records import Verdict
from lm_audit.runstore.run import read_run
from lm_audit.stats.estimate import Estimate
from tests.report.conftest import Watched
from tests.report.made_runs import MadeCase, share, write_run

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "javascript:alert(4)",
    "\"' onmouseover='alert(5)'",
    "{{ 7*7 }}{% for x in y %}",
    "evil\u202egnp.exe",
    "nul\x00byte and \x1b[31m",
    "lone \ud800 surrogate",
    "<!--<script>",
    "]]>&lt;b&gt;",
    "https://example.com/pixel.gif",
)
ALL = " ".join(HOSTILE)
LONG = "0123456789" * 100_000


def hostile_case() -> MadeCase:
    """A case with hostile text in every field that holds text."""
    spec = {
        "title": ALL,
        "data": {"values": [{"a": text, "b": i, "url": "javascript:alert(6)"} for i, text in enumerate(HOSTILE)]},
        "mark": "bar",
        "encoding": {"x": {"field": "b", "type": "quantitative"}, "y": {"field": "a"}, "href": {"field": "url"}},
    }
    remote = {"data": {"url": "https://example.com/data.json"}, "mark": "point"}
    image = {
        "data": {"values": [{"u": "https://example.com/i.png"}]},
        "mark": "image",
        "encoding": {"url": {"field": "u"}},
    }
    frames = [{"label": ALL, "tokens": [{"text": text, "value": 0.5, "group": text} for text in HOSTILE]}]
    table = {"columns": [{"name": "x", "title": ALL}], "rows": [{"x": text} for text in HOSTILE]}
    return MadeCase(
        f"evals/test_bias.py::test_x[m@cpu-{HOSTILE[0]}]",
        "bias",
        "m",
        outcome="failed",
        message=ALL,
        metrics={"bias.x": replace(share(0.4), method=ALL, unit=ALL, note=ALL), "bias.y": Estimate.not_estimable(ALL)},
        rows=[
            {"item": f"{i} {text}", "text": text, "thought": text[:99], ALL: 1}
            for i, text in enumerate((*HOSTILE, LONG))
        ],
        figures=[
            Figure("chart", ALL, "vega-lite", spec, ALL),
            Figure("remote", ALL, "vega-lite", remote, ALL),
            Figure("image", ALL, "vega-lite", image, ALL),
            Figure("tokens", ALL, "tokens", {"frames": frames}, ALL),
            Figure("table", ALL, "table", table, ALL),
            Figure("odd", ALL, "pie", {}, ALL),  # type: ignore[arg-type]
        ],
        control=Control("positive", False, ALL, ALL),
        notes=[ALL],
        parameters={ALL: ALL, "nested": {"k": [ALL]}},
        verdicts=[Verdict("bias.x", "missed", ALL, ALL)],
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports of a run of the hostile case."""
    folder = tmp_path_factory.mktemp("reports") / "20260101-000000-bad0"
    write_run(folder, [hostile_case()], planned=[f"never {ALL}"], finished=False, options={"tags": [ALL]}, extra=ALL)
    with (folder / "ledger" / "torn-1.jsonl").open("w") as ledger:
        ledger.write('{"v": 1, "t": 2, "kind": "<script>alert(8)</script>')
    write_reports(folder)
    return folder


def test_hostile_text_is_only_text(watched: Watched, hostile: Path) -> None:
    path = hostile / "index.html"
    page = watched.open(path)
    page.locator("details.case summary").first.click()
    page.locator(".i-row").first.wait_for()
    for row in (0, 1, 6, 7):
        page.locator(".i-row").nth(row).click()
        page.locator("#drawer [data-close]").click()
    body = page.locator("body").inner_text()
    assert "<script>alert(1)</script>" in body and "javascript:alert(4)" in body and "{{ 7*7 }}" in body
    assert "evil\\u202egnp.exe" in body and "nul\\x00byte and \\x1b[31m" in body and "lone \\ud800 surrogate" in body
    assert "\u202e" not in body and "\x00" not in body
    links = page.evaluate("[...document.querySelectorAll('a')].map((a) => a.href || String(a.href.baseVal))")
    assert all(link.startswith("file:") for link in links)
    assert page.locator("svg a[href], svg script, img, iframe").count() == 0
    watched.assert_clean(path)


def test_a_line_of_a_million_characters_opens(watched: Watched, hostile: Path) -> None:
    page = watched.open(hostile / "index.html")
    page.locator("details.case summary").first.click()
    page.locator(".i-row").nth(len(HOSTILE)).click()
    assert "980,000 more characters" in page.locator("#drawer").inner_text()


def test_a_thought_is_folded_and_only_text(watched: Watched, hostile: Path) -> None:
    page = watched.open(hostile / "index.html")
    page.locator("details.case summary").first.click()
    page.locator(".i-row").first.click()
    thought = page.locator("#drawer dd details")
    assert thought.count() == 1 and not thought.locator("div").is_visible()
    thought.locator("summary").click()
    assert thought.locator("div").inner_text() == HOSTILE[0]
    watched.assert_clean(hostile / "index.html")


def test_a_figure_that_would_fetch_says_so_instead(watched: Watched, hostile: Path) -> None:
    page = watched.open(hostile / "index.html")
    page.locator("details.case summary").first.click()
    problems = " ".join(page.locator(".problem").all_inner_texts())
    assert "must hold its data inline" in problems and "'pie'" in problems
    watched.assert_clean(hostile / "index.html")


def test_hostile_text_in_the_index_and_in_a_comparison(watched: Watched, hostile: Path) -> None:
    index = write_index(hostile.parent)
    page = watched.open(index)
    assert "<script>alert(1)</script>" in page.locator(".runs").inner_text()
    watched.assert_clean(index)
    run = read_run(hostile)
    other = hostile.parent / "compare.html"
    other.write_bytes(render_comparison(compare_runs(run, run)).encode("utf-8", "backslashreplace"))
    watched.requests.clear()
    watched.open(other)
    watched.assert_clean(other)


def test_the_machine_readable_files_hold_hostile_text_whole(hostile: Path) -> None:
    import pandas as pd

    items = pd.read_parquet(hostile / "items.parquet")
    assert items["text"].tolist()[:7] == list(HOSTILE[:7]) and len(items["text"].iloc[-1]) == 1_000_000
    assert pd.read_csv(hostile / "items.csv")["text"].iloc[0] == HOSTILE[0]
    assert len(pd.read_csv(hostile / "metrics.csv")) == 2
