"""How long the report takes and how large it is for 500 cases and 200,000 item rows.

Run: python benchmarks/report/report_speed.py [--cases 500] [--rows 200000]
Prints seconds, peak memory and file sizes as JSON. The run store is made first, outside the timing.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from lm_audit.report import write_reports  # noqa: E402
from tests.report.made_runs import MadeCase, chart, item_rows, share, write_run  # noqa: E402


def make(folder: Path, cases: int, rows: int) -> None:
    """A run of many cases over five audits and two models, each with a chart, eight metrics and item rows."""
    audits = ("bias", "leakage", "needle", "privacy", "faithfulness")
    made = []
    for k in range(cases):
        audit, model = audits[k % 5], ("smollm2", "tuned")[k // 5 % 2]
        metrics = {f"{audit}.rate_{i}": share(0.2 + 0.6 * ((k * 7 + i) % 50) / 50) for i in range(8)}
        made.append(
            MadeCase(
                f"evals/test_{audit}.py::test_{audit}[{model}@cpu-case-{k}]",
                audit,
                model,
                metrics=metrics,
                rows=item_rows(rows // cases, k),
                figures=[chart(k)],
                parameters={"axis": f"axis {k}"},
            )
        )
    write_run(folder, made)


def main() -> None:
    """Make the run, write its report, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--keep", type=Path, help="make the run here and keep it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary) / "20260101-000000-0000"
        make(folder, chosen.cases, chosen.rows)
        before = time.perf_counter(), time.process_time()
        page = write_reports(folder)
        seconds, cpu = time.perf_counter() - before[0], time.process_time() - before[1]
        sizes = {path.name: path.stat().st_size for path in sorted(folder.glob("*.*"))}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        told = {"cases": chosen.cases, "rows": chosen.rows, "seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2)}
        print(json.dumps(told | {"peak_bytes": peak, "page_bytes": page.stat().st_size, "files": sizes}, indent=1))


if __name__ == "__main__":
    main()
