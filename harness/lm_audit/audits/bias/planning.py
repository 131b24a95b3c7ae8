"""What the bias audit's cases will have behind their metrics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lm_audit.audits.design import Design, Kind, PlanOptions
from lm_audit.stats.covering import FEWEST, FEWEST_CLUSTERS
from lm_audit.stats.shares.clustered_share import expected_answers

CONTRAST_SD = 0.6
"""Of a template's contrast between two groups, in nats: SmolLM2 on the English grid, half widths of 0.30 to 0.48 nats
of 12 templates x 13 word pairs.
"""

ANSWER_SD = 50.0
"""Of one answer that is right half of the time, in percentage points."""

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

SWAPS: Mapping[str, tuple[str, str]] = {
    "test_counterfactual_continuation": ("bias.counterfactual_generated_excess", "share"),
    "test_counterfactual_swap": ("bias.counterfactual_excess_shift", "nats"),
}


def designs(test: str, params: Mapping[str, Any], options: PlanOptions) -> Iterable[Design]:
    """Designs by test function; see :mod:`lm_audit.audits.design`."""
    if test == "test_preference_grid":
        yield from _grid(params["grid"], params["axis"])
    elif test == "test_public_benchmark" and params.get("kind") in HEADLINES:
        yield public_design(params["kind"], _sizes(params["kind"], params["source"], params["sample"], options.seed))
    elif test in SWAPS:
        yield _swaps(*SWAPS[test], params, options)
    elif test == "test_refusal":
        yield _refusal(params, options)
    elif test == "test_minimal_probe":
        yield Design("bias.probe_range", "test", 1, "template with one word pair", headline=True,
                     never="one template and one word pair have no spread")  # fmt: skip


def _grid(grid: Any, axis: str) -> Iterable[Design]:
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
                     headline=headline, never=never, tails=False, crossed=max(templates, pairs))  # fmt: skip


def _swaps(metric: str, unit: str, params: Mapping[str, Any], options: PlanOptions) -> Design:
    """Shifts of swaps against those of control swaps; a file of one's own tells how many there are of each."""
    sides: tuple[int, ...] = ()
    if (source := _given(params)) is not None:
        from lm_audit.audits.bias.generated.counterfactual import load_swap_items

        items = load_swap_items(source, like=params.get("like"))
        sides = tuple(_at_most(options, sum(item.control is control for item in items)) for control in (False, True))
    fewer, more = (min(sides), max(sides)) if sides else (None, None)
    counted = f"sentences on the smaller side ({sides[0]} swaps, {sides[1]} controls)" if sides else "sentences"
    return Design(metric, "difference", fewer, counted, unit=unit, chance=0.0, others=more, fewest=FEWEST,
                  headline=True)  # fmt: skip


def _refusal(params: Mapping[str, Any], options: PlanOptions) -> Design:
    """The largest of the differences between any two groups; at smoke size a request is asked once."""
    requests, looks = None, 1
    if (source := _given(params)) is not None:
        from lm_audit.audits.bias.generated.refusal import load_refusal_set

        asked = load_refusal_set(source, like=params.get("like"))
        requests = _at_most(options, len(asked.requests))
        looks = next((math.comb(len(one.groups), 2) for one in asked.axes if one.name == params.get("axis")), 1)
    return Design("bias.refusal_max_difference", "shares", requests, "requests", unit="percentage points", chance=0.0,
                  low=0.0, high=100.0, fewest=FEWEST_CLUSTERS, headline=True, tails=options.size != "smoke",
                  looks=max(1, looks))  # fmt: skip


def _given(params: Mapping[str, Any]) -> str | None:
    """The file or data set that a case reads; a data set of the hub may not be on this machine yet."""
    source = params.get("source", params.get("file"))
    if source is None:
        return None
    from lm_audit.audits.hub_presence import is_settled
    from lm_audit.audits.hub_rows import hub_set

    named = hub_set(str(source))
    return str(source) if named is None or is_settled(named) else None


def _at_most(options: PlanOptions, count: int) -> int:
    most = options.items(None)
    return count if most is None else min(most, count)


def public_design(kind: str, sizes: Sequence[int]) -> Design:
    """The headline of a public set of which clusters of these ``sizes`` are scored (of two sides the smaller)."""
    metric, form = HEADLINES[kind]
    fields: dict[str, Any] = {"counted": COUNTED[kind], "fewest": FEWEST_CLUSTERS, "headline": True}
    if form == "share":
        chance = None if kind == "winogender" else 50.0
        answers = expected_answers(sizes)
        return Design(metric, form, len(sizes), unit="%", chance=chance, low=0.0, high=100.0, answers=answers, **fields)
    if form == "difference":
        fields |= {"sd": ANSWER_SD, "unit": "percentage points", "tails": False}
        return Design(metric, form, len(sizes), chance=0.0, low=-100.0, high=100.0, **fields)
    return Design(metric, form, len(sizes), chance=0.0, low=-1.0, high=1.0, **fields)


def _sizes(kind: str, source: str, sample: int | None, seed: int) -> list[int]:
    """How many items each cluster has of what a run draws of the set; of two sides those of the smaller."""
    from lm_audit.audits.bias.benchmarks.public_sets import SETS, load_set

    form = SETS[kind]
    items, _ = form.parse(form.sample(load_set(source, kind).rows, sample, seed))
    if kind == "winogender":
        genders: dict[str, set[str]] = {}
        for item in items:
            genders.setdefault(item.template, set()).add(item.gender)
        whole = {item.template: item.occupation for item in items if genders[item.template] >= {"male", "female"}}
        return list(Counter(whole.values()).values())
    if kind == "winobias":
        sides = (Counter(item.pair for item in items if item.condition == side) for side in ("pro", "anti"))
        return min((list(side.values()) for side in sides), key=len)
    name = {"crows_pairs": "writer", "stereoset": "target"}.get(kind, "cluster")
    return list(Counter(getattr(item, name) for item in items).values())
