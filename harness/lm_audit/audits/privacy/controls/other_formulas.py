"""What the privacy audit computes by functions of its own, once more by others: stability, epsilon, perplexities."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lm_audit.audits.privacy.measure.stage_scores import StageScores

LEVEL = 0.05
"""Error of the bound on epsilon."""


def steadiness(scores: StageScores, column: str) -> float:
    """1 less the mean, over canaries, of how far a score moves between prompts, as a share of it: from two moments."""
    found = []
    for _, table in scores.stress.groupby("canary_id"):
        values = np.asarray(table[column], dtype=np.float64)
        first, second = float(values.mean()), float((values**2).mean())
        found.append(math.sqrt(max(0.0, second - first**2)) / abs(first))
    return 1 - min(1.0, math.fsum(found) / len(found))


def perplexity(scores: StageScores, role: str) -> float:
    """Mean perplexity of the canaries of a role, or of the ordinary documents."""
    table = scores.documents if role == "document" else scores.of(role)
    found = [math.exp(-float(value)) for value in table["mean_logprob"]]
    return math.fsum(found) / len(found)


def perplexity_ratio(scores: StageScores) -> float:
    """Mean perplexity of members over that of ordinary documents."""
    return perplexity(scores, "member") / perplexity(scores, "document")


def wrongly_calibrated(before: StageScores, after: StageScores) -> list[str]:
    """Canaries whose calibrated score is not what training added to them, told by their names and not their places."""
    faults = []
    for name, column in (("span_calibrated_logprob", "span_mean_logprob"), ("calibrated_logprob", "mean_logprob")):
        if name not in after.canaries:
            faults.append(f"no canary has {name}")
            continue
        first = dict(zip(before.canaries["canary_id"], before.canaries[column], strict=True))
        rows = zip(*(after.canaries[key] for key in ("canary_id", column, name)), strict=True)
        wrong = sum(not abs(float(last) - float(first[key]) - float(told)) <= 1e-6 for key, last, told in rows)
        if wrong:
            faults.append(f"{wrong} of {len(after.canaries)} canaries have another {name} than training added")
    return faults


def wrong_epsilon(scores: StageScores) -> list[str]:
    """A bound on epsilon that is not that of as many members and twins, as if a coin had been thrown for each.

    The lower limit of the share of right guesses, which is a quantile of a Beta distribution, as log-odds: what an
    (epsilon, 0)-private training allows.
    """
    from scipy.stats import beta

    from lm_audit.audits.privacy.measure.membership import epsilon_bound
    from lm_audit.audits.privacy.measure.stage_scores import PRIMARY_SCORE

    members = scores.of("member")
    both = scores.canaries[scores.canaries["role"] == "control"].iloc[: len(members)]
    table = scores.canaries.loc[[*members.index, *both.index]]
    reported = epsilon_bound(replace(scores, canaries=table), "coins")
    values = table[PRIMARY_SCORE].to_numpy(dtype=np.float64)
    ranked = [str(table["role"].iloc[place]) for place in np.argsort(values, kind="stable")]
    quarter = len(ranked) // 4
    guesses = [*(role == "control" for role in ranked[:quarter]), *(role == "member" for role in ranked[-quarter:])]
    right, least = sum(guesses), 0.5
    if right:
        least = max(0.5, float(beta.ppf(LEVEL, right, len(guesses) - right + 1)))
    known = math.log(least / (1 - least))
    tied = len(np.unique(values)) < len(values)
    same = reported.value is not None and abs(reported.value - known) <= 1e-6
    if tied or (same and reported.low == reported.value and reported.n == len(table)):
        return []
    told = "none" if reported.value is None else f"{reported.value:.4g} of {reported.n} canaries"
    return [f"epsilon is {told}, by another formula {known:.4g} of {len(table)}"]
