"""Exchangeability of the rows: is a file likelier in its published order than with its rows shuffled?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lm_audit.audits.leakage.averages import FEWEST
from lm_audit.audits.leakage.signs import unreachable
from lm_audit.errors import ContextError, DataError, UsageError, beyond_context
from lm_audit.stats import Estimate

if TYPE_CHECKING:
    from lm_audit.models import LanguageModel


@dataclass(frozen=True)
class RowOrder:
    """The published order of rows against shuffles, shard by shard.

    ``canonical`` [shards], ``shuffled`` [shards, permutations]: log-probabilities (nats). ``rank_p`` of each shard is
    (1 + shuffles at least as likely) / (1 + permutations); ``fisher`` combines them; ``t_test`` asks whether the mean
    gain over the shards' shuffles exceeds 0 (ddof 1, one-sided); ``gain`` is that mean with its t interval.
    """

    canonical: tuple[float, ...]
    shuffled: tuple[tuple[float, ...], ...]
    rank_p: tuple[float, ...]
    fisher: Estimate
    t_test: Estimate
    gain: Estimate


def row_order_test(
    model: LanguageModel, rows: Sequence[str], *, shards: int = 10, permutations: int = 25, seed: int = 0
) -> RowOrder:
    """Compare the log-probability of every shard's rows in order with that of ``permutations`` seeded shuffles.

    Shards are runs of neighbouring rows, each read whole, rows on lines of their own; one that is longer than the model
    reads is read in windows of whole rows. Raises ``DataError`` for rows that are sorted or all alike, whose order is
    likely without memory, ``UsageError`` for fewer than two rows a shard. Source: Oren et al. 2023, arXiv 2310.17623.
    """
    _check_rows(rows, shards, permutations)
    parts = [list(part) for part in np.array_split(np.arange(len(rows)), shards)]
    rng = np.random.default_rng(seed)
    tried = [[part, *([int(i) for i in rng.permutation(part)] for _ in range(permutations))] for part in parts]
    totals = _totals(model, rows, [order for some in tried for order in some])
    table = np.array(totals).reshape(shards, permutations + 1)
    return sharded_test(table[:, 0].tolist(), table[:, 1:].tolist())


def sharded_test(canonical: Sequence[float], shuffled: Sequence[Sequence[float]]) -> RowOrder:
    """The statistics of :func:`row_order_test` from log-probabilities of [shards] and [shards, permutations]."""
    from scipy import stats

    first, others = np.asarray(canonical, dtype=np.float64), np.asarray(shuffled, dtype=np.float64)
    gains = first - others.mean(axis=1)
    rank_p = (1 + (others >= first[:, None]).sum(axis=1)) / (1 + others.shape[1])
    fisher = Estimate(
        float(stats.combine_pvalues(rank_p, method="fisher").pvalue),
        n=len(first),
        confidence=None,
        method=f"Fisher over {len(first)} shards, {others.shape[1]} permutations each",
        unit="p",
        note=unreachable(_smallest(others.shape), f"{len(first)} shards of {others.shape[1]} permutations"),
    )
    return RowOrder(
        tuple(first.tolist()),
        tuple(tuple(row) for row in others.tolist()),
        tuple(rank_p.tolist()),
        fisher,
        *_t(gains),
    )


def _smallest(shape: tuple[int, ...]) -> float:
    """Fisher's p-value where every shard is likelier than all of its shuffles."""
    from scipy import stats

    shards, permutations = shape
    return float(stats.combine_pvalues([1 / (1 + permutations)] * shards, method="fisher").pvalue)


def _t(gains: np.ndarray) -> tuple[Estimate, Estimate]:
    from scipy import stats

    n, mean = len(gains), float(gains.mean())
    spread = float(gains.std(ddof=1)) if n > 1 else 0.0
    if spread == 0:
        reason = "the gains of all shards are equal" if n > 1 else "one shard has no spread"
        test = Estimate.not_estimable(reason, n=n, confidence=None, unit="p")
        return test, Estimate(
            mean, n=n, unit="nats", better="lower", method="mean over shards", note=reason, chance=0.0
        )
    error = spread / np.sqrt(n)
    p = float(stats.t.sf(mean / error, n - 1))
    half = float(stats.t.ppf(0.975, n - 1) * error)
    test = Estimate(p, n=n, confidence=None, method="t over shards, ddof 1, one-sided", unit="p")
    found = Estimate(mean, n=n, unit="nats", better="lower", method="t interval over shards", chance=0.0)
    if n < FEWEST:
        return test, replace(found, note=f"{n} shards give no interval, {FEWEST} do")
    return test, replace(found, low=mean - half, high=mean + half)


def _check_rows(rows: Sequence[str], shards: int, permutations: int) -> None:
    if shards < 1 or permutations < 1:
        raise UsageError(f"{shards} shards and {permutations} permutations: at least one of each is needed")
    if len(rows) < 2 * shards:
        raise UsageError(f"{len(rows)} rows in {shards} shards: at least two rows a shard are needed")
    check_unsorted(rows)


def check_unsorted(rows: Sequence[str]) -> None:
    """``DataError`` where the order of the rows proves nothing."""
    reason = sorted_reason(rows)
    if reason:
        raise DataError(reason)


def sorted_reason(rows: Sequence[str]) -> str | None:
    """Why the order of the rows proves nothing: they are sorted by alphabet or length, or all alike. Else None."""
    orders: tuple[tuple[str, list[str] | list[int]], ...] = (("alphabet", list(rows)), ("length", list(map(len, rows))))
    for name, keys in orders:
        ordered: list[str] | list[int] = sorted(keys)  # type: ignore[assignment]
        if keys in (ordered, ordered[::-1]):
            what = "all alike in" if ordered[0] == ordered[-1] else "sorted by"
            return f"the rows are {what} {name}: their order is likely without memory, so it proves nothing"
    return None


def _totals(model: LanguageModel, rows: Sequence[str], orders: Sequence[Sequence[int]]) -> list[float]:
    ids = model.tokenizer([f"{row}\n\n" for row in rows], add_special_tokens=False)["input_ids"]
    window = model.context_window or 10**9
    longest = max(range(len(ids)), key=lambda i: len(ids[i]))
    if len(ids[longest]) >= window:
        reason = beyond_context("this row", len(ids[longest]) + 1, model.name, window, "shorten it or leave it out")
        raise ContextError(reason, row=longest + 1)
    pieces = [_windows(ids, order, window - 1) for order in orders]
    scores = iter(model.loglikelihood([([], piece) for some in pieces for piece in some]))
    return [sum(next(scores).total for _ in some) for some in pieces]


def _windows(ids: Sequence[Sequence[int]], order: Sequence[int], size: int) -> list[list[int]]:
    windows: list[list[int]] = [[]]
    for i in order:
        if windows[-1] and len(windows[-1]) + len(ids[i]) > size:
            windows.append([])
        windows[-1] += ids[i]
    return windows
