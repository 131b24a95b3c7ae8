"""Statistics of the privacy audit that metric sources name; each takes the rows of its metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.stats import Estimate, one_run_epsilon

_DESIGN_SIDES = ("member", "document")
Rows = Sequence[Mapping[str, Any]]


def epsilon_of_scores(values: NDArray[np.float64], included: NDArray[np.bool_], delta: float = 0.0) -> Estimate:
    """A lower bound on epsilon: the highest and the lowest quarter of the scores are guessed to be in and out.

    ``values`` [canaries]: higher is more member-like; ``included`` [canaries]. Which canaries are guessed hangs on the
    scores alone: a group of equal scores that does not fit into its quarter as a whole is not guessed, so that the
    order of the rows decides nothing.
    """
    quarter, ordered = len(values) // 4, np.sort(values)
    top = len(values) - np.searchsorted(ordered, values, "left") <= quarter
    bottom = np.searchsorted(ordered, values, "right") <= quarter
    if not (top | bottom).any():
        reason = f"too many of the {len(values)} scores are equal: no canary stands out to be guessed"
        fields: dict[str, Any] = {"method": "one-run audit", "unit": "epsilon", "better": "lower"}
        return Estimate.not_estimable(reason, n=len(values), **fields)
    right = int(included[top].sum() + (~included[bottom]).sum())
    return one_run_epsilon(len(values), int(top.sum() + bottom.sum()), right, delta)


def _epsilon(rows: Rows, options: Mapping[str, object]) -> float | None:
    values = np.array([row["span_mean_logprob"] for row in rows], dtype=np.float64)
    return epsilon_of_scores(values, np.array([row["role"] == "member" for row in rows])).value


def _ppl_ratio(rows: Rows, options: Mapping[str, object]) -> float | None:
    known = [row for row in rows if row["mean_logprob"] is not None]
    sides = {role: [math.exp(-row["mean_logprob"]) for row in known if row["role"] == role] for role in _DESIGN_SIDES}
    if not all(sides.values()):
        return None
    return float(np.mean(sides["member"]) / np.mean(sides["document"]))


def _direction_consistency(rows: Rows, options: Mapping[str, object]) -> float | None:
    values = [row["value"] for row in rows]
    up, down = sum(v > 0 for v in values), sum(v < 0 for v in values)
    return max(up, down) / (up + down) if up + down else None


def _stability(rows: Rows, options: Mapping[str, Any]) -> float | None:
    """1 minus the mean instability, which counts as 1 at most."""
    values = [row[options["column"]] for row in rows]
    return 1 - min(float(np.mean(values)), 1.0) if values and None not in values else None


STATISTICS: Mapping[str, Callable[[Rows, Mapping[str, Any]], float | None]] = {
    "privacy.epsilon": _epsilon,
    "privacy.ppl_ratio": _ppl_ratio,
    "privacy.direction_consistency": _direction_consistency,
    "privacy.stability": _stability,
}
