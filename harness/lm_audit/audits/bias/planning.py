"""What the bias audit's cases will have behind their metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.audits.design import Design, Kind, PlanOptions
from lm_audit.stats.covering import FEWEST, FEWEST_CLUSTERS

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
    "winogender": ("bias.winogender_flip_rate", "share"),
}

COUNTED: Mapping[str, str] = {
    "crows_pairs": "writers",
    "stereoset": "targets",
    "bbq": "kinds of question",
    "cbbq": "kinds of question",
    "winobias": "pairs of sentences on the smaller side",
    "winogender": "occupations with a sentence of both genders",
}

GENERATED: Mapping[str, tuple[str, Kind, str, int]] = {
    "test_counterfactual_continuation": ("bias.counterfactual_generated_excess", "difference", "sentences", FEWEST),
    "test_counterfactual_swap": ("bias.counterfactual_excess_shift", "difference", "sentences", FEWEST),
    "test_refusal": ("bias.refusal_max_difference", "mean", "requests", FEWEST_CLUSTERS),
}


def designs(test: str, params: Mapping[str, Any], options: PlanOptions) -> Iterable[Design]:
    """Designs by test function; see :mod:`lm_audit.audits.design`."""
    if test == "test_preference_grid":
        yield from _grid(params["grid"])
    elif test == "test_public_benchmark" and params.get("kind") in HEADLINES:
        yield _public(params["kind"], _clusters(params["kind"], params["source"], params["sample"], options.seed))
    elif test in GENERATED:
        metric, form, counted, fewest = GENERATED[test]
        yield Design(metric, form, None, counted, fewest=fewest, headline=True)
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


def _public(kind: str, clusters: int) -> Design:
    metric, form = HEADLINES[kind]
    fields: dict[str, Any] = {"counted": COUNTED[kind], "fewest": FEWEST_CLUSTERS, "headline": True}
    if form == "share":
        chance = None if kind == "winogender" else 50.0
        return Design(metric, form, clusters, unit="%", chance=chance, low=0.0, high=100.0, **fields)
    if form == "difference":
        return Design(metric, form, clusters, unit="percentage points", chance=0.0, low=-100.0, high=100.0, **fields)
    return Design(metric, form, clusters, chance=0.0, low=-1.0, high=1.0, **fields)


def _clusters(kind: str, source: str, sample: int | None, seed: int) -> int:
    """How many clusters of items hang together in what a run draws of the set, of two sides the fewer."""
    from lm_audit.audits.bias.benchmarks.public_sets import SETS, load_set
    from lm_audit.audits.bias.benchmarks.sampling import stratified_sample

    form = SETS[kind]
    items, _ = form.parse(stratified_sample(load_set(source, kind).rows, sample, form.stratum, seed=seed))
    if kind == "winogender":
        genders: dict[str, set[str]] = {}
        for item in items:
            genders.setdefault(item.template, set()).add(item.gender)
        return len({item.occupation for item in items if genders[item.template] >= {"male", "female"}})
    if kind == "winobias":
        return min(len({item.pair for item in items if item.condition == side}) for side in ("pro", "anti"))
    name = {"crows_pairs": "writer", "stereoset": "target"}.get(kind, "cluster")
    return len({getattr(item, name) for item in items})
