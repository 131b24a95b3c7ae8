"""A small server made by hand: it answers what a test says, and fails as real ones do."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lm_audit.errors import ModelError

Body = dict[str, Any]
Answer = Callable[[str, Body], Body]
"""From route and body to what a healthy server says."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong in place of an answer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    drop: bool = False
    hangs: bool = False
    """No answer comes as long as the server runs."""
    half: bool = False
    raw: bytes | None = None
    """What is sent as it is, before the connection is closed."""


@dataclass
class Made:
    """A running server: where it is, what it was asked, and what goes wrong next."""

    url: str
    answer: Answer
    model: str = "made"
    faults: list[Fault] = field(default_factory=list)
    asked: list[tuple[str, Body]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    listed: int = 0
    """How often it was asked which models it has."""
    entries: object = None
    """What the list of models holds in place of this one."""
    context: int | None = None
    trickle_s: float = 0.0
    """Seconds between every 64 bytes of an answer."""
    wanted_key: str | None = None
    routes_missing: set[str] = field(default_factory=set)
    in_flight: int = 0
    most_in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def spec(self) -> str:
        """The server as ``--model`` takes it."""
        return f"openai:{self.model}@{self.url}"

    def prompts(self) -> list[str]:
        """The prompts and messages that it was asked, in the order of their arrival."""
        return [json.dumps(body.get("prompt", body.get("messages"))) for _, body in self.asked]


def words(route: str, body: Body) -> Body:
    """A healthy answer: the words of the prompt backwards, a word a token."""
    chat = route.endswith("chat/completions")
    prompt = body["messages"][-1]["content"] if chat else body["prompt"]
    text = " ".join(reversed(str(prompt).split()))
    choice: Body = {"index": 0, "finish_reason": "stop"}
    choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text, "logprobs": None}
    count = len(str(prompt).split())
    usage = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": 2 * count}
    return {"id": "1", "model": "made", "system_fingerprint": "fp-1", "choices": [choice], "usage": usage}


@contextmanager
def made_server(
    answer: Answer = words, *, routes: Mapping[str, Answer] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[Made]:
    """A server on a free loopback port; ``routes`` are further ones than models, chat and completions."""
    made = Made("", answer)
    further = dict(routes or {})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Or the body would wait for the acknowledgement of the headers: 40 ms of every answer.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self._refused():
                return
            if self.path.endswith("/models"):
                made.listed += 1
                entry = {"id": made.model, "object": "model", "max_model_len": made.context}
                data = [entry] if made.entries is None else made.entries
                self._say(200, json.dumps({"object": "list", "data": data}))
            elif self.path in further:
                self._say(200, json.dumps(further[self.path](self.path, {})))
            else:
                self._say(404, '{"error": {"message": "not found"}}')

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self._refused():
                return
            if self.path in further:
                try:
                    self._say(200, json.dumps(further[self.path](self.path, body)))
                except (KeyError, ModelError) as error:  # Meant for another make of server, or a base model's chat.
                    self._say(400, json.dumps({"error": {"message": str(error)}}))
                return
            if not self.path.endswith("/completions") or self.path in made.routes_missing:
                self._say(404, '{"error": {"message": "not found"}}')
                return
            with made.lock:
                made.asked.append((self.path, body))
                made.times.append(time.monotonic())
                fault = made.faults.pop(0) if made.faults else None
                made.in_flight += 1
                made.most_in_flight = max(made.most_in_flight, made.in_flight)
            try:
                unsaid = fault is not None and (fault.drop or fault.raw is not None or fault.body is not None)
                said = "" if unsaid else json.dumps(made.answer(self.path, body))
                if fault and fault.hangs:
                    made.ended.wait()
            finally:
                with made.lock:  # Before anything is said: the next request may be here sooner than this one's end.
                    made.in_flight -= 1
            self._fail(fault, said) if fault else self._say(200, said)

        def _refused(self) -> bool:
            key = self.headers.get("authorization", "").removeprefix("Bearer ")
            made.keys.append(key)
            if made.wanted_key is None or key == made.wanted_key:
                return False
            self._say(401, json.dumps({"error": {"message": f"Incorrect API key provided: {key}"}}))
            return True

        def _fail(self, fault: Fault, healthy: str) -> None:
            if fault.drop:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if fault.raw is not None:
                for start in range(0, len(fault.raw), 64):
                    self.wfile.write(fault.raw[start : start + 64] if made.trickle_s else fault.raw[start:])
                    if not made.trickle_s:
                        break
                    time.sleep(made.trickle_s)
                self.close_connection = True
                return
            said = healthy if fault.body is None else fault.body
            self._say(fault.status, said[: len(said) // 2] if fault.half else said, fault.headers)

        def _say(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
            raw = text.encode()
            if (headers or {}).get("content-encoding") == "gzip":
                raw = gzip.compress(raw)
            self.send_response(status)
            for name, value in {"content-type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            for start in range(0, len(raw), 64):
                self.wfile.write(raw[start : start + 64] if made.trickle_s else raw)
                time.sleep(made.trickle_s)
                if not made.trickle_s:
                    break

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_arguments: Any) -> None:
            """A client that goes away is no error here."""

    server = Server(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}/v1"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        made.url = f"https://localhost:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
