"""What a reply may be: so large, so long under way, and not compressed, since a small one can unpack to any size."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from lm_audit.errors import ServerError

MOST_BYTES = 256 << 20
"""Log-probabilities of a prompt of a million tokens take about as much."""

HEADERS = {"Accept-Encoding": "identity"}


def bounded(client: type[Any], most_s: float) -> type[Any]:
    """The HTTP client, with ``httpx2.ReadTimeout`` for a request that is under way for ``most_s``.

    Its own time limit is that of the next byte: a server that drips headers would keep it waiting for ever.
    """
    import httpx2

    class Bounded(client):  # type: ignore[misc]  # a class that is known when it runs
        async def send(self, request: Any, **options: Any) -> Any:
            try:
                async with asyncio.timeout(most_s):
                    return await super().send(request, **options)
            except TimeoutError:
                raise httpx2.ReadTimeout("the reply drips", request=request) from None

    return Bounded


def reply_limit(who: str, timeout_s: float) -> Callable[[Any], Awaitable[None]]:
    """A hook of the HTTP client that holds each reply to the limits while it is read.

    Raises ``ServerError`` for a reply that is compressed, though nobody asked for that, or larger than
    :data:`MOST_BYTES`; ``httpx2.ReadTimeout``, after which the request is sent again, for one that is not complete
    ``timeout_s`` after it began, however steadily it trickles.
    """
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        def __init__(self, inner: Any, request: Any):
            self._inner = inner
            self._request = request
            self._until = time.monotonic() + timeout_s
            self._size = 0

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._inner:
                self._size += len(chunk)
                if self._size > MOST_BYTES:
                    raise ServerError(f"{who}: a reply is larger than {MOST_BYTES >> 20} MiB; no answer is")
                if time.monotonic() > self._until:
                    raise httpx2.ReadTimeout("the reply trickles", request=self._request)
                yield chunk

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def hook(response: Any) -> None:
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise ServerError(f"{who}: a reply is compressed ({encoding[:20]}), which was not asked for")
        response.stream = Limited(response.stream, response.request)

    return hook
