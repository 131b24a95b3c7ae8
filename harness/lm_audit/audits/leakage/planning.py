"""What the leakage audit's cases will have behind their metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lm_audit.audits.design import Design, PlanOptions
from lm_audit.audits.leakage.averages import FEWEST_FILES
from lm_audit.audits.leakage.items.benchmarks import HEAVY_LIMITS, LIMITS, ROW_LIMITS
from lm_audit.audits.leakage.items.loading import cached_benchmark
from lm_audit.audits.leakage.items.sampling import Drawn

ORDER_EFFECT_SD = 0.35
"""Of a question's order effect, in nats a byte: SmolLM2 on the shipped questions, 0.34 in English, 0.13 in Chinese."""

ORDER_EFFECT_REACH = 0.7
"""The order effect of a file whose every option is certain, in nats a byte: what SmolLM2 lacks on the shipped ones."""

HEADLINES: Mapping[str, tuple[str, Mapping[str, int], Drawn]] = {
    "test_published_memorisation": ("leakage.published.score", LIMITS, "items"),
    "test_memorisation": ("leakage.order_effect.logprob", LIMITS, "items"),
    "test_option_order": ("leakage.option_order.place", HEAVY_LIMITS, "items"),
    "test_completion": ("leakage.completion.edit_similarity", HEAVY_LIMITS, "items"),
    "test_row_order": ("leakage.row_order.swap_gain", ROW_LIMITS, "pairs"),
}


def designs(test: str, params: Mapping[str, Any], options: PlanOptions) -> Iterable[Design]:
    """Designs by test function; see :mod:`lm_audit.audits.design`."""
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
    unit = "nats a byte" if test == "test_memorisation" else ""
    sd = ORDER_EFFECT_SD if test == "test_memorisation" and fewest is None else None
    reach = ORDER_EFFECT_REACH if test == "test_memorisation" and fewest is not None else None
    yield Design(
        metric, "mean", units, counted, sd=sd, unit=unit, chance=0.0, fewest=fewest, headline=True, reach=reach
    )
