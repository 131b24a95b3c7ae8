"""The screens that people see: wide and narrow, light and dark, by keyboard alone, without an accessibility fault."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lm_audit.report import write_reports
from tests.report.conftest import until
from tests.report.made_runs import smoke_sized_cases, write_run

ROOT = Path(__file__).resolve().parents[3]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
RUNS = ("found_run", "undecided_run", "shown", "three_models")
"""One with findings, one undecided, one with void audits and every other state, one of three models."""
ANSWERS = {
    "found_run": "2 effects found in mine.",
    "undecided_run": "Undecided: the evidence is too thin.",
    "shown": "No: 1 of 6 gates missed.",
    "three_models": "Found: 1 in base, 1 in sft-checkpoint, 2 in mine.",
}


WIDTHS_AND_THEMES = [
    (1400, "light"),
    pytest.param((1400, "dark"), marks=pytest.mark.slow),
    pytest.param((400, "light"), marks=pytest.mark.slow),
    (400, "dark"),
]
"""Both widths and both themes; that one says nothing of the other is for the slow run."""


@pytest.fixture(params=WIDTHS_AND_THEMES, ids=lambda p: f"{p[0]}-{p[1]}")
def screen(request: pytest.FixtureRequest, chromium: Any) -> Iterator[Any]:
    """A page of one width and theme."""
    width, scheme = request.param
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("run", RUNS)
def test_a_screen_answers_first_and_scrolls_only_downwards(
    screen: Any, run: str, request: pytest.FixtureRequest
) -> None:
    screen.goto((request.getfixturevalue(run) / "index.html").as_uri())
    heading = screen.locator("h1")
    assert heading.inner_text() == ANSWERS[run] and heading.bounding_box()["y"] < 300
    if run != "shown":
        assert screen.locator("#findings .finding").first.bounding_box()["y"] < 900
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert screen.evaluate(wide) == 0
    screen.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert screen.evaluate(wide) == 0
    assert screen.evaluate(SMALL) == []


SMALL = """
[...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() && !e.closest('svg')
  && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())
  && parseFloat(getComputedStyle(e).fontSize) < 11.5).map((e) => e.className + ': ' + e.textContent.slice(0, 40))
