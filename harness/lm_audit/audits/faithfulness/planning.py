"""What the faithfulness audit's cases will have behind their metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.audits.design import Design, PlanOptions


def designs(test: str, params: Mapping[str, Any], options: PlanOptions) -> Iterable[Design]:
    """Designs by test function; see :mod:`lm_audit.audits.design`. Degenerate samples count for nothing."""
    if "samples" not in params or "method" not in params:
        return
    samples = len(params["samples"])
    for metric in ("faithfulness.mas", "faithfulness.rise", "faithfulness.recovery"):
        yield Design(metric, "mean", samples, "samples", low=0.0, high=1.0, headline=metric.endswith("mas"))
    yield Design("faithfulness.degenerate_share", "share", samples, "samples", low=0.0, high=1.0, fewest=1)
