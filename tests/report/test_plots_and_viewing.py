"""Charts as files, and the reports folder served on this machine alone."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from lm_audit.cli import main
from lm_audit.report.serving import ReportsServer

from .made_runs import MadeCase, share, write_run

CASE = MadeCase("evals/t.py::test_a[m]", "a", "m", metrics={"a.x": share(0.4)})


def test_every_chart_is_written_as_svg_and_png(shown: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(shown, tmp_path / shown.name)
    assert main(["report", shown.name, "--reports", str(tmp_path), "--plots"]) == 0
    svgs, pngs = sorted(run.glob("plots/*/*.svg")), sorted(run.glob("plots/*/*.png"))
    assert len(svgs) == len(pngs) == 4 and "plots: 4 charts" in capsys.readouterr().out
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pngs)
    assert all("<script" not in path.read_text() and "<svg" in path.read_text() for path in svgs)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[ReportsServer, Path]]:
    folder = tmp_path / "reports"
    write_run(folder / "20260101-120000-aaaa", [CASE])
    (tmp_path / "secret").write_text("outside")
    (folder / "way-out").symlink_to(tmp_path / "secret")
    server = ReportsServer(folder, 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server, folder
    server.shutdown()
    server.server_close()


def get(server: ReportsServer, path: str, host: str = "127.0.0.1") -> tuple[int, dict[str, str], str]:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
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
