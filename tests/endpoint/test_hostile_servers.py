"""Servers that are not what they should be: certificates, redirects, replies without end, answers that are none."""

from __future__ import annotations

import json
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from lm_audit.errors import HarnessError, ModelError, ServerError, UsageError
from lm_audit.models import load_model
from lm_audit.models.endpoint.client import reply_limits
from lm_audit.models.endpoint.settings import EndpointSettings
from tests.endpoint.servers.made_server import Body, Fault, Made, made_server, words

KEY = "sk-planted-0123456789abcdef"


def settings(**more: Any) -> EndpointSettings:
    return EndpointSettings(**{"retries": 0, "timeout_s": 120.0, "repeat_checks": 0, **more})


def tls_of(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def ask(made: Made, *faults: Fault, **more: Any) -> list[Any]:
    model = load_model(made.spec, endpoint=settings(**more))
    made.faults = list(faults)
    return model.generate(["one two"], max_new_tokens=4, chat=True)


def test_certificates_are_checked_and_a_private_authority_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    past = datetime.now(UTC) - timedelta(days=1)
    certificates = {
        "good": authority.issue_cert("localhost"),
        "expired": authority.issue_cert("localhost", not_before=past - timedelta(days=9), not_after=past),
        "elsewhere": authority.issue_cert("elsewhere.example"),
        "unknown": trustme.CA().issue_cert("localhost"),
    }
    told = {}
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    for name, certificate in certificates.items():
        with made_server(tls=tls_of(certificate)) as made:
            if name == "good":
                assert ask(made)[0].text == "two one"
                continue
            with pytest.raises(UsageError, match="its certificate or TLS fails") as raised:
                load_model(made.spec, endpoint=settings())
            told[name] = str(raised.value)
            assert made.keys == [], "nothing is sent before the certificate is checked"
    assert all("\n" not in one and "SSL_CERT_FILE" in one for one in told.values())
    assert "certificate has expired" in told["expired"]
    assert "Hostname mismatch" in told["elsewhere"] and "'localhost'" in told["elsewhere"]
    assert "unable to get local issuer certificate" in told["unknown"]


def test_a_redirect_to_another_host_gets_neither_key_nor_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with made_server() as made, made_server() as other:
        away = Fault(status=307, headers={"location": f"{other.url}/chat/completions?key={KEY}"}, body="")
        with pytest.raises(UsageError, match="redirects to") as raised:
            ask(made, away)
        assert KEY not in str(raised.value) and KEY in made.keys
        assert other.keys == [] and other.asked == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(headers={"content-encoding": "gzip"}, body=" " * 1_000_000), r"compressed \(gzip\)"),
        (Fault(body=" " * 3_000_000), "larger than 1 MiB"),
        (
            Fault(
                headers={"content-type": "text/event-stream"},
                body='data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: [DONE]\n\n',
            ),
            "what is no JSON: data:",
        ),
        (Fault(body="[" * 100_000), "RecursionError|no JSON"),
        (Fault(body='{"choices": [null]}'), "holds no choices"),
        (Fault(body='{"choices": {"0": "a"}}'), "holds no choices"),
        (Fault(body='{"choices": [{"index": 0}]}'), "expected a text or a message"),
    ],
    ids=["gzip", "huge", "sse", "nested", "null-choice", "mapping", "bare"],
)
def test_a_reply_that_is_no_answer_is_one_clear_error(
    fault: Fault, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_limits, "MOST_BYTES", 1 << 20)
    with made_server() as made, pytest.raises(ModelError, match=message) as raised:
        ask(made, fault)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 700


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(raw=CHUNKED + b'40\r\n{"choices": '), "its reply broke off"),
        (Fault(raw=CHUNKED + b"ZZ\r\n{}\r\n0\r\n\r\n"), "is no HTTP: illegal chunk"),
        (Fault(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{}"), "its reply broke off"),
        (Fault(raw=b"SSH-2.0-server\r\n"), "is no HTTP"),
        (Fault(raw=b"HTTP/1.1 200 OK\r\nx: " + b"a" * 300_000 + b"\r\n\r\n"), "is no HTTP: .*too long"),
        (Fault(headers={"content-encoding": "br"}, body="garbage"), r"compressed \(br\)"),
        (Fault(status=503, headers={"retry-after": "999999"}, body="busy"), r"503 after 1 try: busy \(Retry-After: 99"),
        (Fault(status=307, headers={"location": "/v1/chat/completions"}, body=""), "redirects to /v1/chat"),
        (Fault(body="<!doctype html><title>Log in</title>"), "no JSON: <!doctype html>"),
        (
            Fault(body=json.dumps({"choices": [{"message": {"content": one}} for one in ("yes", "no")]})),
            "answers in 2 ways where one answer was asked for",
        ),
    ],
    ids=["chunk-cut", "chunk-size", "short", "ssh", "long-line", "brotli", "later", "loop", "html", "two-choices"],
)
def test_what_is_no_whole_reply_is_told_as_what_it_is(fault: Fault, message: str) -> None:
    with made_server() as made, pytest.raises(HarnessError, match=message) as raised:
        ask(made, fault, timeout_s=60.0)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300


