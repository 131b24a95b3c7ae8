"""Fetching from the hub, against a server of our own on this machine that answers as the hub does."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.plugin.toy_run import write_project

COMMIT = "a" * 40
PROGRAM = """
import sys
from lm_audit.errors import ModelError
from lm_audit.models import load_model
from lm_audit.models.files import hub
hub._TIMEOUT = 120.0
try:
    model = load_model(sys.argv[1], device="cpu")
    print(model.name, model.fingerprint)
except ModelError as error:
    print("ModelError", error)
"""


@pytest.fixture
def hub(llama_folder: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment in which ``org/small`` can be fetched, and ``org/pickled`` holds a pickle alone."""
    files = {"org/small": {path.name: path.read_bytes() for path in llama_folder.iterdir()}}
    files["org/small"]["pytorch_model.bin"] = b"a pickle that nobody may fetch"
    files["org/pickled"] = {"config.json": b"{}", "pytorch_model.bin": b"a pickle"}
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(files, asked))
    Thread(target=server.serve_forever, daemon=True).start()
    environment = {name: value for name, value in os.environ.items() if name not in ("HF_HUB_OFFLINE", "HF_HOME")}
    yield environment | {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HUB_CACHE": str(tmp_path / "hub"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_ETAG_TIMEOUT": "120",
        "HF_HUB_DOWNLOAD_TIMEOUT": "120",
        "LM_AUDIT_CACHE": str(tmp_path / "own"),
        "NO_PROXY": "127.0.0.1",
    }
    server.shutdown()
    assert not [path for path in asked if path.endswith(".bin")]


def handler(files: dict[str, dict[str, bytes]], asked: list[str]) -> type[BaseHTTPRequestHandler]:
    """Answers about ``files`` (repository -> name -> content), whose only revision is ``main``."""

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            asked.append(self.path)
            content, headers = self.content()
            self.send_response(404 if content is None else 200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if body and content:
                self.wfile.write(content)

        def content(self) -> tuple[bytes | None, dict[str, str]]:
            path = self.path.partition("?")[0]
            if path.startswith("/api/models/"):
                return self.listing(path.removeprefix("/api/models/"))
            repo, _, rest = path[1:].partition("/resolve/")
            found = files.get(repo, {}).get(rest.partition("/")[2])
            if found is None:
                return None, {"X-Error-Code": "EntryNotFound"}
            etag = f'"{hashlib.sha1(found).hexdigest()}"'
            return found, {"ETag": etag, "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}

        def listing(self, rest: str) -> tuple[bytes | None, dict[str, str]]:
            parts = rest.split("/")
            repo, kind, revision = "/".join(parts[:2]), parts[2:3], (parts[3:4] or ["main"])[0]
            if repo not in files:
                return None, {"X-Error-Code": "RepoNotFound"}
            if revision not in ("main", COMMIT):
                return None, {"X-Error-Code": "RevisionNotFound"}
            if kind == ["tree"]:
                answer: object = [
                    {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for name, data in files[repo].items()
                ]
            else:
                siblings = [{"rfilename": name} for name in files[repo]]
                answer = {"id": repo, "sha": COMMIT, "siblings": siblings, "tags": [], "private": False, "downloads": 0}
            return json.dumps(answer).encode(), {"Content-Type": "application/json"}

        def log_message(self, *_: object) -> None:
            pass

    return Hub


def load(spec: str, environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, spec], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_uncached_model_is_fetched_once(hub: dict[str, str]) -> None:
    first = load("org/small", hub)

    assert first.startswith("small ")
    assert load("org/small", hub | {"HF_HUB_OFFLINE": "1"}) == first
    assert not list(Path(hub["HF_HUB_CACHE"]).rglob("*.bin"))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("org/absent", "the hub has no such model"),
        ("org/small@v9", "the hub has no revision 'v9'"),
        ("org/pickled", "has no safetensors weights on the hub"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(hub: dict[str, str], spec: str, says: str) -> None:
    answer = load(spec, hub)

    assert answer.startswith("ModelError") and says in answer
    assert "\n" not in answer


LONG = """
import pytest
from lm_audit.plugin import Case, cases

@pytest.mark.bias
@cases([Case("short", tokens=9), Case("long", tokens=40), Case("plain")])
def test_a(case, language_model):
    pass
"""


@pytest.mark.slow
def test_a_context_that_is_not_known_before_the_fetch_is_told_once(hub: dict[str, str], tmp_path: Path) -> None:
    project, told = write_project(tmp_path, test_a=LONG), "how long a text it reads is known when it has been fetched"
    call = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "new", "--model", "new=org/small"]

    def run() -> str:
        return subprocess.run(
            call, env=hub | {"PYTHONPATH": os.pathsep.join(sys.path)}, cwd=project, capture_output=True, text=True
        ).stdout

    first, again = run(), run()
    assert first.count(told) == 1 and f"new: {told}; cases of up to 40 tokens are planned" in first, first
    assert "3 passed" in first and "3 passed" in again and told not in again
