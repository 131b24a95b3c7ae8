"""Metric sources: evidence says of each metric from which rows and by which statistic it was made.

Only the record is loaded with the package; the rest, and numpy with it, on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lm_audit.shared.lazy import lazy
from lm_audit.sources.record import MetricSource, Term

if TYPE_CHECKING:
    from lm_audit.sources.checking import undirected, unreproduced, unsourced
    from lm_audit.sources.content import content_digest
    from lm_audit.sources.functions import register_statistic
    from lm_audit.sources.recomputing import recompute
else:
    __getattr__, __dir__ = lazy(__name__, __file__)

__all__ = [
    "MetricSource",
    "Term",
    "content_digest",
    "recompute",
    "register_statistic",
    "undirected",
    "unreproduced",
    "unsourced",
]
