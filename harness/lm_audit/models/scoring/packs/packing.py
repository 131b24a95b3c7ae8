"""Cuts the tree into packs: runs of neighbouring rows whose distinct nodes are computed in one sequence of a batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lm_audit.models.scoring.limits import Limits
from lm_audit.models.scoring.packs.tree import Rows

# A cut is cheap where what it repeats is less than this part of the pack; attention to a larger pack costs as much.
_WORTH = 16


@dataclass(frozen=True, slots=True)
class Pack:
    """Rows ``first`` to ``last`` (exclusive); ``past`` leading tokens of the first row come from the pack before it.

    ``keep`` tokens of the last row's path are handed on to the next pack. ``nodes`` are the tokens to compute.
    """

    first: int
    last: int
    past: int
    keep: int
    nodes: int

    @property
    def chained(self) -> bool:
        return self.past > 0 or self.keep > 0


def plan(rows: Rows, limits: Limits, span: int | None = None) -> list[Pack]:
    """Packs that cover the rows in order.

    ``span`` bounds cached tokens and nodes of a pack together: beyond it an attention window that goes by the index in
    the pack would cut off ancestors.

    A pack grows to ``limits.soft`` nodes; from there on it ends at the first place where starting afresh repeats less
    than a sixteenth of it, and at ``limits.hard`` nodes at the cheapest place of its second half.
    """
    lengths, packs, first, past = rows.lengths, list[Pack](), 0, 0
    while first < len(lengths):
        last, nodes = _end_of_pack(lengths, rows.lcp, first, past, limits, span)
        shared = rows.lcp[last] if last < len(lengths) else 0
        keep = shared if 0 < limits.carry <= shared else 0
        packs.append(Pack(first, last, past, keep, nodes))
        first, past = last, keep
    return packs


def _end_of_pack(
    lengths: Sequence[int], lcp: Sequence[int], first: int, past: int, limits: Limits, span: int | None
) -> tuple[int, int]:
    """The row at which the pack that begins with row ``first`` ends, and its number of nodes."""
    hard = limits.hard if span is None else max(1, min(limits.hard, span - past))
    nodes, row, goal = lengths[first] - past, first + 1, min(limits.soft, hard)
    best: tuple[int, int, int] | None = None  # shared tokens, row and nodes of the cheapest cut in the second half
    while row < len(lengths):
        shared, new = lcp[row], lengths[row] - lcp[row]
        # Not in the first half: a cut that repeats nothing is no gain where it leaves passes of a few tokens.
        if 2 * nodes >= goal and (best is None or shared <= best[0]):
            best = (shared, row, nodes)
        if nodes + new <= goal:
            nodes, row = nodes + new, row + 1
            continue
        cut = best or (shared, row, nodes)
        if goal >= hard or cut[0] * _WORTH <= cut[2]:
            return cut[1], cut[2]
        goal, best = min(hard, goal + limits.soft), None
    return row, nodes


def one_row_packs(rows: Rows) -> list[Pack]:
    """Every row for itself, for models that cannot read a tree."""
    return [Pack(i, i + 1, 0, 0, n) for i, n in enumerate(rows.lengths)]


def batches(packs: Sequence[Pack], tokens: int) -> Iterator[list[Pack]]:
    """Packs that go through the model together: independent ones by size, those that hand on a cache one by one."""
    for pack in packs:
        if pack.chained:
            yield [pack]
    single = sorted((p for p in packs if not p.chained), key=lambda p: -p.nodes)
    # Equal passes a little above the budget, rather than a last pass of a few tokens that costs nearly a whole one.
    total = sum(pack.nodes for pack in single)
    room = 1.1 * total / max(1, math.ceil(total / (1.25 * tokens)))
    batch: list[Pack] = []
    for pack in single:
        if batch and (len(batch) + 1) * batch[0].nodes > room:
            yield batch
            batch = []
        batch.append(pack)
    if batch:
        yield batch
