"""Finds the fastest way of going through a model that gives what the model's own forward gives.

A small random tree of token ids is scored every way and one sequence at a time. Half precision blurs the comparison,
so there the right tree must be far closer to the truth than trees with wrong positions or without a mask: a model that
ignores either cannot pass.
"""

from __future__ import annotations

import numpy as np
import torch

from lm_audit.models.context import uniform_length
from lm_audit.models.scoring.body import Fault
from lm_audit.models.scoring.limits import TRIED_WINDOW, Limits
from lm_audit.models.scoring.packs.tree import Rows, sorted_rows
from lm_audit.models.scoring.requests import Encoded
from lm_audit.models.scoring.runner import Job, NonFinite, Output, Runner, Way

_TOLERANCE = 2e-4  # nats; float32 computed in another order stays below
_SHARPNESS = 3.0  # so many times closer to the truth than a wrong tree
_LENGTH = 41  # tokens of the longest sequence of a model without an attention window


class Unusable(Exception):
    """The model's own forward answers with NaN or Inf for the check's tokens, so that nothing can be compared."""


def fastest_way(runner: Runner, vocabulary: int) -> Way:
    """The fastest way that agrees with one sequence at a time. Raises Unusable where there is no truth."""
    reach = runner.reach
    longest = max(4, reach + 1) if reach is not None and reach <= TRIED_WINDOW else _LENGTH
    turn = uniform_length(runner.module.config)
    longest = longest if turn is None else max(4, min(longest, turn + 1))
    # One pass of two packs: sequences that fork beside one that shares nothing, with masks and padding.
    together = Limits(2 * longest, 2 * longest, 8 * longest, 64, carry=0)
    # One sequence, forks read from its cache (two of them in one pass), and a sequence by itself.
    handed_on = Limits(longest, longest, longest, 64, carry=2)
    check = _Check(runner, _random_tree(vocabulary, longest), together)
    by_kernel = runner.has_kernels and runner.module.dtype not in (torch.float32, torch.float64)
    if by_kernel and all(check.agrees(Way.TREE_BY_KERNEL, limits) for limits in (together, handed_on)):
        return Way.TREE_BY_KERNEL
    if not check.agrees(Way.TREE, together):
        return Way.PADDED if check.agrees(Way.PADDED, together) else Way.ALONE
    return Way.TREE_AND_CACHE if check.agrees(Way.TREE_AND_CACHE, handed_on) else Way.TREE


def _random_tree(vocabulary: int, longest: int) -> list[Encoded]:
    """Five sequences: three forks of one, far apart and long enough that wrong positions are far off, and a stranger.

    Two forks leave at the same place, so that a pass behind cached keys has branches too.
    """
    rng = np.random.default_rng(20240229)
    sizes = (longest, longest // 3, longest // 2, longest * 3 // 4, longest // 3)
    trunk, twig, branch, other, second = (rng.integers(0, vocabulary, n) for n in sizes)
    trunk[0], other[0] = vocabulary // 3, vocabulary // 2
    half, quarter = trunk[: longest // 2], trunk[: longest // 4]
    forks = (np.concatenate([half, twig]), np.concatenate([half, second]), np.concatenate([quarter, branch]))
    return [Encoded(ids.astype(np.int64), 1, False) for ids in (trunk, *forks, other)]


class _Check:
    def __init__(self, runner: Runner, encoded: list[Encoded], limits: Limits):
        self._runner = runner
        self._encoded = encoded
        self._rows = sorted_rows(self._encoded)
        lengths = [len(item.ids) - 1 for item in self._encoded]
        self._offsets = np.cumsum([0, *lengths]).tolist()
        self._truth = self._scores(Way.ALONE, limits, self._rows)

    def agrees(self, way: Way, limits: Limits) -> bool:
        rows = self._rows if way is not Way.PADDED else self._rows.without_prefixes()
        try:
            error = np.abs(self._scores(way, limits, rows) - self._truth)
            if error.max() <= _TOLERANCE:
                return True
            if self._runner.module.dtype in (torch.float32, torch.float64):
                return False
            return self._clearly_right(float(np.sqrt((error**2).mean())), way, limits, rows)
        except Exception:  # whatever a model does with arguments that it was not written for
            return False

    def _clearly_right(self, error: float, way: Way, limits: Limits, rows: Rows) -> bool:
        if way is Way.PADDED:
            return error <= 0.1
        wrongs = []
        for fault in Fault:
            with self._runner.faulty(fault):
                wrongs.append(self._scores(way, limits, rows) - self._truth)
        return all(error * _SHARPNESS <= float(np.sqrt((wrong**2).mean())) for wrong in wrongs)

    def _scores(self, way: Way, limits: Limits, rows: Rows) -> np.ndarray:
        output = Output.empty(self._offsets[-1], stats=False)
        kept, self._runner.limits = self._runner.limits, limits
        try:
            self._runner.run(rows, Job(self._encoded, self._offsets, output, lambda requests, tokens: None), way)
        except NonFinite as error:
            if way is Way.ALONE:
                raise Unusable from error
            raise
        finally:
            self._runner.limits = kept
        return output.logprob
