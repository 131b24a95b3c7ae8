"""Controls with a planted answer: canaries repeated often must be found, canaries that were never trained on must
not.
"""

from __future__ import annotations

import numpy as np

from lm_audit.audits.privacy.attribution import stage_frames
from lm_audit.audits.privacy.config import StagesConfig, smoke_config
from lm_audit.audits.privacy.prepare import draw_canaries, ordinary_documents
from lm_audit.evidence import Control, Evidence
from lm_audit.stats import Estimate, mann_whitney_p, roc_auc

OFTEN = 8
COLUMN = "span_mean_logprob"


def often_repeated(evidence: Evidence, stage: str = "sft") -> Evidence:
    """Positive control: members with 8 or more repetitions against the twins; the AUC's lower bound must exceed 1/2."""
    frames = stage_frames(evidence)[stage]
    often = frames.members[frames.members["repetitions"] >= OFTEN]
    return _judged(np.asarray(often[COLUMN]), np.asarray(frames.twins[COLUMN]), "positive")


def never_trained(seed: int = 0) -> Evidence:
    """Negative control: the toy model trained on the corpus without any canary; the AUC's interval must hold 1/2."""
    from lm_audit.audits.privacy.scores import score_texts
    from lm_audit.audits.privacy.stages import base_spec
    from lm_audit.audits.privacy.training.own_stages import trainable_model
    from lm_audit.audits.privacy.training.sft import train_texts
    from lm_audit.models.training import one_thread

    config = absent_config(seed)
    model = trainable_model(base_spec(config), "cpu")
    with one_thread():
        train_texts(model.module, model.tokenizer, ordinary_documents(config), config.sft, seed=seed, stage="absent")
    canaries = draw_canaries(config)
    table = score_texts(model, [c.text for c in canaries], spans=[c.secret_span for c in canaries], bos=None)
    is_member = np.array([canary.role == "member" for canary in canaries])
    values = np.asarray(table[COLUMN])
    return _judged(values[is_member], values[~is_member], "negative")


def absent_config(seed: int) -> StagesConfig:
    """A small run with enough pretended members that an interval around 1/2 says something."""
    return smoke_config(seed=seed, members=50, controls=200, repetitions=(1,))


def _judged(members: np.ndarray, twins: np.ndarray, role: str) -> Evidence:
    auc = roc_auc(members, twins)
    p = mann_whitney_p(members, twins)
    evidence = Evidence("privacy", headline="privacy.control_auc", parameters={"members": len(members)})
    evidence.metric("privacy.control_auc", auc)
    evidence.metric("privacy.control_auc.p", p)
    evidence.control = _positive(auc, p) if role == "positive" else _negative(auc)
    return evidence


def _positive(auc: Estimate, p: Estimate) -> Control:
    # Groups wholly apart have no DeLong interval; then the Mann-Whitney test speaks for the bound.
    apart = auc.value == 1.0 and p.value is not None and p.value < 0.05
    found = apart or (auc.low is not None and auc.low > 0.5)
    return Control("positive", found, "canaries repeated 8 times or more have an AUC above 1/2", _shown(auc))


def _negative(auc: Estimate) -> Control:
    silent = auc.low is not None and auc.high is not None and auc.low <= 0.5 <= auc.high
    return Control("negative", silent, "canaries that no training file held have an AUC of 1/2", _shown(auc))


def _shown(auc: Estimate) -> str:
    return f"AUC {auc.value} [{auc.low}, {auc.high}], n = {auc.n}"
