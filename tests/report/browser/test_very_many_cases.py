"""A page of very many cases: the document holds the first, the others come as they are scrolled or filtered to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lm_audit.report import write_reports
from lm_audit.report.page import late_cases
from lm_audit.report.page.build import build_page
from lm_audit.report.page.rendering import render_page
from lm_audit.report.wording import names
from lm_audit.runstore.run import read_run
from tests.report.conftest import Watched, until
from tests.report.made_runs import AUDITS, MadeCase, findings_cases, share, tokens_figure, write_run

N = 420
MOST, FIRST, CHUNK = 200, 60, 30
LAST = f"evals/test_b.py::test_b[m@cpu-c{N - 1}]"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of so many cases in two audits; the last one has rows and coloured text."""
    folder = tmp_path_factory.mktemp("reports") / "20260101-000000-0000"
    cases = [
        MadeCase(
            f"evals/test_{'ab'[k % 2]}.py::test_{'ab'[k % 2]}[m@cpu-c{k}]",
            "ab"[k % 2],
            "m",
            metrics={f"{'ab'[k % 2]}.rate": share(0.5)},
            outcome="failed" if k == N - 3 else "passed",
            figures=[tokens_figure(0)] if k == N - 1 else [],
            rows=[{"item": "the row"}] if k == N - 1 else [],
        )
        for k in range(N)
    ]
    with pytest.MonkeyPatch.context() as patch:  # The same in small.
        for name, value in (("MOST", MOST), ("FIRST", FIRST), ("CHUNK", CHUNK)):
            patch.setattr(late_cases, name, value)
        write_reports(write_run(folder, cases))
    return folder / "index.html"


def test_the_document_holds_few_and_scrolling_brings_the_others(watched: Watched, many: Path) -> None:
    page = watched.open(many)
    until(page, f"document.querySelector('#filter-count').value === '{N} cases'")
    assert page.locator("section.audit").nth(1).locator("details.case").count() <= FIRST + 50
    first = page.locator("section.audit").first
    before = first.locator("details.case").count()
    first.locator(".more-cases").scroll_into_view_if_needed()
    until(page, f"document.querySelector('section.audit').querySelectorAll('details.case').length > {before}")
    ids = first.locator("details.case .id").all_text_contents()
    assert ids == [f"evals/test_a.py::test_a[m@cpu-c{2 * k}]" for k in range(len(ids))]
    watched.assert_clean(many)


def test_a_filter_finds_what_the_document_does_not_hold(watched: Watched, many: Path) -> None:
    page = watched.open(many)
    page.locator("#filter").fill(f"c{N - 1}]")
    until(page, f"document.querySelector('#filter-count').value === '1 of {N} cases'")
    case = page.locator("details.case:visible")
    case.wait_for()
    assert case.count() == 1 and page.locator("section.audit:visible").count() == 1
    case.locator("summary").first.click()
    case.locator(".i-row").first.wait_for()
    assert case.locator(".slider output").inner_text() == "layer 0 (1 of 3)"
    page.locator("#filter").fill("")
    page.locator("#chips [data-state='failed']").click()
    until(page, f"document.querySelector('#filter-count').value === '1 of {N} cases'")
    until(page, "document.querySelectorAll('details.case:not([hidden])').length === 1")
    watched.assert_clean(many)


def test_a_link_leads_to_a_case_that_the_document_does_not_hold(watched: Watched, many: Path) -> None:
    page = watched.open(many)
    anchor = names.anchor("case", LAST)
    page.evaluate(f"location.hash = '{anchor}'")
    page.locator(f"#{anchor}[open]").wait_for()
    assert LAST in page.locator(f"#{anchor}").inner_text()


def test_without_scripts_the_page_says_where_the_others_are(scriptless: Watched, many: Path) -> None:
    page = scriptless.open(many)
    assert "more cases need JavaScript here; all are in evidence.jsonl" in page.locator("body").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 400])
def test_a_screen_of_twenty_thousand_cases(chromium: Any, twenty_thousand: Path, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.goto(twenty_thousand.as_uri())
    heading = page.locator("h1")
    assert heading.inner_text().startswith("Found: ") or "found in" in heading.inner_text()
    assert heading.bounding_box()["y"] < 300 and page.locator("#findings .finding").first.bounding_box()["y"] < 900
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert page.evaluate("document.querySelectorAll('*').length") < 60_000
    page.locator("#filter").fill("case-19999]")
    until(page, "document.querySelector('#filter-count').value.startsWith('1 of 2')")
    page.locator("details.case:visible").first.wait_for()
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf())) <= 6
    page.close()


@pytest.fixture(scope="module")
def twenty_thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 20,000 cases over five audits, one of them with a finding."""
    folder = tmp_path_factory.mktemp("many") / "20260101-000000-2000"
    cases = [
        MadeCase(
            f"evals/test_{AUDITS[k % 5]}.py::test_{AUDITS[k % 5]}[smollm2@cpu-case-{k}]",
            AUDITS[k % 5],
            metrics={f"{AUDITS[k % 5]}.rate": share(0.2 + 0.6 * (k % 50) / 50)},
        )
        for k in range(20_000)
    ]
    write_reports(write_run(folder, [*findings_cases("smollm2"), *cases]))
    return folder / "index.html"


def test_a_page_of_few_cases_packs_none(tmp_path: Path) -> None:
    run = write_run(tmp_path / "20260101-000000-0000", [MadeCase(f"t.py::test_x[c{k}]", "bias") for k in range(150)])
    html = render_page(build_page(read_run(run)))
    assert html.count('<details class="case"') == 150 and "more-cases js" not in html
