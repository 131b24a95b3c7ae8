"""``openai:MODEL@URL``: what it names, and what is refused before anybody is asked."""

from __future__ import annotations

import pytest

from lm_audit.errors import UsageError
from lm_audit.models import parse_spec
from lm_audit.models.endpoint.address import HOSTED, base_url, parse_address
from lm_audit.models.loading.identity.spec_identity import forget, model_identity
from lm_audit.plugin.options.model_choice import parse_choice


@pytest.mark.parametrize(
    ("spec", "model", "url", "name"),
    [
        (
            "openai:Qwen/Qwen3-0.6B@http://localhost:8000/v1",
            "Qwen/Qwen3-0.6B",
            "http://localhost:8000/v1",
            "Qwen3-0.6B",
        ),
        ("openai:gpt-4o", "gpt-4o", None, "gpt-4o"),
        ("openai:@cf/meta/llama@https://h/v1/", "@cf/meta/llama", "https://h/v1", "llama"),
        ("openai:/models/a b/x.gguf@http://[::1]:80/v1", "/models/a b/x.gguf", "http://[::1]:80/v1", "x"),
        ("openai:qwen3:8b@http://127.0.0.1:11434/v1", "qwen3:8b", "http://127.0.0.1:11434/v1", "qwen3:8b"),
    ],
)
def test_a_spec_names_a_model_and_a_server(spec: str, model: str, url: str | None, name: str) -> None:
    address = parse_address(spec)
    assert (address.model, address.url) == (model, url)
    assert parse_choice(spec).name == name
    assert parse_choice(f"mine={spec}") == type(parse_choice(spec))("mine", spec)
    assert parse_spec(spec).kind == "endpoint"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("openai:", "no model is named"),
        ("openai:@http://h/v1", "no model is named"),
        ("openai:m@htp://h/v1", "begins with 'htp'"),
        ("openai:m@localhost:8000/v1", "no scheme"),
        ("openai:m@10.0.0.7:8000", "no scheme"),
        ("openai:m@api.example.org/v1", "no scheme"),
        ("openai:m@http:/h/v1", "names no host"),
        ("openai:m@http:///v1", "names no host"),
        ("openai:m@http://h:99999/v1", "cannot be read"),
        ("openai:m@http://h:80x/v1", "cannot be read"),
        ("openai:m@https://user:hunter22@h/v1", "user or password"),
        ("openai:m@https://h/v1?api-key=hunter22", "'?' or '#' part"),
    ],
)
def test_a_url_with_a_typo_is_one_line_that_shows_no_password(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_spec(spec)
    assert message in str(raised.value)
    assert "hunter22" not in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "free"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.8.9.10/v1", True),
        ("http://[::1]/v1", True),
        ("https://example.org/v1", True),
        ("http://example.org/v1", False),
        ("http://192.168.0.4:8000/v1", False),
        ("http://localhost.example.org/v1", False),
        ("http://127.0.0.1.example.org/v1", False),
    ],
)
def test_plain_http_to_another_machine_must_be_allowed(url: str, free: bool) -> None:
    address = parse_address(f"openai:m@{url}")
    if not free:
        with pytest.raises(UsageError, match="--allow-insecure"):
            base_url(address)
    assert base_url(address, allow_insecure=True) == url


def test_the_server_comes_from_the_environment_where_the_spec_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    forget()
    assert base_url(parse_address("openai:m")) == HOSTED
    here = model_identity("openai:m")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://other.example/v1/")
    forget()
    assert base_url(parse_address("openai:m")) == "https://other.example/v1"
    assert model_identity("openai:m") != here
    assert model_identity("openai:m") == model_identity("openai:m@https://other.example/v1"), "one server, one name"
    monkeypatch.setenv("OPENAI_BASE_URL", "https://u:hunter22@other.example/v1?api-key=hunter22")
    forget()
    assert model_identity("openai:m") == "endpoint m at a URL in OPENAI_BASE_URL that cannot be used"
    with pytest.raises(UsageError) as raised:
        base_url(parse_address("openai:m"))
    assert "hunter22" not in str(raised.value)
