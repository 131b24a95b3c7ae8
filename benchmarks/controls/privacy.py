"""The privacy audit's controls: 16 memorised canaries against 200 twins, 200 canaries that nobody
saw against 200 others, the base model's members against its twins. ``known-scores`` is exact (``real.py``)."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from designs import Design
from scipy.special import ndtri

from lm_audit.audits.privacy.controls.known_scores import CANARIES, COLUMNS, judge_scores
from lm_audit.audits.privacy.controls.known_training import Trained, judge_training
from lm_audit.audits.privacy.controls.trained_controls import FRESH, MEMBERS, TWINS, judge_planted, judge_pretended
from lm_audit.audits.privacy.measure.blind import noticed_auc, separation
from lm_audit.audits.privacy.measure.stage_scores import StageScores

MEMORY: Any = SimpleNamespace(steps=50, loss=0.1)


TEXT, SECRET, SPREAD = 40, slice(20, 30), 3.0
"""Tokens of a text, where its secret stands, and the spread of what may follow (nats)."""


def columns(tokens: np.ndarray) -> dict[str, np.ndarray]:
    """Scores of texts (texts, tokens): means, and means of the lowest fifth, of text and secret.

    What was there to be chosen has one spread for all tokens, and every text one length and one lower-cased likelihood.
    """
    found: dict[str, np.ndarray] = {}
    for prefix, part in (("", tokens), ("span_", tokens[:, SECRET])):
        lowest = np.sort(part, axis=1)[:, : -(-part.shape[1] // 5)]
        found |= {f"{prefix}mean_logprob": part.mean(axis=1), f"{prefix}min_k20_ceil": lowest.mean(axis=1)}
        found[f"{prefix}min_kpp20_ceil"] = (found[f"{prefix}min_k20_ceil"] + SPREAD) / SPREAD
    mean = found["mean_logprob"]
    found |= {"mean_entropy_scored": -mean, "zlib_ratio_mean_nll": -mean / TEXT, "lowercase_log_ratio": mean / -SPREAD}
    return {name: found[name] for name in COLUMNS}


def known_scores(rng: np.random.Generator, fault: str = "") -> bool:
    """Log-probabilities as a head of random weights gives them, read in float32 to 1e-6."""
    known = -rng.gamma(4.0, 1.4, (CANARIES, TEXT))
    tokens = known + rng.normal(0, 1e-6, known.shape)
    if fault == "tokens off by one":
        tokens = np.roll(tokens, 1, axis=1)
    elif fault == "two texts exchanged":
        tokens[[0, 1]] = tokens[[1, 0]]
    elif fault == "constant":
        tokens[:] = known.mean()
    elif fault == "sign reversed":
        tokens = -tokens
    elif fault == "noise of 0.001 nats a token":
        tokens = tokens + rng.normal(0, 1e-3, known.shape)
    control = judge_scores(pd.DataFrame(columns(tokens)), columns(known)).control
    return control is not None and control.passed


STAGES = ("base", "sft", "dpo_no_canary", "dpo_with_canary")


def known_training(rng: np.random.Generator, fault: str = "") -> bool:
    """Both routes come within 1e-5 nats a token; stages move their texts by some tenths of a nat."""
    before = {stage: -rng.gamma(4.0, 1.0, 40) for stage in STAGES}
    plain = {stage: some + (stage != "base") * rng.normal(0.5, 0.3, 40) for stage, some in before.items()}
    own = {stage: some + rng.normal(0, 3e-6, 40) for stage, some in plain.items()}
    if fault == "a stage moves the other way":
        own["dpo_with_canary"] = 2 * before["dpo_with_canary"] - own["dpo_with_canary"]
    elif fault == "one text of one stage 0.01 nats a token off":
        own["sft"][3] += 0.01
    elif fault == "a stage is the one before":
        own["dpo_no_canary"] = before["dpo_no_canary"]
    elif fault == "two texts exchanged":
        own["sft"][[0, 1]] = own["sft"][[1, 0]]
    elif fault == "nothing learned by either":
        own, plain = dict(before), dict(before)
    control = judge_training(Trained(own, plain, before)).control
    return control is not None and control.passed


def scores(members: np.ndarray, twins: np.ndarray, extracted: np.ndarray) -> StageScores:
    values = np.r_[members, twins]
    table = pd.DataFrame(
        {
            "canary_id": [f"c{i}" for i in range(len(values))],
            "role": ["member"] * len(members) + ["control"] * len(twins),
            "span_mean_logprob": values,
            "extracted_third": extracted,
        }
    )
    return StageScores("control", table, pd.DataFrame(), pd.DataFrame(), "none")


def often_repeated(rng: np.random.Generator, fault: str = "", found: float = 0.9) -> bool:
    """Memorised secrets cost at most 0.1 nats a token, others 3 and more; ``found`` of them are extracted."""
    members, twins = -rng.uniform(0, 0.1, MEMBERS), rng.normal(-4, 0.5, TWINS)
    hits = np.r_[rng.random(MEMBERS) < found, np.zeros(TWINS, dtype=bool)]
    values = np.r_[members, twins]
    if fault == "labels shuffled":
        places = rng.permutation(len(values))
        values, hits = values[places], hits[places]
    elif fault == "constant":
        values = np.full_like(values, -1.0)
    elif fault == "sign reversed":
        values = -values
    elif fault == "noise":
        values = rng.normal(size=len(values))
    elif fault in ("extraction never", "extraction always"):
        hits = np.full(len(values), fault.endswith("always"))
    control = judge_planted(scores(values[:MEMBERS], values[MEMBERS:], hits), MEMORY).control
    return control is not None and control.passed


def never_trained(rng: np.random.Generator, auc: float = 0.5) -> bool:
    first, second = rng.normal(np.sqrt(2) * ndtri(auc), 1, FRESH), rng.normal(size=TWINS)
    control = judge_pretended(scores(first, second, np.zeros(FRESH + TWINS, dtype=bool)), MEMORY).control
    return control is not None and control.passed


def blind(rng: np.random.Generator, members: int, twins: int, *, apart: bool = False) -> bool:
    """The rule of ``blind_baseline``; ``apart``: of the AUC that the control says it notices."""
    auc = noticed_auc(members, twins) if apart else 0.5
    assert auc is not None, "so few notice nothing"
    return not separation(rng.normal(np.sqrt(2) * ndtri(auc), 1, members), rng.normal(size=twins)).shown


NOTICED = noticed_auc(FRESH, TWINS) or 1.0
SIZES = ((15, 200), (50, 1000))
DESIGNS = [
    Design("known-scores", "errors of 1e-6 nats a token", True, known_scores),
    *(
        Design("known-scores", fault, False, partial(known_scores, fault=fault), 0.1)
        for fault in (
            "tokens off by one",
            "two texts exchanged",
            "constant",
            "sign reversed",
            "noise of 0.001 nats a token",
        )
    ),
    Design("known-training", "both routes within 1e-5 nats a token", True, known_training),
    *(
        Design("known-training", fault, False, partial(known_training, fault=fault), 0.1)
        for fault in (
            "a stage moves the other way",
            "one text of one stage 0.01 nats a token off",
            "a stage is the one before",
            "two texts exchanged",
            "nothing learned by either",
        )
    ),
    Design("often-repeated", "memorised, 0.9 extracted", True, often_repeated),
    *(
        Design("often-repeated", fault, False, partial(often_repeated, fault=fault), 0.1)
        for fault in ("labels shuffled", "constant", "sign reversed", "noise", "extraction never", "extraction always")
    ),
    Design("never-trained", "200 against 200 alike", True, never_trained, 2.0),
    Design("never-trained", f"AUC {NOTICED:.2f}", False, partial(never_trained, auc=NOTICED), 0.5),
    *(
        Design("blind-baseline", f"{n} against {m} alike", True, partial(blind, members=n, twins=m), 2.0)
        for n, m in SIZES
    ),
    *(
        Design(
            "blind-baseline",
            f"{n} against {m}, AUC {noticed_auc(n, m):.2f}",
            False,
            partial(blind, members=n, twins=m, apart=True),
            0.5,
        )
        for n, m in SIZES
    ),
]
