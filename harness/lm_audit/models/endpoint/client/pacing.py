"""Spreads requests out, so that their answers do not come back all at once and wait for one another.

Answers that arrive together are read in turns, and the next requests then leave together too; while they are worked on
the server has nothing to do. That this is what costs requests a second is likely, not shown (``docs/endpoints.md``).
"""

from __future__ import annotations

import asyncio

SHARE = 0.8
"""Of the mean distance between requests, the least that is kept: an even stream passes without waiting."""

MOST_S = 0.005
"""More than a request costs to read and write, even on a busy machine."""


class Pacer:
    """Lets requests go one after another: 0.8 of (duration of a request / requests in flight) apart, at most 5 ms."""

    def __init__(self, in_flight: int):
        self._in_flight = in_flight
        self._duration: float | None = None
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for this request's turn; nothing waits before the first answer has shown how long one takes."""
        now = asyncio.get_running_loop().time()
        at = max(now, self._next)
        self._next = at + self.gap
        if at > now:
            await asyncio.sleep(at - now)

    @property
    def gap(self) -> float:
        """Seconds between two requests, at least."""
        return 0.0 if self._duration is None else min(MOST_S, SHARE * self._duration / self._in_flight)

    def took(self, seconds: float) -> None:
        """An answer came after so many seconds."""
        self._duration = seconds if self._duration is None else 0.9 * self._duration + 0.1 * seconds
