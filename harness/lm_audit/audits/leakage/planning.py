"""What the leakage audit's cases will have behind their metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.audits.design import Design, Kind, PlanOptions
from lm_audit.audits.leakage.averages import FEWEST_FILES, THESE_FILES
from lm_audit.audits.leakage.items.benchmarks import HEAVY_LIMITS, LIMITS, ROW_LIMITS
from lm_audit.audits.leakage.items.loading import cached_benchmark
from lm_audit.audits.leakage.items.sampling import Drawn

ORDER_EFFECT_SD = 0.35
"""Of a question's order effect, in nats a byte: SmolLM2 on the shipped questions, 0.34 in English, 0.13 in Chinese."""

ORDER_EFFECT_REACH = 0.7
"""The order effect of a file whose every option is certain, in nats a byte: what SmolLM2 lacks on the shipped ones."""

PLACE_SD = 12**-0.5
"""Of a question's place among other orders, where chance alone decides it."""

SDS: Mapping[str, float] = {"test_memorisation": ORDER_EFFECT_SD, "test_option_order": PLACE_SD}
"""Of one question's value, where that is known."""

HEADLINES: Mapping[str, tuple[str, Mapping[str, int], Drawn]] = {
    "test_published_memorisation": ("leakage.published.score", LIMITS, "items"),
    "test_memorisation": ("leakage.order_effect.logprob", LIMITS, "items"),
    "test_option_order": ("leakage.option_order.place", HEAVY_LIMITS, "items"),
    "test_completion": ("leakage.completion.edit_similarity", HEAVY_LIMITS, "items"),
    "test_text_likelihood": ("leakage.ngram_accuracy", LIMITS, "items"),
    "test_row_order": ("leakage.row_order.swap_gain", ROW_LIMITS, "pairs"),
}

UNITS: Mapping[str, str] = {
    "test_memorisation": "nats a byte",
    "test_option_order": "share of other orders",
    "test_completion": "edit similarity",
    "test_text_likelihood": "share of places",
    "test_row_order": "nats a pair",
}

CHANCES: Mapping[str, float] = {"test_memorisation": 0.0, "test_option_order": 0.5, "test_row_order": 0.0}
"""What chance gives, where that is known before it is measured."""

HITS: Mapping[str, Mapping[str, float]] = {
    "test_memorisation": {"leakage.hits.*": 0.0, "leakage.order_effect.hits": -1.0},
    "test_completion": {"leakage.completion.exact": 0.0, "leakage.completion.near_copy": 0.0},
}
"""Metrics of hits beside the headlines, with the least that they can be."""

BOUNDED = ("test_option_order", "test_completion", "test_text_likelihood")
"""Tests whose headline lies between 0 and 1."""

REACHES: Mapping[str, float] = {
    "test_memorisation": ORDER_EFFECT_REACH,
    "test_completion": 1.0,
    "test_text_likelihood": 1.0,
}
"""How far the mean of a file that was not drawn may lie, for which the intervals over files allow."""

JUDGED = ("test_memorisation", "test_option_order")
"""Tests whose headline has a second interval for the benchmark's own files."""


def designs(test: str, params: Mapping[str, Any], options: PlanOptions) -> Iterable[Design]:
    """Designs by test function; see :mod:`lm_audit.audits.design`."""
    if test == "test_benchmark_overview":
        yield Design("leakage.benchmarks_found", "test", len(params["sources"]), "benchmarks", headline=True,
                     never="a count of benchmarks has no interval")  # fmt: skip
    if test not in HEADLINES:
        return
    metric, limits, drawn = HEADLINES[test]
    limit = options.items(limits[options.size], options.option("leakage_limit"))
    items = cached_benchmark(params["source"], options.option("leakage_columns"), limit, options.seed, drawn).items
    if test == "test_published_memorisation":
        # Hits are a share of the options: of n questions without any the interval has Clopper and Pearson's limit.
        yield Design(metric, "share", len(items), "questions", unit="hits a question", low=0.0,
                     high=float(max(len(item.options) for item in items)), headline=True)  # fmt: skip
        return
    files = len({item.file for item in items})
    if drawn == "pairs":
        counted, units, fewest = "pairs of rows at most", len(items) // 2, None
    elif files >= FEWEST_FILES:
        counted, units, fewest = f"files (of {len(items)} questions)", files, FEWEST_FILES
    else:
        counted, units, fewest = f"questions of {files} files", len(items), None
    # Of a file's mean: files that differ beyond what their questions do are wider.
    own = SDS.get(test)
    sd = own if own is None or fewest is None else own * math.sqrt(files / len(items))
    reach = None if fewest is None else REACHES.get(test)
    low, high = (0.0, 1.0) if test in BOUNDED else (None, None)
    fields: dict[str, Any] = {"counted": counted, "fewest": fewest, "low": low, "high": high, "reach": reach}
    yield Design(metric, "mean", units, sd=sd, unit=UNITS[test], chance=CHANCES.get(test), headline=True, **fields)
    for name, least in HITS.get(test, {}).items():
        # Of files without a hit the interval has Clopper and Pearson's limit, as a share of them has.
        kind: Kind = "share" if least == 0.0 else "mean"
        hits = fields | {"low": least, "high": 1.0, "reach": None if fewest is None else 1.0}
        yield Design(name, kind, units, unit="share of options", chance=None if kind == "share" else 0.0, **hits)
    if fewest is not None and test in JUDGED:
        # A verdict on a benchmark is about its own files, of which questions are the units.
        of_these: dict[str, Any] = {"counted": f"questions of these {files} files", "low": low, "high": high}
        name = f"{metric}.{THESE_FILES}"
        yield Design(name, "mean", len(items), sd=own, unit=UNITS[test], chance=CHANCES.get(test), **of_these)
