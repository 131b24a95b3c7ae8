"""The connection to a server: the official ``openai`` client on an event loop of its own, and its errors in words."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from lm_audit.errors import HarnessError, ServerError, UsageError
from lm_audit.models.endpoint.address import KEY_VARIABLE, Address, base_url, is_loopback
from lm_audit.models.endpoint.client.questions import NoRoute, RefusedRequest
from lm_audit.models.endpoint.client.reply_limits import HEADERS, bounded, reply_limit
from lm_audit.models.endpoint.client.secrets import Key
from lm_audit.models.endpoint.settings import EndpointSettings

_LONGEST_MESSAGE = 400
_CONNECT_S = 10.0
"""Seconds for a connection: a server of plain http may leave a greeting in TLS unanswered for ever."""


class Transport:
    """Sends requests with the key of the environment, retried by the official client; knows nothing of models' answers.

    Raises ``UsageError`` for a package that is not installed, an address that may not be used, a wrong key or model;
    ``ServerError`` for a server that is not there or does not answer in time.
    """

    def __init__(self, address: Address, settings: EndpointSettings):
        self.address = address
        self.settings = settings
        self.url = base_url(address, allow_insecure=settings.allow_insecure)
        self.root = self.url.removesuffix("/v1")
        self._key = Key()
        self._runner: asyncio.Runner | None = None
        self._openai: Any = None
        self._met = False

    def close(self) -> None:
        """Close the connections."""
        if self._runner is not None:
            self._beside(self._close_here)

    def hide(self, text: str) -> str:
        """A text from the server without the key."""
        return self._key.hide(text)

    def unexpected(self, error: BaseException) -> HarnessError:
        """What no server should cause, as an error of the server."""
        return ServerError(f"{self.who}: {type(error).__name__}: {self.hide(str(error))[:_LONGEST_MESSAGE]}")

    # The event loop.

    def run(self, work: object) -> Any:
        """Run a coroutine on the one event loop of this connection."""
        return self._beside(partial(self._run_here, work))

    def _beside(self, call: Callable[[], Any]) -> Any:
        """Calls here, or in a thread where this one runs a loop already, as in a notebook: it cannot run a second."""
        if not _in_a_loop():
            return call()
        with ThreadPoolExecutor(1, "lm-audit-client") as thread:
            done = thread.submit(call)
            try:
                return done.result()
            except BaseException:
                if not done.done() and self._runner is not None:
                    self._runner.get_loop().call_soon_threadsafe(_cancel_all, self._runner.get_loop())
                raise

    def _run_here(self, work: Any) -> Any:
        """Runs in this thread; what an interruption leaves behind is cancelled."""
        if self._runner is None:
            try:
                self._runner = asyncio.Runner()
                self._openai = self._runner.run(self._connect())
            except BaseException:
                work.close()
                raise
        try:
            return self._runner.run(work)
        except BaseException:
            with contextlib.suppress(BaseException):
                self._runner.run(_cancel_others())
            raise

    def _close_here(self) -> None:
        assert self._runner is not None
        with contextlib.suppress(Exception):
            self._runner.run(self._openai.close())
        self._runner.close()
        self._runner = None

    async def _connect(self) -> Any:
        try:
            import httpx2
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout
        except ImportError:
            raise UsageError(
                f"openai:{self.address.model} needs the package openai: pip install 'pytest-lm-audit[endpoint]'"
            ) from None
        connect_s = min(_CONNECT_S, self.settings.timeout_s)
        loopback = is_loopback(urlsplit(self.url).hostname or "")
        # A proxy is for other machines; a redirect could lead to a host that nobody named, or to plain http.
        # A private authority's file (SSL_CERT_FILE) counts for this machine too.
        http = bounded(DefaultAsyncHttpxClient, connect_s + 2 * self.settings.timeout_s)(
            follow_redirects=False,
            trust_env=not loopback,
            verify=httpx2.create_ssl_context(trust_env=True),
            event_hooks={"response": [reply_limit(self.who, self.settings.timeout_s)]},
        )
        return AsyncOpenAI(
            api_key=self._key.reveal(),
            base_url=self.url,
            max_retries=self.settings.retries,
            timeout=Timeout(self.settings.timeout_s, connect=connect_s),
            http_client=http,
            default_headers=HEADERS,
        )

    # Requests.

    async def service(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        """What a route of the server itself says, ``None`` where it has no such route or says no JSON."""
        url = f"{self.root}{path}" if not path.startswith("/v1/") else f"{self.url}{path.removeprefix('/v1')}"
        try:
            response = await self.request(method, url, body)
        except NoRoute:
            return None
        try:
            return json.loads(self.hide(response.text))
        except ValueError:
            return None

    async def request(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        """The response of a route; the ``HarnessError`` that a refusal or a lost connection stands for."""
        import openai

        try:
            return await self._send(method, path, body)
        except openai.APIStatusError as error:
            raise self._refused(error.response, path) from None
        except openai.APITimeoutError as error:
            if _without_connection(error):
                raise self._unconnected() from None
            raise ServerError(
                f"{self.who}: no answer within {self.settings.timeout_s:g} s, {self.settings.retries + 1} times; "
                "give it more with --request-timeout, or ask less at once with --concurrency"
            ) from None
        except openai.APIConnectionError as error:
            raise self._unreachable(error) from None

    async def _send(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        """The client's answer. It tries again, but for a first look at the server that gets no connection.

        Any other error of that look is asked for once more, so that the client alone says what is worth trying again.
        """
        import httpx2
        import openai

        first = method == "GET" and not self._met
        client = self._openai.with_options(max_retries=0) if first else self._openai
        try:
            if method == "GET":
                return await client.get(path, cast_to=httpx2.Response)
            return await client.post(path, body=body, cast_to=httpx2.Response)
        except (openai.APIConnectionError, openai.APIStatusError) as error:
            if not first or _without_connection(error):
                raise
        finally:
            self._met = True
        return await self._send(method, path, body)

    def _unconnected(self) -> ServerError:
        """The error of a server that leaves a connection without an answer."""
        seconds = min(_CONNECT_S, self.settings.timeout_s)
        way = ", and should the URL begin with http://?" if self.url.startswith("https:") else "?"
        return ServerError(f"{self.who}: no connection within {seconds:g} s; is a server running there{way}")

    def _refused(self, response: Any, path: str) -> HarnessError:
        """The error that a status stands for, in words."""
        status, said = int(response.status_code), self.shown(response)
        if status in (401, 403):
            return UsageError(f"{self.who}: refuses the key in {KEY_VARIABLE} ({status}): {said}")
        if status in (404, 405, 501):
            way = "" if self.url.rstrip("/").endswith("/v1") else "; should the URL end in /v1?"
            return NoRoute(f"{self.who}: has no {path} ({status}): {said}{way}")
        if status in (400, 413, 422):
            return RefusedRequest(f"{self.who}: refuses the request ({status}): {said}")
        if 300 <= status < 400:
            target = self.hide(str(response.headers.get("location", "?")))
            return UsageError(f"{self.who}: redirects to {target} ({status}); name that URL if it is the right one")
        if status == 429 and "insufficient_quota" in response.text:
            return UsageError(f"{self.who}: the quota is used up ({status}): {said}")
        tries = retries_of(response) + 1
        later = f" (Retry-After: {after[:40]})" if (after := self.hide(response.headers.get("retry-after", ""))) else ""
        return ServerError(f"{self.who}: {status} after {tries} tr{'y' if tries == 1 else 'ies'}: {said}{later}")

    def _unreachable(self, error: BaseException) -> HarnessError:
        causes = list(_causes(error))
        said = self.hide(str(causes[-1]) or type(causes[-1]).__name__)[:_LONGEST_MESSAGE]
        if any(isinstance(one, ssl.SSLError) for one in causes) or "certificate" in said.casefold():
            return UsageError(
                f"{self.who}: its certificate or TLS fails: {said}; a private authority's file goes into SSL_CERT_FILE"
            )
        if any(_is_of_the_reply(one) for one in causes):
            return ServerError(f"{self.who}: its reply broke off, or is no HTTP: {said}")
        return ServerError(f"{self.who}: cannot be reached: {said}; is a server running there?")

    @property
    def who(self) -> str:
        """Model and server, as errors name them."""
        return f"openai:{self.address.model} at {self.url}"

    def shown(self, response: Any) -> str:
        """What a response says, in one short line without the key."""
        text = self.hide(response.text)
        with contextlib.suppress(ValueError):
            text = message_of(json.loads(text))
        return " ".join(text.split())[:_LONGEST_MESSAGE] or "nothing"


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _cancel_others() -> None:
    current = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not current]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def _without_connection(error: BaseException) -> bool:
    import httpx2

    return any(isinstance(one, httpx2.ConnectTimeout) for one in _causes(error))


def _is_of_the_reply(error: BaseException) -> bool:
    """Whether the connection was made, and what came over it is no whole reply."""
    import httpx2

    return isinstance(error, httpx2.ProtocolError | httpx2.ReadError)


def retries_of(response: Any) -> int:
    """How often the official client had sent the request before."""
    return int(response.request.headers.get("x-stainless-retry-count", 0))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def message_of(content: object) -> str:
    """What an error body says, whichever of the usual forms it has."""
    found = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(found, dict):
        found = found.get("message") or found.get("detail") or found
    return found if isinstance(found, str) else json.dumps(found)
