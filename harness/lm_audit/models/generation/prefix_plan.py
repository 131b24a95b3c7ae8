"""Which parts of prompts are read once for several rows: the prompts' prefix tree, cut where reading apart pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Ids = Sequence[int]


@dataclass(frozen=True)
class Shared:
    """Tokens ``begin`` to ``end``, which the rows (places in the list of prompts) have in common; read at ``level``."""

    level: int
    rows: tuple[int, ...]
    begin: int
    end: int


def common(one: Ids, other: Ids) -> int:
    """How many leading tokens two rows share."""
    limit = min(len(one), len(other))
    if list(one[:limit]) == list(other[:limit]):
        return limit
    return next(place for place in range(limit) if one[place] != other[place])


def shared_parts(prompts: Sequence[Ids], worth: int) -> list[Shared]:
    """What to read once, by level: a part lies behind those of lower levels. The rest of each row is its own.

    ``prompts`` are in lexicographic order. A part is read apart where that saves ``worth`` tokens or more; every row
    keeps its last token, whose logits are asked for.
    """
    beside = [common(prompts[i - 1], prompts[i]) if i else 0 for i in range(len(prompts))]
    found: list[Shared] = []
    todo = [(range(len(prompts)), 0, 0, 0)]
    while todo:
        rows, begin, floor, level = todo.pop()
        for group in _groups(rows, beside, prompts, floor):
            end = min(*(beside[i] for i in group[1:]), *(len(prompts[i]) - 1 for i in group))
            if (end - begin) * (len(group) - 1) >= worth:
                found.append(Shared(level, tuple(group), begin, end))
                todo.append((group, end, end, level + 1))
            else:
                todo.append((group, begin, end, level))
    return sorted(found, key=lambda part: (part.level, part.rows))


def _groups(rows: range, beside: Sequence[int], prompts: Sequence[Ids], floor: int) -> Iterator[range]:
    """Neighbours that share more than ``floor`` tokens, two or more, without rows that end there."""
    start = rows.start
    for place in range(rows.start, rows.stop + 1):
        ended = place < rows.stop and len(prompts[place]) <= floor + 1
        if place == rows.stop or ended or (place > start and beside[place] <= floor):
            if place - start > 1:
                yield range(start, place)
            start = place + 1 if ended else place
