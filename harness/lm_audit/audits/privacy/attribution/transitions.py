"""Attribution: which transition changed which metric, by how much, and whether that is more than noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.privacy.attribution.changes import PRIMARY, Frames, Resampling, transition_rows
from lm_audit.audits.privacy.measure.source_columns import GROUPED
from lm_audit.audits.privacy.stages.stage_names import PRIMARY_TRANSITION, STAGES, TRANSITIONS
from lm_audit.errors import DataError
from lm_audit.stats import holm

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.evidence import Evidence

ALPHA = 0.05
CONSISTENCY_RULE = 0.7
"""Share of non-tied canaries (or seeds) that must move in one direction; reported with the exact sign test."""

PER_ROW_COLUMNS = ("transition", "metric", "kind", "before", "after", "delta", "low", "high")


def attribute_leak(evidence: Evidence, *, lenient: bool = False, n_resamples: int = 1999) -> pd.DataFrame:
    """One row a transition and metric, from the rows of a privacy evidence; the primary figure is marked.

    ``delta`` is the members' value after minus before in the metric's unit, ``low``/``high`` its 95% interval (for the
    primary figure: members' change minus twins' change, with those two as ``before`` and ``after``).
    ``against_twins`` with ``against_low``/``against_high`` is the members' change minus the twins', by which the row is
    judged: ``effect`` (Cohen's d of both groups' changes), ``p`` (bootstrap-t) and ``decision`` belong to it. Where
    twins have no value (``judged`` false) the decision says "rises" or "falls" and nothing of leakage; the source's
    comparisons with ordinary text have no test and no decision. ``source_d`` is the source design's formula, ``p_holm``
    adjusts over the secondary metrics of the transition, ``consistent`` is the 70% rule. Raises ``DataError`` for a
    missing stage unless ``lenient``, which leaves out its transitions.
    """
    import pandas as pd

    frames = stage_frames(evidence)
    missing = [stage for stage in STAGES if stage not in frames]
    if missing and not lenient:
        raise DataError(f"stages {', '.join(missing)} are not in the evidence; audit them, or use the lenient mode")
    resampling = Resampling(int(evidence.parameters.get("seed", 0)), n_resamples)
    rows: list[dict[str, Any]] = []
    for name, (before, after) in TRANSITIONS.items():
        if before in frames and after in frames:
            rows += _finished(transition_rows(name, frames[before], frames[after], resampling))
    return pd.DataFrame(rows)


def stage_frames(evidence: Evidence) -> dict[str, Frames]:
    """The evidence's rows as tables by stage and role."""
    import pandas as pd

    table = pd.DataFrame(evidence.rows)
    if not len(table):
        return {}
    return {str(stage): _frames(group) for stage, group in table.groupby("stage", sort=False)}


def _frames(group: pd.DataFrame) -> Frames:
    def of(role: str) -> pd.DataFrame:
        return group[group["role"] == role].reset_index(drop=True)

    return Frames(of("member"), of("control"), of("document"))


def _finished(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add Holm-adjusted p-values over the secondary metrics, the 70% rule, and the decision in words."""
    secondary = [row for row in rows if row["metric"] != PRIMARY and row["p"] is not None]
    for row, adjusted in zip(secondary, holm([row["p"] for row in secondary]), strict=True):
        row["p_holm"] = adjusted
    for row in rows:
        row["primary"] = row["metric"] == PRIMARY and row["transition"] == PRIMARY_TRANSITION
        row.setdefault("p_holm", row["p"] if row["metric"] == PRIMARY else None)
        share = row.get("consistency")
        row["consistent"] = None if share is None else share >= CONSISTENCY_RULE
        row["decision"] = _words(row)
    return rows


def _words(row: dict[str, Any]) -> str:
    if row["metric"] in GROUPED:
        return "not decided: ordinary text is no twin"
    if row["delta"] is None or row["significant"] is None or row["p_holm"] is None:
        return "not estimable"
    if not row["significant"] or row["p_holm"] >= ALPHA:
        return "no change shown"
    if not row["judged"]:
        return f"{'rises' if row['delta'] > 0 else 'falls'}; no comparison with twins"
    strength = (
        "" if row["practical"] is None else (f"{row['category']} effect, " if row["practical"] else "negligible, ")
    )
    return strength + ("leaks more" if row["more_risk"] else "leaks less")


def identical_variants(evidence: Evidence) -> bool:
    """Whether stages 2a and 2b have the same members' scores to the bit: then one of them was not trained or not
    loaded.
    """
    frames = stage_frames(evidence)
    pair = [frames.get(stage) for stage in ("dpo_no_canary", "dpo_with_canary")]
    if pair[0] is None or pair[1] is None:
        return False
    a, b = (np.asarray(frame.members["mean_logprob"]) for frame in pair if frame is not None)
    return len(a) == len(b) and bool((a == b).all())


def shares(deltas: dict[str, float], interval_excludes_zero: bool) -> dict[str, float] | None:
    """Each transition's share of the total change; None unless all have one sign and the total's interval excludes 0.

    Without that rule shares of opposite changes run to hundreds of percent.
    """
    values = list(deltas.values())
    total = sum(values)
    one_sign = all(v > 0 for v in values) or all(v < 0 for v in values)
    if not interval_excludes_zero or not one_sign or total == 0:
        return None
    return {name: value / total for name, value in deltas.items()}
