"""How steady scores are over prompts, of scores that are known beforehand: both stabilities with their intervals.

What a model has memorised it gives at once after its own prompt and hardly after another, so that the source design's
stability of the trained control is cut off at 0, and its interval with it. Here neither is.
"""

from __future__ import annotations

import numpy as np

from lm_audit.audits.privacy.audit import instability_by_canary, stability_metrics
from lm_audit.audits.privacy.controls.other_formulas import steadiness
from lm_audit.audits.privacy.evidence.metric_sources import INSTABILITY, MEMBER, stage_source
from lm_audit.audits.privacy.measure.stage_scores import StageScores
from lm_audit.audits.privacy.measure.stress import VARIANTS
from lm_audit.audits.second_opinion import misreported
from lm_audit.evidence import Evidence
from lm_audit.sources import MetricSource

CANARIES, STAGE = 20, "sft"
COLUMNS = {"stability": "span_mean_logprob", "source.stability": "source_last_token_logprob"}


def made_scores() -> StageScores:
    """Canaries that move by 5 to 40 % between prompts, by one score otherwise than by the other."""
    import pandas as pd

    rng = np.random.default_rng(11)
    rows = []
    for number in range(CANARIES):
        levels = -rng.uniform(1.0, 6.0, size=len(COLUMNS))
        spreads = rng.uniform(0.05, 0.4, size=len(COLUMNS))
        for variant in VARIANTS:
            moved = levels * (1 + spreads * rng.uniform(-1.7, 1.7, size=len(COLUMNS)))
            rows.append(
                {
                    "canary_id": f"made-{number:02d}",
                    "variant": variant,
                    **dict(zip(COLUMNS.values(), moved, strict=True)),
                }
            )
    none = pd.DataFrame()
    return StageScores(STAGE, none, none, pd.DataFrame(rows), "made")


def wrong_of_known_stability() -> list[str]:
    """What is reported of the made scores and does not follow from them."""
    scores = made_scores()
    known = {column: instability_by_canary(scores, column) or {} for column in COLUMNS.values()}
    evidence = Evidence("privacy")
    evidence.extend_rows(
        {"item": f"{STAGE}/{canary}", "stage": STAGE, **MEMBER}
        | {INSTABILITY[name]: known[column].get(canary) for name, column in COLUMNS.items()}
        for canary in dict.fromkeys(map(str, scores.stress["canary_id"]))
    )
    values, instead = {}, {}
    for name, estimate in stability_metrics(scores).items():
        full = f"privacy.{STAGE}.{name}"
        evidence.metric(full, estimate, stage_source(STAGE, name))
        values[full] = steadiness(scores, COLUMNS[name])
        instead[full] = MetricSource.mean(INSTABILITY[name], {"stage": STAGE} | MEMBER, scale=-1.0, offset=1.0)
    faults = misreported(evidence, values=values, instead=instead, counts=[(MEMBER, CANARIES)])
    bare = [name for name, estimate in evidence.metrics.items() if estimate.low is None or estimate.high is None]
    return [*faults, *(f"{name} of {CANARIES} canaries has no interval" for name in bare)]
