"""From a spec to a served model: asked once a process, or told by the controller what it found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lm_audit.errors import UsageError
from lm_audit.models.endpoint.asking import ask_server
from lm_audit.models.endpoint.client.client import Client
from lm_audit.models.endpoint.facts import HIDDEN_TEMPLATE, EndpointFacts
from lm_audit.models.endpoint.settings import EndpointSettings
from lm_audit.models.endpoint.tokens.message_tokenizer import MessageTokenizer
from lm_audit.models.endpoint.tokens.rough_tokenizer import RoughTokenizer
from lm_audit.models.endpoint.tokens.server_tokenizer import ServerTokenizer
from lm_audit.models.loading.spec import ModelSpec, parse_spec
from lm_audit.models.text.chat import template_source
from lm_audit.models.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from lm_audit.models.endpoint.model import EndpointModel


def find_facts(spec: str | ModelSpec, settings: EndpointSettings) -> EndpointFacts:
    """What the server behind ``spec`` can do; raises what :func:`ask_server` raises."""
    # Nothing is kept, and a server that is not there is told at once.
    asking = replace(settings, folder=None, reuse=(), budget=None, retries=min(1, settings.retries))
    client = Client(_address(spec), asking)
    try:
        return ask_server(client, _local_tokenizer(settings))
    finally:
        client.close()


def connect(spec: str | ModelSpec, settings: EndpointSettings, facts: EndpointFacts | None = None) -> EndpointModel:
    """The served model, ready to answer."""
    from lm_audit.models.endpoint.model import EndpointModel

    parsed = parse_spec(spec)
    found = facts or find_facts(parsed, settings)
    client = Client(_address(parsed), settings)
    return EndpointModel(client, found, tokenizer_of(client, found, settings), name=parsed.name)


def tokenizer_of(client: Client, facts: EndpointFacts, settings: EndpointSettings) -> Tokenizer:
    """The tokenizer that counts for this server: the one that the user names, the server's own, or a stand-in.

    Where a prompt in the chat template can be sent as token ids, it is: the same tokens as on the chat route, and the
    answer can be begun for the model as on this machine. Elsewhere messages are sent.
    """
    name = f"openai:{facts.model}"
    found: Any = _local_tokenizer(settings)
    if found is None and facts.dialect is not None:
        found = ServerTokenizer(client, facts.dialect, offsets=facts.offsets, template=facts.template, name=name)
    if found is None:
        found = RoughTokenizer(name, HIDDEN_TEMPLATE if facts.chat else None)
    rendered = facts.takes_ids and facts.tokenizer is not None and template_source(found) is not None
    if facts.chat and not rendered:
        if isinstance(found, ServerTokenizer):  # It has a template, which it applies to messages and does not show.
            found.chat_template = found.chat_template or HIDDEN_TEMPLATE
        found = MessageTokenizer(found, facts.extra_tokens or 0)
    told: Tokenizer = found
    return told


def _local_tokenizer(settings: EndpointSettings) -> Any:
    if settings.tokenizer is None:
        return None
    from lm_audit.models.text.tokenizer_loading import load_tokenizer

    return load_tokenizer(settings.tokenizer)


def _address(spec: str | ModelSpec) -> Any:
    parsed = parse_spec(spec)
    if parsed.address is None:
        raise UsageError(f"model spec {parsed.text!r} names no server; write openai:MODEL@http://host:8000/v1")
    return parsed.address
