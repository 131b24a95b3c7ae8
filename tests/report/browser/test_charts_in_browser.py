"""Charts that the browser draws, and a table of 12,000 rows: under the page's own policy, without an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_audit.evidence import Figure
from lm_audit.report.charts.shown_figures import FigureDrawer
from lm_audit.report.page.build import build_page
from lm_audit.report.page.rendering import render_page
from lm_audit.report.writing.of_run import write_text
from lm_audit.runstore.run import read_run
from tests.report.conftest import Watched, hover, until
from tests.report.made_runs import MadeCase, chart, item_rows, write_run

SLIDER = {
    "data": {"values": [{"layer": k, "x": i, "y": i * k} for k in range(4) for i in range(5)]},
    "params": [{"name": "chosen", "value": 1, "bind": {"input": "range", "min": 0, "max": 3, "step": 1}}],
    "transform": [{"filter": "datum.layer == chosen"}],
    "mark": "point",
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with room for one static chart, which can be made interactive; the other is drawn on opening."""
    slider = Figure("slider", "By layer", "vega-lite", SLIDER)
    cases = [
        MadeCase("evals/test_a.py::test_a[m@cpu-slider]", "a", "m", figures=[slider]),
        MadeCase("evals/test_a.py::test_a[m@cpu-late]", "a", "m", figures=[chart(3)], rows=item_rows(12_000, 0)),
    ]
    folder = tmp_path_factory.mktemp("run") / "20260101-120000-cafe"
    page = build_page(read_run(write_run(folder, cases)), drawer=FigureDrawer(static_charts=1))
    return write_text(folder / "index.html", render_page(page))


def test_a_late_chart_is_drawn_when_its_case_is_opened(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file)
    assert page.locator(".chart.lazy svg").count() == 0
    page.locator("details.case summary").nth(1).click()
    drawn = page.locator(".chart.lazy svg")
    drawn.wait_for(state="visible")
    assert drawn.first.bounding_box()["width"] > 200
    labels = page.locator(".chart.lazy [aria-label*='subject: the baker']")
    assert labels.count() > 0
    hover(page, labels.last)
    page.locator("#hint").wait_for()
    assert "the baker" in page.locator("#hint").inner_text()
    watched.assert_clean(page_file)


def test_a_chart_with_a_slider_answers_it(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file)
    page.locator("details.case summary").first.click()
    assert page.locator(".chart svg").count() == 1
    page.get_by_role("button", name="Make interactive").click()
    page.locator(".vega-bind input").wait_for()
    marks = "[...document.querySelectorAll('.chart path[aria-label]')]"
    top = f"Math.max(...{marks}.map((m) => +(m.ariaLabel.match(/y: (\\d+)/)?.[1] ?? 0)))"
    until(page, f"{top} === 4")
    page.locator(".vega-bind input").fill("3")
    until(page, f"{top} === 12")
    watched.assert_clean(page_file)


def test_twelve_thousand_rows_sort_search_and_scroll(watched: Watched, page_file: Path) -> None:
    page = watched.open(page_file)
    page.locator("details.case summary").nth(1).click()
    case = page.locator("details.case").nth(1)
    case.locator(".i-row").first.wait_for()
    assert case.locator(".i-tools output").inner_text() == "12,000 rows" and case.locator(".i-row").count() < 60
    case.locator(".i-head button", has_text="item").click()
    case.locator(".i-head button", has_text="item").click()
    assert case.locator(".i-row span").first.inner_text() == "t11999"
    case.locator(".i-view").evaluate("v => v.scrollTo(0, v.scrollHeight)")
    until(page, "[...document.querySelectorAll('.i-row')].some((row) => row.textContent.startsWith('t00000'))")
    case.locator(".i-tools input").fill("t0777 judge")
    until(page, "document.querySelector('.i-tools output').value.includes(' of 12,000')")
    assert all("judge" in text and "t0777" in text for text in case.locator(".i-row").all_inner_texts())
    watched.assert_clean(page_file)
