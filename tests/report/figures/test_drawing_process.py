"""Charts are drawn in another process: what ends it costs one chart."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lm_audit.errors import DataError
from lm_audit.evidence import Figure
from lm_audit.report.charts import vega
from lm_audit.report.charts.drawing import TRIES, DrawingProcess
from lm_audit.report.charts.shown_figures import FigureDrawer
from tests.report.made_runs import chart

BAR = {"mark": "bar", "encoding": {"x": {"field": "b", "type": "quantitative"}, "y": {"field": "a"}}}
LETHAL = {**BAR, "data": {"values": [{"a": "x\x0by", "b": 1}]}}
"""The library ends its process over this character."""


def ask(process: DrawingProcess, spec: object) -> str:
    return process.ask("svg", spec=spec, options={"vl_version": vega.VERSION})


def test_a_chart_that_ends_the_process_costs_itself_only() -> None:
    process = DrawingProcess()
    try:
        assert ask(process, chart(0).data).startswith("<svg")
        with pytest.raises(DataError, match="ended by SIG"):
            ask(process, LETHAL)
        assert ask(process, chart(0).data).startswith("<svg")
    finally:
        process.close()


def test_after_deaths_without_a_chart_drawing_is_given_up_with_the_reason() -> None:
    process = DrawingProcess()
    try:
        for _ in range(TRIES):
            with pytest.raises(DataError, match="ended by SIG"):
                ask(process, LETHAL)
        with pytest.raises(DataError, match=r"no chart can be drawn here: .* ended by SIG"):
            ask(process, chart(0).data)
        assert process._process is None, "none is started for nothing"
    finally:
        process.close()


def test_an_interrupted_chart_is_not_shown_as_the_next_one() -> None:
    process = DrawingProcess()
    first, second = ({**BAR, "data": {"values": [{"a": name, "b": 1}]}} for name in ("firstword", "secondword"))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        ask(process, chart(0).data)
        drawing = process._process
        assert drawing is not None
        os.kill(drawing.pid, signal.SIGSTOP)  # The request is written, and its answer does not come.
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                ask(process, first)
        finally:
            signal.signal(signal.SIGALRM, before)
            with contextlib.suppress(ProcessLookupError):
                os.kill(drawing.pid, signal.SIGCONT)
        svg = ask(process, second)
        assert "secondword" in svg and "firstword" not in svg
    finally:
        process.close()


def test_a_chart_that_takes_too_long_is_given_up() -> None:
    process = DrawingProcess(limit_s=1.5)
    rows = {"sequence": {"start": 0, "stop": 30_000_000, "as": "a"}}
    endless = {**BAR, "data": rows, "transform": [{"calculate": "pow(datum.a, 1.01)", "as": "b"}]}
    try:
        with pytest.raises(DataError, match=r"took longer than 1\.5 s|ended by SIG"):
            ask(process, endless)
    finally:
        process.close()


def test_the_process_is_reused_and_leaves_when_it_is_closed() -> None:
    held = bytearray(1_100_000_000)  # As much as a small model: the memory of whoever asks is not the process's own.
    held[::4096] = b"x" * len(held[::4096])
    process = DrawingProcess()
    ask(process, chart(0).data)
    first = process._process
    ask(process, chart(1).data)
    assert first is not None and process._process is first
    process.close()
    assert first.poll() is not None


@pytest.mark.parametrize("character", ["\x00", "\x0b", "\x0c", "\x1b", "\x7f", "\x85", "\ufffe", "\ud800", "\u202e"])
def test_hidden_characters_are_drawn_as_text(character: str) -> None:
    view = FigureDrawer().view(
        Figure("f", "F", "vega-lite", {**BAR, "data": {"values": [{"a": f"x{character}y", "b": 1}]}})
    )
    assert view.problem is None and view.svg is not None
    assert "x\\" in view.svg and character not in view.svg


def test_under_a_memory_limit_charts_are_notes_and_the_report_is_written(tmp_path: Path) -> None:
    script = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.report.made_runs import MadeCase, chart, write_run
from lm_audit.report import write_reports
folder = write_run(Path(sys.argv[2]) / "20260101-000000-0000", [
    MadeCase("t.py::test_x[m@cpu-a]", "bias", "m", figures=[chart(k, f"f{k}") for k in range(5)])])
resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000, 3_000_000_000))
print(write_reports(folder).read_text().count('class="problem"'))
"""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", script, str(root), str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(root / "harness")},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == 5
