"""Which model at which server: ``openai:MODEL@URL`` taken apart and checked, without asking anybody."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from lm_audit.errors import UsageError

PREFIX = "openai:"
KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
HOSTED = "https://api.openai.com/v1"
"""Where the official client goes when nobody names a server."""

_AT_URL = re.compile(r"(?P<model>.*)@(?P<url>[A-Za-z][A-Za-z0-9+.-]*:/.*)", re.DOTALL)
_AT_HOST = re.compile(
    r".*@(//.*|localhost|\[[0-9a-fA-F:]+\]|[\w.-]+:\d+|[\w-]+(\.[\w-]+)*/v\d+)(:\d+)?(/.*)?", re.DOTALL
)


@dataclass(frozen=True)
class Address:
    """A model by the name that its server knows; ``url`` is the server's base URL, ``None`` where it was left out."""

    model: str
    url: str | None = None


def is_endpoint(spec: str) -> bool:
    """Whether a model spec names a model behind a server."""
    return spec.startswith(PREFIX)


def parse_address(spec: str) -> Address:
    """The parts of ``openai:MODEL@URL``; ``UsageError`` for a spec without a model, or a URL that cannot be one.

    A message never shows what stands in a URL before its host, since that is where passwords stand.
    """
    text = spec.removeprefix(PREFIX)
    match = _AT_URL.fullmatch(text)
    if match is None and _AT_HOST.fullmatch(text):
        model = text.rpartition("@")[0]
        raise UsageError(
            f"model spec 'openai:{model}@...': what follows the last '@' has no scheme; write http:// or https:// "
            "before the host, for example openai:MODEL@http://localhost:8000/v1"
        )
    model, url = (match["model"], match["url"]) if match else (text, None)
    if not model:
        raise UsageError("model spec 'openai:...': no model is named; write openai:MODEL@http://host:8000/v1")
    if url is not None:
        check_url(url, f"model spec 'openai:{model}@...'")
    return Address(model, None if url is None else url.rstrip("/"))


def check_url(url: str, where: str) -> None:
    """``UsageError`` for a URL that names no server, or that holds what must not be written down."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{where}: the URL cannot be read ({error}); write http://host:8000/v1") from None
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"{where}: the URL holds a user or password; keys come from the environment ({KEY_VARIABLE})")
    if parts.query or parts.fragment:
        raise UsageError(f"{where}: the URL has a '?' or '#' part; keys come from the environment ({KEY_VARIABLE})")
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"{where}: the URL begins with {parts.scheme!r}; expected http:// or https://")
    if not host or not parts.netloc:
        raise UsageError(f"{where}: the URL {url!r} names no host; write {parts.scheme}://host:8000/v1")


def base_url(address: Address, *, allow_insecure: bool = False) -> str:
    """The URL to talk to: the address's own, else that of the environment, else the hosted one.

    ``UsageError`` for plain http to another machine, over which anybody can read the key, unless it is allowed.
    """
    url = stated_url(address)
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or "") and not allow_insecure:
        raise UsageError(
            f"openai:{address.model}: {url} is plain http to another machine, which anybody on the way can read; use "
            "https, or say --allow-insecure"
        )
    return url


def stated_url(address: Address) -> str:
    """The address's own URL, else that of the environment, else the hosted one, in the form in which it may be shown.

    ``UsageError`` for one in the environment that names no server or holds what must not be written down.
    """
    if address.url is not None:
        return address.url
    url = os.environ.get(URL_VARIABLE, "").strip().rstrip("/") or HOSTED
    check_url(url, URL_VARIABLE)
    return url


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
