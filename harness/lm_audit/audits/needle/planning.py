"""What the needle audit's cases will have behind their metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.audits.design import Design, PlanOptions
from lm_audit.audits.needle.grid.cliff import samples_needed
from lm_audit.stats.covering import FEWEST_CLUSTERS


def designs(test: str, params: Mapping[str, Any], options: PlanOptions) -> Iterable[Design]:
    """Designs by test function; see :mod:`lm_audit.audits.design`. Cells of a folder have what it holds."""
    plan = params.get("plan")
    if plan is None or test not in ("test_cell", "test_grid"):
        return
    known = plan.folder is None
    cell = plan.samples if known else None
    if known and plan.config is not None and plan.config.windows == "shared":
        # The stretches are independent, not the prompts that they are in.
        yield from (_of_stretches(name, plan.samples) for name in ("needle.accuracy", "needle.accuracy.L*"))
        return
    if test == "test_cell":
        yield _accuracy("needle.accuracy", cell, headline=True)
        return
    length = plan.samples * len(plan.depths) if known else None
    yield _accuracy("needle.accuracy", None if length is None else length * len(plan.lengths), headline=True)
    yield _accuracy("needle.accuracy.L*", length)
    threshold = options.option("needle_threshold")
    needed = samples_needed(threshold)
    never = None
    if length is not None and length < needed:
        never = f"{length} samples a length cannot show {threshold:g}: {needed}, all answered, are needed"
    yield Design(
        "needle.cliff", "bound", length, "samples a length", unit="tokens", fewest=1, never=never, headline=True
    )


def _of_stretches(metric: str, stretches: int) -> Design:
    return Design(metric, "share", stretches, "stretches of haystack", low=0.0, high=1.0, fewest=FEWEST_CLUSTERS,
                  headline=metric == "needle.accuracy")  # fmt: skip


def _accuracy(metric: str, samples: int | None, *, headline: bool = False) -> Design:
    return Design(metric, "share", samples, "samples", low=0.0, high=1.0, fewest=1, headline=headline)
