"""What it costs to draw the charts of a report in a process of their own, against drawing them in the report's.

Run: python benchmarks/report/drawing_charts.py [--charts 60]
Each way draws the same charts twice, in turn, the start of its library included; prints the better times as JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from lm_audit.report.charts import vega  # noqa: E402
from tests.report.made_runs import chart, heatmap  # noqa: E402


def draw(way: str, charts: int) -> float:
    """Seconds for so many charts, bars and heat maps in turn, in a fresh process."""
    specs = [(heatmap if k % 2 else chart)(k).data for k in range(charts)]
    began = time.perf_counter()
    if way == "own process":
        for spec in specs:
            vega.to_svg(spec, prefix="f-")
    else:
        import vl_convert

        for spec in specs:
            svg = vl_convert.vegalite_to_svg(
                json.dumps(spec), vl_version=vega.VERSION, config=vega.CONFIG, allowed_base_urls=[]
            )
            vega.sanitise(svg, prefix="f-")
    return time.perf_counter() - began


def main() -> None:
    """Let both ways take turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--charts", type=int, default=60)
    parser.add_argument("--way", choices=("own process", "same process"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.way:
        print(draw(chosen.way, chosen.charts))
        return
    times: dict[str, list[float]] = {"own process": [], "same process": []}
    for _ in range(2):
        for way, taken in times.items():
            words = [sys.executable, __file__, "--charts", str(chosen.charts), "--way", way]
            taken.append(float(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
    best = {way: round(min(taken), 2) for way, taken in times.items()}
    print(json.dumps({"charts": chosen.charts, **best, "ratio": round(best["own process"] / best["same process"], 2)}))


if __name__ == "__main__":
    main()
