"""What the needle audit's cases will have behind their metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lm_audit.audits.design import Design, PlanOptions
from lm_audit.audits.needle.grid.cliff import samples_needed
from lm_audit.stats.covering import FEWEST_CLUSTERS
from lm_audit.stats.shares.clustered_share import expected_answers

if TYPE_CHECKING:
    from lm_audit.audits.needle.grid.plans import Plan


def designs(test: str, params: Mapping[str, Any], options: PlanOptions) -> Iterable[Design]:
    """Designs by test function; see :mod:`lm_audit.audits.design`. Cells of a folder have what it holds."""
    plan = params.get("plan")
    if plan is None or test not in ("test_cell", "test_grid"):
        return
    known = plan.folder is None
    cell = plan.samples if known else None
    lengths = _measurable(plan, options) if known and test == "test_grid" else plan.lengths
    if known and plan.config is not None and plan.config.windows == "shared":
        # The stretches are independent, not the prompts that they are in.
        depths = 1 if test == "test_cell" else len(plan.depths)
        each = {"needle.accuracy": depths * (1 if test == "test_cell" else len(lengths)), "needle.accuracy.L*": depths}
        yield from (_of_stretches(name, plan.samples, prompts) for name, prompts in each.items())
        return
    if test == "test_cell":
        yield _accuracy("needle.accuracy", cell, headline=True)
        return
    length = plan.samples * len(plan.depths) if known else None
    none = None if lengths else f"no length of {', '.join(map(str, plan.lengths))} fits both the task and the context"
    yield _accuracy("needle.accuracy", None if length is None else length * len(lengths), headline=True, never=none)
    yield _accuracy("needle.accuracy.L*", length)
    threshold = options.option("needle_threshold")
    needed = samples_needed(threshold)
    never = none
    if lengths and length is not None and length < needed:
        never = f"{length} samples a length cannot show {threshold:g}: {needed}, all answered, are needed"
    yield Design(
        "needle.cliff", "bound", length, "samples a length", unit="tokens", fewest=needed, never=never, headline=True,
        steps=tuple(map(float, lengths)),
    )  # fmt: skip


def _of_stretches(metric: str, stretches: int, prompts: int) -> Design:
    """``prompts``: how many hold one and the same stretch."""
    worth = expected_answers([max(1, prompts)] * stretches)
    return Design(metric, "share", stretches, "stretches of haystack", low=0.0, high=1.0, fewest=FEWEST_CLUSTERS,
                  headline=metric == "needle.accuracy", answers=worth)  # fmt: skip


def _accuracy(metric: str, samples: int | None, *, headline: bool = False, never: str | None = None) -> Design:
    return Design(metric, "share", samples, "samples", low=0.0, high=1.0, fewest=1, headline=headline, never=never)


def _measurable(plan: Plan, options: PlanOptions) -> list[int]:
    """The lengths of a grid that its case will not leave out, as far as is known without the model."""
    from lm_audit.audits.needle.grid.feasible import smallest_length, thought_room

    least = thought = 0
    if options.tokenizer is not None:
        least = smallest_length(plan, options.tokenizer)
        thought = thought_room(plan, options.tokenizer, options.thinking_tokens)
    most = math.inf if options.context is None else options.context - thought
    return [length for length in plan.lengths if least <= length <= most]
