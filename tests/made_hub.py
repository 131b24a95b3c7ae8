"""A hub of our own on this machine, which answers about its models and data sets as the hub does."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Literal
from urllib.parse import parse_qs, unquote

COMMIT = "a" * 40
"""What the only revision, ``main``, stands for."""
Kind = Literal["models", "datasets"]
Files = Mapping[str, bytes]
Answer = tuple[int, bytes, dict[str, str]]


@dataclass(frozen=True)
class MadeHub:
    """The environment in which processes ask this hub, and the paths that they have asked for so far."""

    environment: dict[str, str]
    asked: list[str] = field(default_factory=list)


@contextmanager
def made_hub(repositories: Mapping[str, Files], home: Path, kind: Kind = "models") -> Iterator[MadeHub]:
    """Serves these models or data sets (name -> file -> content); what is fetched lies in ``home``."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(repositories, kind, asked))
    Thread(target=server.serve_forever, daemon=True).start()
    kept = {name: value for name, value in os.environ.items() if name not in ("HF_HUB_OFFLINE", "HF_HUB_CACHE")}
    environment = kept | {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_ETAG_TIMEOUT": "120",
        "HF_HUB_DOWNLOAD_TIMEOUT": "120",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    try:
        yield MadeHub(environment, asked)
    finally:
        server.shutdown()
        server.server_close()


def _handler(repositories: Mapping[str, Files], kind: Kind, asked: list[str]) -> type[BaseHTTPRequestHandler]:
    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def do_POST(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            asked.append(self.path)
            posted = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = unquote(self.path.partition("?")[0])
            status, content, headers = _answer(repositories, kind, path, posted, self.headers.get("Range", ""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Hub


def _answer(repositories: Mapping[str, Files], kind: Kind, path: str, posted: bytes, part: str) -> Answer:
    """Status, content and headers: what is at ``path``, or a ``part`` of it."""
    api = path.startswith("/api/")
    # Models' files lie at the root, data sets' below their kind; the API names either.
    place = path.removeprefix("/api") if api else f"/{kind}{path}" if kind == "models" else path
    found, *rest = *place.removeprefix(f"/{kind}/").split("/", 2), ""
    name, words = f"{found}/{rest[0]}", rest[1].split("/")
    files = repositories.get(name)
    if files is None:
        return _none("RepoNotFound")
    if len(words) > 1 and words[1] not in ("main", COMMIT):
        return _none("RevisionNotFound")
    inside = "/".join(words[2:])
    if not api:
        return _content(files, inside, part) if words[0] == "resolve" else _none("EntryNotFound")
    if words[0] == "tree":
        return _json([_entry(path, files[path]) for path in files if path.startswith(f"{inside}/" * bool(inside))])
    if words[0] == "paths-info":
        return _json([_entry(path, files[path]) for path in _paths(posted) if path in files])
    siblings = [{"rfilename": path} for path in files]
    about = {"id": name, "sha": COMMIT, "private": False, "gated": False, "tags": [], "siblings": siblings}
    return _json(about | ({"downloads": 0} if kind == "models" else {}))


def _content(files: Files, name: str, part: str) -> Answer:
    if name not in files:
        return _none("EntryNotFound")
    whole = files[name]
    headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha1(whole).hexdigest()}"', "Accept-Ranges": "bytes"}
    if not part:
        return 200, whole, headers
    first, _, last = part.removeprefix("bytes=").partition("-")
    end = min(int(last) + 1 if last else len(whole), len(whole))
    return 206, whole[int(first) : end], headers | {"Content-Range": f"bytes {first}-{end - 1}/{len(whole)}"}


def _paths(posted: bytes) -> list[str]:
    """The files that a client asks about: newer ones in JSON, older ones as a form."""
    try:
        named: list[str] = json.loads(posted)["paths"]
    except ValueError:
        named = parse_qs(posted.decode()).get("paths", [])
    return named


def _entry(name: str, content: bytes) -> dict[str, object]:
    """A file as the hub lists it."""
    return {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


def _json(value: object) -> Answer:
    return 200, json.dumps(value).encode(), {"Content-Type": "application/json"}


def _none(code: str) -> Answer:
    return 404, b"", {"X-Error-Code": code}