def test_choices_that_are_one_answer_twice_are_that_answer() -> None:
    choices = [{"index": at, "message": {"content": "yes"}} for at in range(2)]
    with made_server() as made:
        assert ask(made, Fault(body=json.dumps({"model": "made", "choices": choices})))[0].text == "yes"


@pytest.mark.parametrize(
    "usage", [None, [1, 2], {"prompt_tokens": "2"}, {"prompt_tokens": -5, "completion_tokens": -7}]
)
def test_a_usage_that_is_none_counts_nothing(usage: object) -> None:
    reply = {"model": "made", "choices": [{"message": {"content": "yes"}}], "usage": usage}
    with made_server() as made:
        model = load_model(made.spec, endpoint=settings())
        before = model.provenance()
        made.faults = [Fault(body=json.dumps(reply))]
        model.generate(["one two"], max_new_tokens=4, chat=True)
    after = model.provenance()
    for name in ("endpoint.prompt_tokens", "endpoint.answer_tokens"):
        assert after[name] == before[name]
    assert after["endpoint.requests_without_usage"] == 1


def test_headers_that_drip_without_end_count_as_lost() -> None:
    """The client's own limit is that of the next byte. Only a hang takes longer than the test waits."""
    with made_server() as made:
        made.trickle_s = 0.1
        made.faults = [Fault(raw=b"HTTP/1.1 200 OK\r\n" + b"x-drip: drop\r\n" * 100_000)] * 9
        with pytest.raises(ServerError, match=r"within 0.4 s"):
            load_model(made.spec, endpoint=settings(timeout_s=0.4)).generate(["one two"], max_new_tokens=4, chat=True)


def test_a_reply_that_trickles_without_end_counts_as_lost() -> None:
    with made_server(lambda route, body: words(route, body) | {"more": "m" * 1_000_000}) as made:
        made.trickle_s = 0.15
        with pytest.raises(ServerError, match=r"within 0.4 s"):
            load_model(made.spec, endpoint=settings(timeout_s=0.4)).generate(["one two"], max_new_tokens=4, chat=True)


def test_answers_that_are_not_the_model_s_own_are_counted() -> None:
    ends = iter(["content_filter", "tool_calls", "stop", "\x1b[31mmade up"])

    def filtered(route: str, body: Body) -> Body:
        said = words(route, body)
        end = next(ends)
        message = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
        said["choices"][0] |= {"finish_reason": end} | ({"message": message} if end == "tool_calls" else {})
        return said

    with made_server() as made:
        model = load_model(made.spec, endpoint=settings(concurrency=1))
        made.answer = filtered
        replies = model.generate([f"question {n}" for n in range(4)], max_new_tokens=4, chat=True)
        told = {name: value for name, value in model.provenance().items() if "ended_by" in name}
    assert [one.text for one in replies] == ["0 question", "", "2 question", "3 question"]
    assert told == {
        "endpoint.ended_by_content_filter": 1,
        "endpoint.ended_by_other": 1,
        "endpoint.ended_by_tool_calls": 1,
    }


def test_a_model_that_the_server_does_not_know_is_told_in_its_words() -> None:
    """A server that lists no models, and answers 404 for one that it does not have, as hosted ones do."""

    def unknown(route: str, body: Body) -> Body:
        raise AssertionError("not reached")

    missing = json.dumps({"error": {"message": "The model `made` does not exist"}})
    with made_server(unknown) as made:
        made.faults = [Fault(status=404, body=missing)] * 20
        with pytest.raises(HarnessError, match="The model `made` does not exist") as raised:
            load_model(made.spec, endpoint=settings())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("entries", [[], {}, ["made"], [{"id": 5}, None], "made"])
def test_a_list_without_a_model_that_could_be_named_is_none(entries: object) -> None:
    with made_server() as made:
        made.entries = entries
        assert ask(made)[0].text == "two one"


def test_a_model_in_other_case_is_suggested() -> None:
    with made_server() as made, pytest.raises(UsageError, match="no such model there; did you mean 'MADE'"):
        made.entries = [{"id": "other"}, {"id": "MADE"}]
        ask(made)


def test_a_server_that_leaves_a_greeting_in_tls_unanswered_is_given_up_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        with pytest.raises(ServerError, match=r"no connection within 3 s; .* should the URL begin with http://\?"):
            load_model(f"openai:m@https://127.0.0.1:{port}/v1", endpoint=settings(timeout_s=3, retries=6))
        mute.setblocking(False)
        mute.accept()[0].close()
        with pytest.raises(BlockingIOError):
            mute.accept()
