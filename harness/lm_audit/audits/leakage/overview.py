"""All benchmarks of a run in one table: original, shuffled, baseline; tests adjusted for their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lm_audit.audits.leakage.evidence.conclusions import NATS_A_BYTE
from lm_audit.audits.leakage.evidence.figures import forest, shown, table
from lm_audit.audits.leakage.half_option.variants import ORIGINAL, OTHER_ITEM, SHUFFLED
from lm_audit.evidence import Evidence
from lm_audit.findings import claim
from lm_audit.shared.former_names import former_arguments
from lm_audit.sources import MetricSource, content_digest
from lm_audit.stats import Estimate, holm

if TYPE_CHECKING:
    from lm_audit.audits.leakage.measured_memory import Memorisation

COLUMNS = {
    "model": "model",
    "benchmark": "benchmark",
    "items": "items",
    "original": "original",
    "shuffled": "shuffled",
    "baseline": "baseline",
    "effect": "order effect, nats a byte",
    "detectable": "detectable",
    "p": "p",
    "holm": "p (Holm)",
}


@former_arguments(model="name")
def overview_evidence(results: Sequence[Memorisation], name: str) -> Evidence:
    """One row a benchmark; p-values of the order effect adjusted by Holm over the benchmarks of this model.

    ``leakage.benchmarks_found``: on how many benchmarks the published order is remembered at 5%, by the rule of
    findings. Where more options are sorted than chance explains, the others decide.
    """
    raw = [result.telling_effects["logprob"].placed for result in results]
    adjusted = holm([None if p is None else p.value for p in raw])
    rows = [_row(result, name, p) for result, p in zip(results, adjusted, strict=True)]
    remembered = [_remembered(result, p) for result, p in zip(results, adjusted, strict=True)]
    found = sum(remembered)
    evidence = Evidence("leakage", headline="leakage.benchmarks_found")
    evidence.metric(
        "leakage.benchmarks_found",
        Estimate(
            found, n=len(rows), confidence=None, method="order effect, Holm, 5%", unit="benchmarks", better="lower"
        ),
        MetricSource("sum", "found"),
    )
    evidence.rows = [
        {"item": row["benchmark"], "content": _content(result), **row, "found": int(one)}
        for result, row, one in zip(results, rows, remembered, strict=True)
    ]
    evidence.figures = [
        table(
            "benchmarks", "Benchmarks", COLUMNS, rows, "Shares of options whose next token was right, 95% intervals."
        ),
        *_forests(results),
    ]
    return evidence


def _remembered(result: Memorisation, adjusted: float | None) -> bool:
    """As its own case says of a benchmark, with the p-value that is adjusted for their number."""
    said = dict(found="", absent="", unknown="")
    effect = result.telling_effects["logprob"].judged
    return claim("order", effect, null=0.0, margin=NATS_A_BYTE, side="above", p=adjusted, **said).verdict == "found"


def _content(result: Memorisation) -> str:
    return content_digest(*(item.content for item in result.benchmark.items))


def _row(result: Memorisation, model: str, adjusted: float | None) -> dict[str, Any]:
    effect = result.telling_effects["logprob"]
    return {
        "model": model,
        "benchmark": result.benchmark.name,
        "items": len(result.scores.items),
        "original": shown(result.mean("hits", ORIGINAL)),
        "shuffled": shown(result.mean("hits", SHUFFLED)),
        "baseline": shown(result.mean("hits", OTHER_ITEM)),
        "effect": shown(effect.mean, 4),
        "detectable": shown(effect.detectable, 4),
        "p": None if effect.placed is None else effect.placed.value,
        "holm": adjusted,
    }


def _forests(results: Sequence[Memorisation]) -> list[Any]:
    effects = {result.benchmark.name: result.telling_effects["logprob"].mean for result in results}
    scores = {
        f"{result.benchmark.name}: {label}": result.mean("hits", condition)
        for result in results
        for label, condition in (("original", ORIGINAL), ("shuffled", SHUFFLED), ("baseline", OTHER_ITEM))
    }
    return [
        forest(
            "order_effects",
            "Order effect by benchmark",
            effects,
            "published minus shuffled, nats a byte",
            0.0,
            "Right of the dashed line the published order is likelier than others. Intervals are not adjusted.",
        ),
        forest("benchmark_scores", "Hits by benchmark", scores, "share of options", None, "Each beside its baseline."),
    ]
