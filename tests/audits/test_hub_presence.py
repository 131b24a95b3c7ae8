"""What a hub that answers, refuses, or is not one says of a data set before any row is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lm_audit.audits.hub_presence import refuse_absent
from lm_audit.audits.hub_rows import HubSet
from lm_audit.errors import DataError
from lm_audit.models.files import hub as hub_files


@contextmanager
def hub(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    # Our hub answers, on a busy machine after a while.
    for name in ("_TIMEOUT", "_CONNECT"):
        monkeypatch.setattr(hub_files, name, 120.0)


@pytest.mark.parametrize(("status", "words"), [(401, "not for everybody"), (403, "not handed out"), (404, "not there")])
def test_what_the_hub_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch, status: int, words: str) -> None:
    with hub(status, b"{}") as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(DataError, match=words):
            refuse_absent(HubSet("org/set"))


@pytest.mark.parametrize("body", [b"<html>log in to the network</html>", b"", b"\xff\xfe"])
def test_an_answer_that_is_not_the_hubs_is_left_to_the_case(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    with hub(200, body) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        refuse_absent(HubSet("org/set"))


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}", "nothing-of-a-scheme"])
def test_a_hub_that_does_not_answer_is_left_to_the_case(
    monkeypatch: pytest.MonkeyPatch, closed_port: int, address: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address.format(port=closed_port))
    refuse_absent(HubSet("org/set"))


def test_a_name_that_no_set_can_have_is_an_error() -> None:
    with pytest.raises(DataError, match="no name that a set of the hub can have"):
        refuse_absent(HubSet("org/--set"))


def test_a_fault_of_our_own_is_not_taken_for_a_silent_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def broken(*_: object, **__: object) -> None:
        raise AttributeError("a fault")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", broken)
    with pytest.raises(AttributeError):
        refuse_absent(HubSet("org/set"))
