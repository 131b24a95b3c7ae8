"""Audits of causal language models, written and run as pytest.

The names most used, loaded on first use so that importing the package costs nothing. Audits live in
``lm_audit.audits.<audit>``, statistics in ``lm_audit.stats``, cases and fixtures in ``lm_audit.plugin``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.shared.lazy import lazy

if TYPE_CHECKING:
    from lm_audit.errors import (
        DataError,
        GateError,
        HarnessError,
        ModelError,
        StoreError,
        UsageError,
    )
    from lm_audit.evidence import Control, Evidence, Figure
    from lm_audit.models import LanguageModel, load_model
    from lm_audit.runstore import read_run
    from lm_audit.stats import Estimate
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = [
    "Control",
    "DataError",
    "Estimate",
    "Evidence",
    "Figure",
    "GateError",
    "HarnessError",
    "LanguageModel",
    "ModelError",
    "StoreError",
    "UsageError",
    "load_model",
    "read_run",
]