"""


@pytest.mark.parametrize(
    "run", [pytest.param(run, marks=[] if run in ("shown", "three_models") else [pytest.mark.slow]) for run in RUNS]
)
@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), pytest.param(1400, "light", marks=pytest.mark.slow)])
def test_axe_finds_no_serious_fault(
    chromium: Any, run: str, width: int, scheme: str, request: pytest.FixtureRequest
) -> None:
    if not AXE.is_file():
        pytest.skip("the npm package axe-core is not installed: npm install")
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto((request.getfixturevalue(run) / "index.html").as_uri())
    page.locator("details.case summary").first.click()
    until(page, "document.querySelector('details.case').dataset.filled === 'yes'")
    until(page, "!document.body.innerText.includes('Unpacking')")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations)")
    context.close()
    assert page is not None and isinstance(found, list)
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    assert [(v["id"], v["nodes"][0]["html"][:160], v["nodes"][0]["failureSummary"]) for v in serious] == []


@pytest.mark.parametrize("width", [320, 400])
def test_the_whole_navigation_is_on_a_narrow_screen(chromium: Any, shown: Path, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.goto((shown / "index.html").as_uri())
    links = [one.bounding_box() for one in page.locator(".bar-top nav a").all()]
    assert len(links) > 5 and all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in links)
    assert all(page.locator(f"#{name}").bounding_box()["x"] < width for name in ("print", "theme"))
    page.close()


def test_three_models_stand_side_by_side(chromium: Any, three_models: Path) -> None:
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.goto((three_models / "index.html").as_uri())
    boxes = [one.bounding_box() for one in page.locator("#findings article").all()]
    assert len(boxes) == 3 and len({box["y"] for box in boxes}) == 1
    assert boxes[2]["x"] + boxes[2]["width"] <= 1400
    cells = [one.bounding_box() for one in page.locator(".matrix tbody tr").first.locator("td").all()]
    assert len(cells) == 3 and cells[2]["x"] + cells[2]["width"] <= 1400
    page.close()


def test_everything_can_be_reached_by_keyboard(chromium: Any, found_run: Path) -> None:
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.goto((found_run / "index.html").as_uri())
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.className") == "skip" and page.locator(".skip").is_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(f"Boolean({focused}.closest('#findings'))")
    order = []
    for _ in range(60):
        order.append(page.evaluate(f"{focused}.closest('section, dialog')?.id ?? ''"))
        if page.evaluate(f"{focused}.id") == "filter":
            break
        page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.id") == "filter" and order.index("findings") < order.index("matrix")
    page.evaluate("document.querySelector('details.case > summary').focus()")
    page.keyboard.press("Enter")
    page.locator(".i-row").first.wait_for()
    page.evaluate("document.querySelector('.i-head button').focus()")
    page.keyboard.press("Enter")
    assert page.locator("[aria-sort]").count() == 1
    page.evaluate("document.querySelector('.i-view').focus()")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#drawer").is_visible()
    page.keyboard.press("Escape")
    until(page, f"!document.querySelector('#drawer').open && {focused}.className === 'i-view'")
    page.close()


def test_a_deep_link_opens_its_case(chromium: Any, found_run: Path) -> None:
    page = chromium.new_page(viewport={"width": 400, "height": 900})
    page.goto((found_run / "index.html").as_uri())
    name = page.locator("details.case").nth(3).get_attribute("id")
    page.goto((found_run / "index.html").as_uri() + f"#{name}")
    page.reload()
    assert page.locator("details.case[open]").get_attribute("id") == name
    page.close()


def test_a_print_is_the_answer_the_findings_and_the_matrix(chromium: Any, shown: Path, three_models: Path) -> None:
    page = chromium.new_page()
    for run in (shown, three_models):
        page.goto((run / "index.html").as_uri())
        assert 1 <= pages(page.pdf()) <= 6
    page.emulate_media(media="print")
    assert page.locator("#findings").is_visible() and page.locator("#matrix").is_visible()
    assert not page.locator("section.audit").first.is_visible()
    brief = pages(page.pdf())
    page.goto((three_models / "index.html").as_uri() + "#print-all")
    page.reload()
    assert page.locator("section.audit").first.is_visible() and pages(page.pdf()) > brief
    page.close()


@pytest.mark.parametrize(
    ("models", "found", "rest"),
    [pytest.param(1, 1.0, "106 more", marks=pytest.mark.slow), (1, 0.05, ""), (3, 1.0, "114 more")],
)
def test_a_print_of_a_whole_smoke_run_is_at_most_six_pages(
    chromium: Any, tmp_path: Path, models: int, found: float, rest: str
) -> None:
    """All audits, on one model or three, with everything found or hardly anything; a killed run prints no list."""
    cases = [case for k in range(models) for case in smoke_sized_cases(f"model-{k}", found)]
    missing = [f"evals/test_bias.py::test_measure[model-0@cpu-{k}]" for k in range(300)]
    folder = write_run(tmp_path / "20260101-120000-5000", cases, planned=missing)
    write_reports(folder)
    page = chromium.new_page()
    page.goto((folder / "index.html").as_uri())
    pdf = page.pdf(format="A4")
    page.emulate_media(media="print")
    assert page.locator("#matrix").is_visible() and page.locator("#findings .finding").first.is_visible()
    told = page.locator(".print-rest:visible").all_inner_texts()
    assert [text[:8] for text in told] == ([rest] * models if rest else []) and pages(pdf) <= 6
    page.close()


def pages(pdf: bytes) -> int:
    """The number of pages of a PDF."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))
