"""Metric sources: evidence says of each metric from which rows and by which statistic it was made.

Only the record is loaded with the package; the rest, and numpy with it, on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lm_audit.sources.record import MetricSource, Term

if TYPE_CHECKING:
    from lm_audit.sources.checking import unreproduced, unsourced
    from lm_audit.sources.functions import register_statistic
    from lm_audit.sources.recomputing import recompute

_HOMES = {
    "unreproduced": "checking",
    "unsourced": "checking",
    "register_statistic": "functions",
    "recompute": "recomputing",
}
__all__ = ["MetricSource", "Term", "recompute", "register_statistic", "unreproduced", "unsourced"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
