"""Requests are spread out where their answers would come at once, and never held back below what the server gives."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lm_audit.models.endpoint.client.pacing import MOST_S, Pacer


@pytest.mark.parametrize(("in_flight", "seconds"), [(1, 0.01), (16, 0.1), (256, 0.1), (16, 30.0), (4, 0.001)])
def test_an_even_stream_passes_without_waiting(in_flight: int, seconds: float) -> None:
    pacer = Pacer(in_flight)
    assert pacer.gap == 0, "nothing waits before an answer has shown how long one takes"
    for _ in range(3):
        pacer.took(seconds)
    assert 0 < pacer.gap <= MOST_S
    assert pacer.gap < seconds / in_flight


def test_requests_that_are_ready_together_leave_one_after_another() -> None:
    async def burst() -> list[float]:
        pacer, left = Pacer(8), []
        pacer.took(0.1)

        async def one() -> None:
            await pacer.turn()
            left.append(time.monotonic())

        begun = time.monotonic()
        await asyncio.gather(*(one() for _ in range(8)))
        return [at - begun for at in left]

    # In a thread of its own: a browser's driver may have left a running loop in this one.
    with ThreadPoolExecutor(1) as pool:
        left = pool.submit(asyncio.run, burst()).result()
    assert left == sorted(left)
    assert all(at >= 0.9 * MOST_S * number - 0.002 for number, at in enumerate(left))
