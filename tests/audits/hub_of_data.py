"""A hub of our own on this machine that holds data sets, and answers as the hub does."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

import datasets

COMMIT = "b" * 40


def parquet_of(rows: list[dict[str, object]], features: datasets.Features | None = None) -> bytes:
    """The rows as the hub stores them."""
    held = io.BytesIO()
    datasets.Dataset.from_list(rows, features=features).to_parquet(held)
    return held.getvalue()


def card(configs: dict[str, dict[str, str]]) -> bytes:
    """The card of a set: configuration -> split -> file."""
    lines = ["---", "configs:"]
    for name, splits in configs.items():
        lines += [f"- config_name: {name}", "  data_files:"]
        for split, path in splits.items():
            lines += [f"  - split: {split}", f"    path: {path}"]
    return "\n".join([*lines, "---", ""]).encode()


@contextmanager
def hub_of_data(sets: dict[str, dict[str, bytes]], home: Path) -> Iterator[dict[str, str]]:
    """The environment in which these sets (name -> file -> content) can be loaded; caches lie in ``home``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(sets))
    Thread(target=server.serve_forever, daemon=True).start()
    environment = {name: value for name, value in os.environ.items() if name not in ("HF_HUB_OFFLINE", "HF_HUB_CACHE")}
    try:
        yield environment | {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_ETAG_TIMEOUT": "120",
            "HF_HUB_DOWNLOAD_TIMEOUT": "120",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "NO_PROXY": "127.0.0.1",
        }
    finally:
        server.shutdown()


def _handler(sets: dict[str, dict[str, bytes]]) -> type[BaseHTTPRequestHandler]:
    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send(*self.paths_info(asked), body=True)

        def answer(self, *, body: bool) -> None:
            self.send(*self.content(), body=body)

        def send(self, content: bytes | None, headers: dict[str, str], *, body: bool) -> None:
            self.send_response(404 if content is None else 206 if "Content-Range" in headers else 200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if body and content:
                self.wfile.write(content)

        def repo(self, path: str) -> tuple[dict[str, bytes], list[str]]:
            parts = path.removeprefix("/api").removeprefix("/datasets/").split("/")
            return sets.get("/".join(parts[:2]), {}), parts[2:]

        def content(self) -> tuple[bytes | None, dict[str, str]]:
            path = unquote(self.path.partition("?")[0])
            files, rest = self.repo(path)
            if not files:
                return None, {"X-Error-Code": "RepoNotFound"}
            if path.startswith("/api/"):
                if rest[:1] == ["tree"]:
                    return self.json([entry(name, files[name]) for name in files if under(name, rest[2:])])
                return self.json(
                    {
                        "id": "/".join(path.removeprefix("/api/datasets/").split("/")[:2]),
                        "sha": COMMIT,
                        "private": False,
                        "gated": False,
                        "tags": [],
                        "siblings": [{"rfilename": name} for name in files],
                    }
                )
            found = files.get("/".join(rest[2:])) if rest[:1] == ["resolve"] else None
            if found is None:
                return None, {"X-Error-Code": "EntryNotFound"}
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(found).hexdigest()}"'}
            asked = self.headers.get("Range", "").removeprefix("bytes=")
            if asked:
                first, _, last = asked.partition("-")
                end = int(last) + 1 if last else len(found)
                headers["Content-Range"] = f"bytes {first}-{min(end, len(found)) - 1}/{len(found)}"
                found = found[int(first) : end]
            return found, headers

        def paths_info(self, asked: bytes) -> tuple[bytes | None, dict[str, str]]:
            files, _ = self.repo(unquote(self.path.partition("?")[0]))
            try:
                names = json.loads(asked)["paths"]
            except ValueError:
                from urllib.parse import parse_qs

                names = parse_qs(asked.decode()).get("paths", [])
            return self.json([entry(name, files[name]) for name in names if name in files])

        def json(self, value: object) -> tuple[bytes, dict[str, str]]:
            return json.dumps(value).encode(), {"Content-Type": "application/json"}

        def log_message(self, *_arguments: object) -> None:
            pass

    return Hub


def entry(name: str, content: bytes) -> dict[str, object]:
    """A file as the hub lists it."""
    return {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


def under(name: str, folder: list[str]) -> bool:
    """Whether a file lies in a folder."""
    return not any(folder) or name.startswith("/".join(folder) + "/")
