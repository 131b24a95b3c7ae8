"""The arrays of one pack: tokens, depths, where each node's subtree ends, and which nodes predict which targets.

Nodes stand in preorder, so that all that lies below a node follows it without a gap. One number a key, where its
subtree ends, then says who sees it, in two comparisons; a table of ancestors would have nodes x nodes entries, and a
kernel could not pass over whole blocks of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm_audit.models.scoring.packs.packing import Pack
from lm_audit.models.scoring.packs.tree import Rows
from lm_audit.models.scoring.requests import Encoded

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """One pack as the model reads it; keys are the ``past`` cached tokens followed by the pack's nodes, in preorder.

    ``ids``, ``depth`` [nodes]: token and position of each node. ``end`` [past + nodes]: the first node that is no
    longer below key k, so that node q sees key k where ``k <= past + q`` and ``q < end[k]``. ``keep``: keys on the path
    that is handed to the next pack. ``cell_key``, ``cell_target``, ``cell_out`` [cells]: the key after which a target
    token is predicted, the token, and where its score goes. ``requests``: the distinct requests that end here.
    """

    ids: Ints
    depth: Ints
    end: Ints
    past: int
    keep: Ints
    cell_key: Ints
    cell_target: Ints
    cell_out: Ints
    requests: list[int]

    @property
    def is_path(self) -> bool:
        """Whether the pack is one sequence without branches, for which plain causal attention is the same."""
        return self.past == 0 and bool((self.end == len(self.ids)).all())


def lay_out(rows: Rows, pack: Pack, encoded: Sequence[Encoded], offsets: Sequence[int]) -> Layout:
    """The arrays of ``pack``; ``offsets[r]`` is where the scores of distinct request r begin."""
    past, nodes = pack.past, pack.nodes
    ids, depth = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    end = np.full(past + nodes, nodes, dtype=np.int64)
    # Of the row at hand: the key of its token at each depth. Rows are sorted, so that only the end of it changes.
    path = np.empty(max(len(rows.ids[i]) for i in range(pack.first, pack.last)), dtype=np.int64)
    path[:past] = np.arange(past)
    cells: list[tuple[Ints, Ints, Ints]] = []
    requests: list[int] = []
    count, length = 0, past
    for i in range(pack.first, pack.last):
        row = rows.ids[i]
        shared = past if i == pack.first else rows.lcp[i]
        # What the row before had below the fork is left for good: in preorder nothing later lies below it.
        end[path[shared:length]] = count
        length, new = len(row), len(row) - shared
        path[shared:length] = np.arange(past + count, past + count + new)
        ids[count : count + new] = row[shared:]
        depth[count : count + new] = np.arange(shared, length)
        count += new
        for r in rows.requests[i]:
            cells.append(_cells(encoded[r], path, offsets[r]))
            requests.append(r)
    keys, targets, outs = (np.concatenate(parts) for parts in zip(*cells, strict=True))
    return Layout(ids, depth, end, past, path[: pack.keep].copy(), keys, targets, outs, requests)


def _cells(item: Encoded, path: Ints, offset: int) -> tuple[Ints, Ints, Ints]:
    first, last = item.first_scored, len(item.ids)  # A token is predicted after the one before it.
    return path[first - 1 : last - 1].copy(), item.ids[first:], np.arange(offset, offset + last - first)
