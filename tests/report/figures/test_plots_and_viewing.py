"""Charts as files, and the reports folder served on this machine alone."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.errors import StoreError, UsageError
from lm_audit.evidence import Evidence, Figure
from lm_audit.report import report
from lm_audit.report.charts.plots import plots_line
from lm_audit.report.index.serving import ReportsServer
from tests.report.made_runs import MadeCase, chart, share, write_run

CASE = MadeCase("evals/t.py::test_a[m]", "a", "m", metrics={"a.x": share(0.4)})


def test_every_chart_is_written_as_svg_and_png(shown: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(shown, tmp_path / shown.name)
    assert main(["report", shown.name, "--reports", str(tmp_path), "--plots"]) == 0
    svgs, pngs = sorted(run.glob("plots/*/*.svg")), sorted(run.glob("plots/*/*.png"))
    assert len(svgs) == len(pngs) == 4 and "plots: 4 charts" in capsys.readouterr().out
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pngs)
    assert all("<script" not in path.read_text() and "<svg" in path.read_text() for path in svgs)


def test_figures_of_like_names_are_files_of_their_own_and_stay_in_the_run(tmp_path: Path) -> None:
    names = ("a.b", "a-b", "A-B", "a b", "\u202eevil", "x" * 90, "x" * 91)
    cases = [replace(CASE, figures=[chart(k, name, n=2) for k, name in enumerate(names)])]
    run = write_run(tmp_path / "20260101-120000-cccc", cases)
    line = plots_line(run)
    assert f"plots: {len(names)} charts" in line
    assert len({path.name for path in run.glob("plots/*/*.svg")}) == len(names)
    assert len({path.name.lower() for path in run.glob("plots/*/*.png")}) == len(names)
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(run / "plots")
    (run / "plots").symlink_to(outside)
    assert "leads out of the run folder" in plots_line(run) and not list(outside.iterdir())


def test_the_line_of_the_plots_is_safe_text(tmp_path: Path) -> None:
    broken = Figure("bad\x1b[31m", "x", "vega-lite", {"mark": "nonsense\u202e", "encoding": 3})
    line = plots_line(write_run(tmp_path / "20260101-120000-dddd", [replace(CASE, figures=[broken])]))
    assert "1 could not be drawn" in line and "\x1b" not in line and "\u202e" not in line


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[ReportsServer, Path]]:
    folder = tmp_path / "reports"
    write_run(folder / "20260101-120000-aaaa", [CASE])
    (tmp_path / "secret").write_text("outside")
    (folder / "way-out").symlink_to(tmp_path / "secret")
    server = ReportsServer(folder, 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server, folder
    server.shutdown()
    server.server_close()


def get(server: ReportsServer, path: str, host: str = "127.0.0.1") -> tuple[int, dict[str, str], str]:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=120)
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read().decode("utf-8", "replace")
    connection.close()
    return found


def test_the_index_follows_the_runs_and_nothing_else_is_served(served: tuple[ReportsServer, Path]) -> None:
    server, folder = served
    assert server.server_address[0] == "127.0.0.1"
    status, headers, page = get(server, "/")
    assert status == 200 and headers["Refresh"] == "10" and "1 audit run" in page
    write_run(folder / "20260101-130000-bbbb", [CASE])
    assert "2 audit runs" in get(server, "/")[2]
    for path in ("/way-out", "/../secret", "/%2e%2e/secret", "/20260101-120000-aaaa/ledger/"):
        assert get(server, path)[0] == 404, path
    assert get(server, "/", host="attacker.example")[0] == 403
    assert get(server, "/", host=f"localhost:{server.server_address[1]}")[0] == 200


def test_a_path_that_no_file_can_have_is_not_there(served: tuple[ReportsServer, Path]) -> None:
    server, folder = served
    (folder / "circle").symlink_to(folder / "circle")
    for path in ("/%00", "/" + "a" * 5000, "/circle", "/circle/x"):
        assert get(server, path)[0] == 404, path
    assert get(server, "/")[0] == 200


def test_an_index_that_cannot_be_written_is_served_as_it_was(
    served: tuple[ReportsServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, folder = served
    assert get(server, "/")[0] == 200

    def closed(_: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("lm_audit.report.index.all_runs.write_index", closed)
    status, _, page = get(server, "/")
    assert status == 200 and "1 audit run" in page


def test_a_port_in_use_is_one_line(served: tuple[ReportsServer, Path], capsys: pytest.CaptureFixture[str]) -> None:
    server, folder = served
    port = str(server.server_address[1])
    assert main(["view", "--reports", str(folder), "--port", port]) == 2
    told = capsys.readouterr().err.strip()
    assert f"cannot listen on 127.0.0.1:{port}" in told and "--port" in told and "\n" not in told
    with pytest.raises(SystemExit, match="2"):
        main(["view", "--reports", str(folder), "--port", "99999"])
    assert "--port: '99999' is not a whole number from 0 to 65535" in capsys.readouterr().err


def test_a_report_says_what_is_wrong_with_its_place_and_its_names(tmp_path: Path) -> None:
    evidence = Evidence("bias")
    (tmp_path / "file").write_text("x")
    for path, words in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "file" / "below", "cannot write"),
        ("a\0b", "no path"),
        (tmp_path / ("n" * 300), "cannot|no path"),
    ):
        with pytest.raises(StoreError, match=words):
            report(evidence, path)
    cannot = "cannot be read in a case id"
    for model, words in (("", "is empty"), ("a[b", cannot), ("a::b", cannot), ("a\nb", "cannot be seen")):
        with pytest.raises(UsageError, match=words):
            report(evidence, tmp_path / "run", model=model)
    assert report(evidence, tmp_path / "run", model="org/name@rev").is_file()
