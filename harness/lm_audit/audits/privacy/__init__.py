"""Privacy audit: planted canaries, four training stages, and which stage leaked.

Public names (loaded on first use, so that collection imports no torch): see ``__all__``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.shared.former_names import with_former
from lm_audit.shared.lazy import lazy

if TYPE_CHECKING:
    from lm_audit.audits.privacy.attribution.transitions import attribute_leak
    from lm_audit.audits.privacy.audit import audit_stages
    from lm_audit.audits.privacy.data.canaries import Canary, flip_canaries, generate_canaries, plant_canaries
    from lm_audit.audits.privacy.data.corpus import build_corpus
    from lm_audit.audits.privacy.data.insertion import canary_ratio, check_ratio, insertion_positions
    from lm_audit.audits.privacy.data.manifest import Manifest, read_manifest, write_manifest
    from lm_audit.audits.privacy.data.preferences import build_preferences
    from lm_audit.audits.privacy.measure.extract import extraction
    from lm_audit.audits.privacy.measure.membership_scored import MemberText, scored_membership
    from lm_audit.audits.privacy.measure.scores import score_texts
    from lm_audit.audits.privacy.stages.config import StagesConfig
    from lm_audit.audits.privacy.stages.four_stages import run_stages
else:
    __getattr__, __dir__ = lazy(__name__, __file__)
    __getattr__ = with_former(__name__, __getattr__, {"attribute": "attribute_leak"})

__all__ = [
    "Canary",
    "Manifest",
    "MemberText",
    "StagesConfig",
    "attribute_leak",
    "audit_stages",
    "build_corpus",
    "build_preferences",
    "canary_ratio",
    "check_ratio",
    "extraction",
    "flip_canaries",
    "generate_canaries",
    "insertion_positions",
    "plant_canaries",
    "read_manifest",
    "run_stages",
    "score_texts",
    "scored_membership",
    "write_manifest",
]
