"""A browser for the tests of the pages, and a run store that shows every state."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lm_audit.report import write_reports
from tests.report.made_runs import findings_cases, showcase, write_run

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium, driven by Playwright; skips where either is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(FLAGS), timeout=PATIENCE_MS)
        yield Patient(browser)
        browser.close()


PATIENCE_MS = 180_000
"""How long a page is waited for, which only one that hangs takes."""


class Patient:
    """A browser whose pages may take their time on a busy machine."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def new_context(self, **options: Any) -> Any:
        """A context of its own."""
        context = self.browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        return context

    def new_page(self, **options: Any) -> Any:
        """A page in a context of its own, which ends with it."""
        page = self.browser.new_page(**options)
        page.set_default_timeout(PATIENCE_MS)
        return page


def until(page: Any, condition: str) -> None:
    """Wait until a JavaScript expression holds, in a page whose policy forbids the browser driver's own waiting."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never true: {condition}"
        page.wait_for_timeout(50)


def hover(page: Any, locator: Any) -> None:
    """Point at something once it has come to rest: scroll events come with the next frame, and end all hints."""
    locator.scroll_into_view_if_needed()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")
    locator.hover()


@dataclass
class Watched:
    """A page with everything that went wrong on it."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path, fragment: str = "") -> Any:
        """Open a file and return the page; its own file is the one request that may be made."""
        self.page.goto(path.as_uri() + fragment)
        return self.page

    def assert_clean(self, path: Path) -> None:
        """No error on the console, no exception, nothing asked for but the file itself."""
        assert self.errors == []
        assert set(self.requests) <= {path.as_uri()}


@pytest.fixture
def watched(chromium: Any) -> Iterator[Watched]:
    """A fresh page that notes errors and requests."""
    yield from _watch(chromium.new_context(viewport={"width": 1280, "height": 900}))


@pytest.fixture
def phone(chromium: Any) -> Iterator[Watched]:
    """A page as wide as a telephone, in the dark."""
    yield from _watch(chromium.new_context(viewport={"width": 375, "height": 800}, color_scheme="dark"))


@pytest.fixture
def scriptless(chromium: Any) -> Iterator[Watched]:
    """A page that runs no script."""
    yield from _watch(chromium.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900}))


def _dismissed(watched: Watched, dialog: Any) -> None:
    watched.errors.append(f"dialog {dialog.message}")
    dialog.dismiss()


def _watch(context: Any) -> Iterator[Watched]:
    watched = Watched(context.new_page())
    watched.page.on("console", lambda m: watched.errors.append(m.text) if m.type in ("error", "warning") else None)
    watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
    watched.page.on("dialog", lambda dialog: _dismissed(watched, dialog))
    watched.page.on("request", lambda request: _note(watched, request.url))
    yield watched
    context.close()


def _note(watched: Watched, url: str) -> None:
    if not url.startswith(("data:", "blob:", "about:")):
        watched.requests.append(url.partition("#")[0])


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two models, four audits and every state, its reports written."""
    folder = showcase(tmp_path_factory.mktemp("reports") / "20260101-120000-abcd", n_rows=1200)
    write_reports(folder)
    return folder


@pytest.fixture(scope="session")
def three_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three models with findings."""
    effects = {"base": 0.001, "sft-checkpoint": 0.05, "mine": 0.09}
    cases = [case for model, effect in effects.items() for case in findings_cases(model, effect)]
    folder = write_run(tmp_path_factory.mktemp("three") / "20260101-120000-3333", cases)
    write_reports(folder)
    return folder


@pytest.fixture(scope="session")
def undecided_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose one gate is undecided."""
    cases = [case for case in findings_cases(effect=0.01, gates=True) if "gender" not in case.case_id]
    folder = write_run(tmp_path_factory.mktemp("undecided") / "20260101-120000-0d0d", cases)
    write_reports(folder)
    return folder


@pytest.fixture(scope="session")
def found_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one model with findings, open questions and excluded effects, without gates."""
    folder = write_run(tmp_path_factory.mktemp("found") / "20260101-120000-f0f0", findings_cases())
    write_reports(folder)
    return folder
