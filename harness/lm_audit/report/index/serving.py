"""Serves the reports folder on this machine alone, with an index that follows the runs."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REFRESH_S = 10
"""Seconds after which a browser asks for the index again."""
HOSTS = ("127.0.0.1", "localhost")


class ReportsServer(ThreadingHTTPServer):
    """A server of one folder, bound to the loopback interface."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int):
        self.folder = folder.resolve()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://127.0.0.1:{self.server_address[1]}/"


class _Handler(SimpleHTTPRequestHandler):
    server: ReportsServer

    def __init__(self, request: Any, client: object, server: ReportsServer):
        super().__init__(request, client, server, directory=str(server.folder))

    def send_head(self) -> Any:
        # A page of another site may point a name of its own at this machine; it is told nothing.
        if (self.headers.get("Host") or "").partition(":")[0] not in HOSTS:
            return self.send_error(HTTPStatus.FORBIDDEN, "this server answers to 127.0.0.1 and localhost only")
        try:
            path = Path(self.translate_path(self.path)).resolve()
            if path == self.server.folder or path == self.server.folder / "index.html":
                self._renew()
            elif not path.is_relative_to(self.server.folder):
                return self.send_error(HTTPStatus.NOT_FOUND, "outside of the reports folder")
            return super().send_head()
        except (OSError, ValueError, RuntimeError):  # a path that no file can have: too long, with NUL, a loop of links
            return self.send_error(HTTPStatus.NOT_FOUND, "no such file")

    def _renew(self) -> None:
        """Write the index anew; where that cannot be (a folder that is closed to us), the last one is served."""
        from lm_audit.report.index.all_runs import write_index

        with suppress(OSError):
            write_index(self.server.folder)

    def end_headers(self) -> None:
        if self.path.partition("?")[0] in ("/", "/index.html"):
            self.send_header("Refresh", str(REFRESH_S))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def list_directory(self, path: object) -> Any:
        return self.send_error(HTTPStatus.NOT_FOUND, "no such file")

    def log_message(self, format: str, *args: object) -> None:
        pass
