"""The page in a real browser: it reads, filters, sorts, opens items, and asks nobody for anything."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.report.conftest import Watched, hover, until

GRID = "evals/test_bias.py::test_preference_grid[smollm2@cpu-gender-en]"


def _open_grid(page: Any) -> Any:
    case = page.locator("details.case", has=page.locator(f"text={GRID}"))
    case.locator("summary").first.click()
    case.locator(".i-row").first.wait_for()
    return case


def test_the_matrix_answers_first_and_leads_to_case_and_item(watched: Watched, shown: Path) -> None:
    path = shown / "index.html"
    page = watched.open(path)
    assert page.locator("h1").inner_text() == "No: 1 of 6 gates missed."
    missed = page.locator(".cell[data-model='tuned-v3']").first
    assert "missed" in missed.inner_text() and "0.68" in missed.inner_text()
    missed.locator("a.lead").first.click()
    case = page.locator("details.case[open]")
    case.wait_for()
    assert case.count() == 1 and "tuned-v3@cpu-gender-en" in case.inner_text()
    case.locator(".i-row").nth(2).click()
    drawer = page.locator("#drawer")
    assert drawer.is_visible() and "t00002" in drawer.locator("h3").inner_text()
    assert "the baker who works at the corner" in drawer.inner_text()
    page.keyboard.press("ArrowDown")
    assert "t00003" in drawer.locator("h3").inner_text()
    page.keyboard.press("Escape")
    drawer.wait_for(state="hidden")
    watched.assert_clean(path)


def test_filters_narrow_the_cases_and_say_how_many(watched: Watched, shown: Path) -> None:
    page = watched.open(shown / "index.html")
    total = page.locator("details.case").count()
    page.locator("#chips [data-state='missed']").click()
    assert page.locator("details.case:visible").count() == 1
    assert page.locator("#filter-count").inner_text() == f"1 of {total} cases"
    assert page.locator("section.audit:visible").count() == 1
    page.locator("#chips [data-state='missed']").click()
    page.keyboard.press("/")
    page.keyboard.type("needle tuned")
    until(page, "document.querySelectorAll('details.case:not([hidden])').length === 2")
    page.locator("#filter").fill("no such case")
    until(page, "document.querySelectorAll('details.case:not([hidden])').length === 0")
    watched.assert_clean(shown / "index.html")


def test_items_sort_both_ways_with_missing_values_last(watched: Watched, shown: Path) -> None:
    case = _open_grid(watched.open(shown / "index.html"))
    heads = case.locator(".i-head button")
    names = heads.all_inner_texts()
    at = names.index("logprob_gap")

    def column() -> list[str]:
        return [row.locator("span").nth(at).inner_text() for row in case.locator(".i-row").all()[:12]]

    heads.nth(at).click()
    falling = [float(text.replace("\u2212", "-")) for text in column()]
    heads.nth(at).click()
    rising = [float(text.replace("\u2212", "-")) for text in column()]
    assert falling == sorted(falling, reverse=True) and rising == sorted(rising) and falling[0] > rising[0]
    view = case.locator(".i-view")
    view.evaluate("v => v.scrollTo(0, v.scrollHeight)")
    until(watched.page, "document.querySelector('details.case[open] .i-row:last-child').dataset.at === '1199'")
    assert case.locator(".i-row").last.locator("span").nth(at).inner_text() == ""


def test_the_item_table_keeps_few_rows_in_the_document_and_searches_all(watched: Watched, shown: Path) -> None:
    case = _open_grid(watched.open(shown / "index.html"))
    assert case.locator(".i-tools output").inner_text() == "1,200 rows"
    assert case.locator(".i-row").count() < 60
    case.locator(".i-tools input").fill("t01100 pilot")
    until(watched.page, "document.querySelector('details.case[open] .i-tools output').value !== '1,200 rows'")
    shown_rows = case.locator(".i-row").count()
    assert shown_rows == 0 or "t01100" in case.locator(".i-row").first.inner_text()
    case.locator(".i-tools input").fill("t01101")
    until(watched.page, "document.querySelector('details.case[open] .i-tools output').value === '1 of 1,200 rows'")
    assert "t01101" in case.locator(".i-row").inner_text()
    watched.assert_clean(shown / "index.html")


def test_the_item_table_works_by_keyboard(watched: Watched, shown: Path) -> None:
    case = _open_grid(watched.open(shown / "index.html"))
    case.locator(".i-view").focus()
    for key in ("ArrowDown", "ArrowDown", "End", "ArrowUp", "Enter"):
        watched.page.keyboard.press(key)
    assert "t01198" in watched.page.locator("#drawer h3").inner_text()


def test_hovering_a_mark_shows_its_values(watched: Watched, shown: Path) -> None:
    case = _open_grid(watched.open(shown / "index.html"))
    mark = case.locator(".chart svg [aria-roledescription='rect mark'], .chart svg path[aria-label*='gap']").first
    hover(watched.page, mark)
    hint = watched.page.locator("#hint")
    hint.wait_for()
    assert "gap:" in hint.inner_text() and "word:" in hint.inner_text()
    watched.page.mouse.move(2, 400)
    hint.wait_for(state="hidden")
    watched.assert_clean(shown / "index.html")


def test_coloured_text_has_values_and_frames(watched: Watched, shown: Path) -> None:
    page = watched.open(shown / "index.html")
    case = page.locator("details.case", has=page.locator(".tokens"))
    case.locator("summary").first.click()
    assert case.locator(".frame:visible").count() == 1
    assert "engineer" in case.locator(".frame:visible").inner_text()
    assert case.locator(".frame:visible span").first.get_attribute("title").count("\u00b7") == 2
    case.locator("input[type=range]").fill("2")
    assert case.locator(".slider output").inner_text() == "layer 16 (3 of 3)"


def test_void_looks_void(watched: Watched, shown: Path) -> None:
    page = watched.open(shown / "index.html")
    value = page.locator(".cell.void .m-value").first
    assert value.evaluate("e => getComputedStyle(e).textDecorationLine") == "line-through"
    assert "repeating-linear-gradient" in page.locator(".cell.void").first.evaluate(
        "e => getComputedStyle(e).background"
    )
    assert "These numbers are void" in page.locator(".void-note").inner_text()


def test_findings_lead_the_strongest_first_and_weak_numbers_lead_nothing(watched: Watched, found_run: Path) -> None:
    page = watched.open(found_run / "index.html")
    assert page.locator("h1").inner_text() == "2 effects found in mine."
    said = page.locator("#findings .f-say").all_inner_texts()
    assert said[0].startswith("It favours one group") and said[1].startswith("The model has seen the English questions")
    first = page.locator("#findings .finding").first.inner_text()
    assert "[0.63, 0.79]" in first and "odds of 2.4 to 1" in first and "Next: the templates" in first
    unknown = page.locator("#findings .findings.open").first.inner_text()
    assert "questions would tell" in unknown and "English" not in unknown
    cell = page.locator(".cell", has_text="favours one group").inner_text()
    # Of four axes the smallest sample has the largest interval, and one metric has no interval at all.
    assert "the worst that is certain: preference grid \u203a en-gender" in cell and "probe range" not in cell
    assert page.locator("#findings").bounding_box()["y"] < page.locator("#matrix").bounding_box()["y"]
    page.locator("#findings .finding a").first.click()
    assert page.locator("details.case[open]").inner_text().count("en-gender")
    watched.assert_clean(found_run / "index.html")


def test_a_metric_explains_itself_on_hover_and_on_focus(watched: Watched, found_run: Path) -> None:
    page = watched.open(found_run / "index.html")
    term = page.locator("#findings .term").first
    for reach in (partial(hover, page, term), term.focus):
        reach()
        page.locator("#hint").wait_for()
        text = page.locator("#hint").inner_text()
        assert "lower is better" in text and "bias.preferred" in text
        page.keyboard.press("Escape")
        page.locator("#hint").wait_for(state="hidden")
    assert term.get_attribute("aria-describedby") == "hint"


def test_without_scripts_the_matrix_and_the_metrics_still_read(scriptless: Watched, shown: Path) -> None:
    page = scriptless.open(shown / "index.html")
    assert page.locator("h1").is_visible() and page.locator(".matrix .m-value").first.is_visible()
    page.locator("details.case summary").first.click()
    case = page.locator("details.case").first
    assert case.locator(".metrics .bar").first.is_visible() and case.locator(".chart svg").first.is_visible()
    assert not page.locator(".filters").is_visible()
    assert "item rows" in case.inner_text()


def test_a_telephone_in_the_dark_scrolls_only_downwards(phone: Watched, shown: Path) -> None:
    page = phone.open(shown / "index.html")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    page.locator("details.case summary").first.click()
    page.locator(".i-row").first.wait_for()
    assert page.evaluate(wide) == 0
    light = page.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).slice(0, 3).every((c) => c > 180)")
    assert light
    page.locator("#theme").click()
    assert not page.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).slice(0, 3).every((c) => c > 180)")
    phone.assert_clean(shown / "index.html")


def test_it_prints_to_pdf_without_what_only_a_screen_can_use(watched: Watched, shown: Path) -> None:
    page = watched.open(shown / "index.html")
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF") and len(pdf) > 20_000
    page.emulate_media(media="print")
    assert not page.locator(".bar-top").is_visible()


def test_every_control_has_a_name_and_text_has_contrast(watched: Watched, shown: Path) -> None:
    page = watched.open(shown / "index.html")
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input, a, summary')]"
        ".filter((e) => !(e.ariaLabel || e.textContent.trim())).length"
    )
    assert nameless == 0
    assert page.evaluate(CONTRAST) == []


CONTRAST = """
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c[3] > 250) return c; } return [255, 255, 255, 255]; };
  const poor = [];
  const texts = 'h1, h2, p, small, dt, dd, .pill, .m-value, .m-interval, .chips button, a';
  for (const e of document.querySelectorAll(texts)) {
    if (!e.textContent.trim() || !e.checkVisibility()) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) poor.push(`${e.className} ${e.textContent.trim().slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return poor;
})()
"""
