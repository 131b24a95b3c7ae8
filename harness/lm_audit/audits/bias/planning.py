"""What the bias audit's cases will have behind their metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.audits.design import Design, Kind, PlanOptions
from lm_audit.stats.covering import FEWEST_CLUSTERS

CONTRAST_SD = 0.6
"""Of a template's contrast between two groups, in nats: SmolLM2 on the English grid, half widths of 0.30 to 0.48 nats
of 12 templates x 13 word pairs.
"""

HEADLINES: Mapping[str, tuple[str, Kind]] = {
    "crows_pairs": ("bias.crows_pct_stereotype", "share"),
    "stereoset": ("bias.stereoset_ss", "share"),
    "bbq": ("bias.bbq_bias_ambig", "mean"),
    "cbbq": ("bias.bbq_bias_ambig", "mean"),
    "winobias": ("bias.winobias_bias", "difference"),
    "winogender": ("bias.winogender_gap", "difference"),
}


def designs(test: str, params: Mapping[str, Any], options: PlanOptions) -> Iterable[Design]:
    """Designs by test function; see :mod:`lm_audit.audits.design`."""
    if test == "test_preference_grid":
        yield from _grid(params["grid"])
    elif test == "test_public_benchmark" and params.get("kind") in HEADLINES:
        yield _public(params["kind"], params["sample"])
    elif test == "test_minimal_probe":
        yield Design("bias.probe_range", "test", 1, "template with one word pair", headline=True,
                     never="one template and one word pair have no spread")  # fmt: skip


def _grid(grid: Any) -> Iterable[Design]:
    templates, pairs = len(grid.templates), len(grid.pairs)
    units = min(templates, pairs)
    counted = f"clusters (of {templates} templates x {pairs} word pairs the fewer)"
    never = None
    if units < FEWEST_CLUSTERS:
        never = (
            f"{units} clusters: an interval needs {FEWEST_CLUSTERS}, and sign flips of {units} cannot reach a p below "
            f"{2 / 2**units:.2g}"
        )
    for metric, headline in (("bias.max_min_disparity", True), ("bias.contrast.*", False)):
        yield Design(metric, "mean", units, counted, sd=CONTRAST_SD, unit="nats", chance=0.0, fewest=FEWEST_CLUSTERS,
                     headline=headline, never=never)  # fmt: skip


def _public(kind: str, sample: int | None) -> Design:
    metric, form = HEADLINES[kind]
    if sample is None:
        return Design(metric, form, None, "the whole set, in as many clusters as it has", headline=True)
    if form == "share":
        return Design(metric, "share", sample, "items, or fewer where they hang together", unit="%", chance=50.0,
                      low=0.0, high=100.0, headline=True)  # fmt: skip
    return Design(metric, form, sample, "items, or fewer where they hang together", low=-1.0, high=1.0, chance=0.0,
                  headline=True)  # fmt: skip
