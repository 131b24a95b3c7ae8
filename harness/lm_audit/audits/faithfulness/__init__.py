"""Faithfulness: which tokens made the model say this, and is that explanation true?

Names are imported on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.shared.lazy import lazy

if TYPE_CHECKING:
    from lm_audit.audits.faithfulness.attribution import Attribution
    from lm_audit.audits.faithfulness.audit import method_scores
    from lm_audit.audits.faithfulness.deletion.curves import DeletionCurve, DeletionTest, deletion_curve
    from lm_audit.audits.faithfulness.deletion.metrics import (
        FaithfulnessScores,
        coverage,
        faithfulness_scores,
        normalised_score,
        rank_correlation,
        recovery,
    )
    from lm_audit.audits.faithfulness.methods.explain import Explainer, attribute
    from lm_audit.audits.faithfulness.methods.method_options import (
        METHODS,
        OPTIONS,
        AblationOptions,
        AttnLrpOptions,
        FlashTraceOptions,
        FtAttnLrpOptions,
        FtIfrOptions,
        IfrOptions,
        IfrSpanOptions,
        InputXGradientOptions,
        IntegratedGradientsOptions,
        LeaveOneOutOptions,
        MethodOptions,
        NoOptions,
    )
    from lm_audit.audits.faithfulness.passage.tokens import Passage, encode_passage
    from lm_audit.audits.faithfulness.passage.user_samples import read_samples
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = [
    "METHODS",
    "OPTIONS",
    "AblationOptions",
    "AttnLrpOptions",
    "Attribution",
    "DeletionCurve",
    "DeletionTest",
    "Explainer",
    "FaithfulnessScores",
    "FlashTraceOptions",
    "FtAttnLrpOptions",
    "FtIfrOptions",
    "IfrOptions",
    "IfrSpanOptions",
    "InputXGradientOptions",
    "IntegratedGradientsOptions",
    "LeaveOneOutOptions",
    "MethodOptions",
    "NoOptions",
    "Passage",
    "attribute",
    "coverage",
    "deletion_curve",
    "encode_passage",
    "faithfulness_scores",
    "method_scores",
    "normalised_score",
    "rank_correlation",
    "read_samples",
    "recovery",
]
