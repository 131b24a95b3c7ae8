"""Which shard a case belongs to: a function of the ids and declared costs alone, the same on every machine.

Cases are laid on a line, model by model, models in the order of their hash; the line is cut into n stretches of equal
cost. A cut that falls near the edge of a model moves to the edge, so that a model is loaded by as few shards as balance
allows. Cases without a model are scattered between the models, where they keep cuts off the models.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby

from lm_audit.errors import UsageError
from lm_audit.plugin.audit_cases.grouping import group_of

SNAP = 0.15
"""How far a cut may move to the edge of a model, as a share of a shard: a shard holds at most 1.3 times its due."""

_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True)
class Shard:
    """The ``index``-th (from 1) of ``of`` parts of a run."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


def parse_shard(text: str) -> Shard:
    """``i/n`` with 1 <= i <= n; ``UsageError`` for anything else."""
    match = _SHARD.fullmatch(text.strip())
    shard = Shard(int(match[1]), int(match[2])) if match else Shard(0, 0)
    if not 1 <= shard.index <= shard.of:
        raise UsageError(f"--shard {text!r}: write i/n with i from 1 to n, for example --shard 2/8")
    return shard


def plan_digest(case_ids: list[str]) -> str:
    """SHA-256 of the set of all cases: shards of one run agree on it."""
    return hashlib.sha256("\n".join(sorted(case_ids)).encode("utf-8", "surrogatepass")).hexdigest()


def assign(case_ids: list[str], of: int, costs: Mapping[str, float] | None = None) -> dict[str, int]:
    """The shard, 1 to ``of``, of every case; independent of the order in which the ids come."""
    line = sorted(set(case_ids), key=_place)
    ends = list(accumulate(max(0.0, (costs or {}).get(case, 1.0)) for case in line))
    if not line or ends[-1] == 0.0:
        return {case: 1 + index * of // len(line) for index, case in enumerate(line)}
    cuts = _cuts(_edges(line, ends), ends[-1], of)
    return {
        case: 1 + _cuts_before(cuts, begin, end) for case, begin, end in zip(line, [0.0, *ends], ends, strict=False)
    }


def _place(case: str) -> tuple[str, str, str, str]:
    """Where a case lies on the line: by its model's hash, then by its own."""
    group = group_of(case)
    return (_hash(group or case), group or "", _hash(case), case)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _edges(line: list[str], ends: list[float]) -> list[float]:
    """Where one model ends and another begins; every end of a case without a model is an edge."""
    edges: list[float] = []
    numbered = zip(line, ends, strict=True)
    for _, stretch in groupby(numbered, key=lambda entry: group_of(entry[0]) or entry[0]):
        edges.append(list(stretch)[-1][1])
    return edges


def _cuts(edges: list[float], total: float, of: int) -> list[float]:
    due = total / of
    cuts = []
    for index in range(1, of):
        ideal = index * due
        nearest = min(edges, key=lambda edge: abs(edge - ideal))
        cuts.append(nearest if abs(nearest - ideal) <= SNAP * due else ideal)
    return cuts


def _cuts_before(cuts: list[float], begin: float, end: float) -> int:
    """How many cuts lie before the middle of a case."""
    middle = (begin + end) / 2
    return sum(cut <= middle for cut in cuts)
