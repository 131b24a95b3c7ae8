"""Draws of resampled indices, in bounded memory, and statistics that take many resamples at once."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lm_audit.errors import UsageError
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import Array, Integers

BATCH_INDICES = 2**21
"""Indices held at a time; the stream of a generator does not depend on how it is cut into batches."""

Statistic = str | Callable[..., Any]
"""A name or a callable of the sample(s); one with an ``axis`` keyword gets many resamples a call, along ``axis=-1``."""


def index_batches(
    rng: np.random.Generator, n: int, n_resamples: int, *, width: int | None = None
) -> Iterator[Integers]:
    """Arrays of shape (batch, n) with indices below n, drawn as ``rng.integers(0, n, (n_resamples, n))`` draws them."""
    check_resamples(n_resamples)
    batch = max(1, BATCH_INDICES // max(n, width or n))
    for start in range(0, n_resamples, batch):
        yield rng.integers(0, n, (min(batch, n_resamples - start), n))


def check_resamples(n_resamples: int) -> None:
    """``UsageError`` where no resample is asked for."""
    if n_resamples < 1:
        raise UsageError(f"n_resamples is {n_resamples}, at least 1 is needed (9999 is usual)")


def paired_batches(
    seed: int | np.random.Generator, first: int, second: int, n_resamples: int, *, width: int = 1
) -> Iterator[tuple[Integers, Integers]]:
    """Index batches of two samples: one generator, all draws of the first before those of the second.

    ``width`` is how many numbers the caller holds for each resample, where that is more than the samples have.
    """
    rng = np.random.default_rng(seed)
    ahead = copy.deepcopy(rng)
    width = max(first, second, width)
    for _ in index_batches(ahead, first, n_resamples, width=width):
        pass
    pairs = zip(
        index_batches(rng, first, n_resamples, width=width),
        index_batches(ahead, second, n_resamples, width=width),
        strict=True,
    )
    yield from pairs


def counts_of(indices: Integers, n: int) -> Array:
    """How often each of n elements was drawn: shape (batch, n) from index rows of any length."""
    offset = indices + n * np.arange(len(indices))[:, None]
    return np.bincount(offset.ravel(), minlength=n * len(indices)).reshape(len(indices), n).astype(np.float64)


def as_float(answer: Any) -> float:
    """A statistic's answer as a float; NaN for None and for an Estimate without a value."""
    if isinstance(answer, Estimate):
        answer = answer.value
    return np.nan if answer is None else float(answer)


def takes_axis(statistic: Callable[..., Any]) -> bool:
    """Whether a callable has the keyword ``axis`` and so can take all resamples in one call."""
    try:
        return "axis" in inspect.signature(statistic).parameters
    except (TypeError, ValueError):
        return False


def evaluate(statistic: Callable[..., Any], *samples: Array) -> Array:
    """The statistic of each row: samples of shape (batch, n), the answer (batch,)."""
    if takes_axis(statistic):
        return np.asarray(statistic(*samples, axis=-1), dtype=np.float64)
    return np.array([as_float(statistic(*rows)) for rows in zip(*samples, strict=True)], dtype=np.float64)


def leave_one_out(statistic: Callable[[Array], Any], sample: Array) -> Array:
    """Jackknife values of a statistic of one sample; as many calls as the sample has elements."""
    return np.array([as_float(statistic(np.delete(sample, i, axis=0))) for i in range(len(sample))], dtype=np.float64)
