"""Membership by log-probabilities alone and exposure among all secrets, of the model that is known on paper.

The scores and ranks of *known-scores*' two matrices, by the formula; and that what is reported of them follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.privacy.data.canaries import Canary, generate_canaries
from lm_audit.audits.privacy.data.manifest import Manifest
from lm_audit.audits.privacy.evidence.metric_sources import MEMBER, TWIN, stage_source
from lm_audit.audits.second_opinion import misreported
from lm_audit.evidence import Evidence

if TYPE_CHECKING:
    from lm_audit.audits.privacy.controls.bigrams import Paper

Floats = NDArray[np.float64]

MEMBERS, TWINS, TIERS = 24, 104, (2, 9)
"""As many twins as a false-positive rate of 1 % needs, and tiers of 12 members."""

SECRETS, POSITIONS, STAGE = 10, 2, "sft"
"""Secrets of digits whose last two are tried."""

TOLERANCE = 1e-4
"""Nats a token in which scores agree with the formula, and by which two candidates must lie apart to have an order."""


def wrong_of_known_members(paper: Paper, seed: int) -> list[str]:
    """What is reported of texts by their log-probabilities and is not so."""
    from lm_audit.audits.privacy.measure.membership_scored import scored_membership, texts_of

    drawn = generate_canaries(MEMBERS + TWINS, seed=seed + 1)
    canaries = [
        replace(canary, repetitions=TIERS[number % 2])
        if number < MEMBERS
        else replace(canary, role="control", repetitions=0)
        for number, canary in enumerate(drawn)
    ]
    evidence = scored_membership(paper.model, texts_of(Manifest(tuple(canaries), seed=seed)), seed=seed)
    faults = misreported(evidence, counts=[(MEMBER, MEMBERS), (TWIN, TWINS)])
    rows = {str(row["item"]): row for row in evidence.rows}
    off = [_furthest(paper, canary, rows.get(canary.id, {})) for canary in canaries]
    if not max(off) <= TOLERANCE:
        faults.append(f"log-probabilities of texts alone differ from the formula by {max(off):.3g}")
    wrong = [canary.id for canary in canaries if rows[canary.id]["role"] != canary.role]
    return [*faults, *([f"{len(wrong)} texts stand on the other side"] if wrong else [])]


def _furthest(paper: Paper, canary: Canary, row: dict[str, Any]) -> float:
    whole, lowered = paper.tokens(canary.text), paper.tokens(canary.text.lower())
    start, end = canary.secret_span
    # The white space before a secret is scored with it.
    start -= len(canary.carrier) - len(canary.carrier.rstrip())
    known = {
        "mean_logprob": float(whole.mean()),
        "secret_mean_logprob": float(whole[start:end].mean()),
        "min_k20_ceil": float(np.sort(whole)[: -(-len(whole) // 5)].mean()),
        "lowercase_log_ratio": float(whole.mean() / lowered.mean()),
    }
    found = max(abs(float(row.get(name) or math.inf) - value) for name, value in known.items())
    return found if math.isfinite(found) else math.inf


def wrong_of_known_ranks(paper: Paper, seed: int) -> list[str]:
    """What is reported of secrets' ranks among all of their form and is not so."""
    import pandas as pd

    from lm_audit.audits.privacy.measure.exact_exposure import exact_exposure
    from lm_audit.audits.privacy.measure.membership import exposure_by_tier
    from lm_audit.audits.privacy.measure.stage_scores import StageScores

    canaries = generate_canaries(SECRETS, seed=seed, family="sentence")
    exact = exact_exposure(paper.model, canaries, positions=POSITIONS)
    space = 10**POSITIONS
    faults, known = _wrong_candidates(canaries), [_ranks(paper, canary) for canary in canaries]
    for (best, worst), row in zip(known, exact.to_dict("records"), strict=True):
        if not best <= row["rank"] <= worst or row["space"] != space:
            faults.append(f"{row['canary_id']} has rank {row['rank']} of {row['space']}, on paper {best} of {space}")
    table = pd.DataFrame({"canary_id": [c.id for c in canaries], "role": "member", "repetitions": TIERS[1]})
    table = table.assign(exposure_exact=exact["exposure_exact"], exposure_cap=exact["cap"], span_mean_logprob=-1.0)
    twin = {"canary_id": "twin", "role": "control", "repetitions": 0, "span_mean_logprob": -2.0}
    none = pd.DataFrame()
    stage = StageScores(STAGE, pd.concat([table, pd.DataFrame([twin])], ignore_index=True), none, none, "made")
    short = f"exposure_exact.r{TIERS[1]}"
    name, evidence = f"privacy.{STAGE}.{short}", Evidence("privacy")
    evidence.extend_rows(
        {"item": f"{STAGE}/{row['canary_id']}", "stage": STAGE, **{str(key): value for key, value in row.items()}}
        for row in table.to_dict("records")
    )
    evidence.metric(name, exposure_by_tier(stage)[short], stage_source(STAGE, short))
    bits = [[math.log2(space / rank) for rank in ends] for ends in known]
    chance = math.fsum(math.log2(space / rank) for rank in range(1, space + 1)) / space
    faults += misreported(evidence, chances={name: chance}, limits={name: (0.0, math.log2(space))})
    value = evidence.metrics[name].value
    least, most = (math.fsum(one[end] for one in bits) / SECRETS for end in (1, 0))
    if value is None or not least - 1e-9 <= value <= most + 1e-9:
        faults.append(f"{name} is {value}, on paper {most:.6g}")
    return faults


def _wrong_candidates(canaries: Sequence[Canary]) -> list[str]:
    """Candidates that are not the canary's text with other last characters: its own first, scored from the secret on.

    Their common part moves no rank of this model, which sees one token.
    """
    from lm_audit.audits.privacy.measure.exact_exposure import candidates

    wrong = 0
    for canary in canaries:
        (start, end), (head, ends) = canary.secret_span, candidates(canary, POSITIONS)
        known = {f"{canary.text[: end - POSITIONS]}{n:0{POSITIONS}d}{canary.text[end:]}" for n in range(10**POSITIONS)}
        texts = [head + one for one in ends]
        wrong += head != canary.text[:start] or texts[0] != canary.text or set(texts) != known
    return [f"the candidates of {wrong} secrets are not all of their form"] if wrong else []


def _ranks(paper: Paper, canary: Canary) -> tuple[int, int]:
    """The best and the worst rank of a secret: two texts as likely as each other may stand either way."""
    start, end = canary.secret_span

    def likely(number: int) -> float:
        text = f"{canary.text[: end - POSITIONS]}{number:0{POSITIONS}d}{canary.text[end:]}"
        return float(paper.tokens(text)[start:].sum())

    own = likely(int(canary.secret[-POSITIONS:]))
    others = np.array([likely(n) for n in range(10**POSITIONS) if n != int(canary.secret[-POSITIONS:])])
    return 1 + int((others > own + TOLERANCE).sum()), 1 + int((others >= own - TOLERANCE).sum())
