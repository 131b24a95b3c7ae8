"""Audits of causal language models, written and run as pytest.

The names most used, loaded on first use so that importing the package costs nothing. Audits live in
``lm_audit.audits.<audit>``, statistics in ``lm_audit.stats``, cases and fixtures in ``lm_audit.plugin``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lm_audit.errors import DataError, GateError, HarnessError, ModelError, StoreError, UsageError
    from lm_audit.evidence import Control, Evidence, Figure
    from lm_audit.models import LanguageModel, load_model
    from lm_audit.runstore import read_run
    from lm_audit.stats import Estimate

_HOMES = {
    "errors": ("DataError", "GateError", "HarnessError", "ModelError", "StoreError", "UsageError"),
    "evidence": ("Control", "Evidence", "Figure"),
    "models": ("LanguageModel", "load_model"),
    "runstore": ("read_run",),
    "stats": ("Estimate",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
