"""How large the page of very many cases is, and how long Chromium takes to open it.

Run: python benchmarks/report/many_cases.py [--cases 20000] [--no-browser]
Prints JSON: seconds of CPU for the reports, bytes of the page, and in Chromium the time until the page is ready, the
elements in the document, and the time until a filter has found one case.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from lm_audit.report import write_reports  # noqa: E402
from tests.report.made_runs import MadeCase, share, write_run  # noqa: E402

AUDITS = ("bias", "leakage", "needle", "privacy", "faithfulness")


def make(folder: Path, cases: int) -> None:
    """A run of so many cases over five audits, each with two metrics."""
    made = (
        MadeCase(
            f"evals/test_{AUDITS[k % 5]}.py::test_{AUDITS[k % 5]}[smollm2@cpu-case-{k}]",
            AUDITS[k % 5],
            metrics={f"{AUDITS[k % 5]}.rate_{i}": share(0.2 + 0.6 * ((k * 7 + i) % 50) / 50) for i in range(2)},
        )
        for k in range(cases)
    )
    write_run(folder, made)


def opened(page_file: Path, last: str) -> dict[str, Any]:
    """What a browser needs to open the page, and to find the case ``last`` by its name."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(bypass_csp=True)  # Playwright waits by evaluating texts, which the page forbids.
        page.set_default_timeout(180_000)
        began = time.perf_counter()
        page.goto(page_file.as_uri(), wait_until="load")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        ready = time.perf_counter() - began
        elements = page.evaluate("document.querySelectorAll('*').length")
        began = time.perf_counter()
        page.locator("#filter").fill(last)
        page.wait_for_function("document.querySelector('#filter-count').value.startsWith('1 of ')")
        page.locator("details.case:visible").first.wait_for()
        found = time.perf_counter() - began
        browser.close()
    return {"open_seconds": round(ready, 2), "elements": elements, "filter_seconds": round(found, 2)}


def main() -> None:
    """Make the run, write its report, open it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--keep", type=Path, help="make the run here and keep it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary) / "20260101-000000-0000"
        if not (folder / "ledger").is_dir():
            make(folder, chosen.cases)
        before = time.process_time()
        page = write_reports(folder)
        told: dict[str, Any] = {"cases": chosen.cases, "report_cpu_seconds": round(time.process_time() - before, 2)}
        told["page_bytes"] = page.stat().st_size
        if not chosen.no_browser:
            told |= opened(page, f"case-{chosen.cases - 1}")
        print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
