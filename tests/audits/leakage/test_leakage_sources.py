"""Every metric's recorded rows give its value again, and every metric that can get worse has a direction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lm_audit.audits.leakage import (
    Benchmark,
    Item,
    completions,
    made_up_benchmark,
    measure_memorisation,
    memorisation,
    option_order,
    overview_evidence,
    published_memorisation,
    row_order,
    text_likelihood,
)
from lm_audit.evidence import Evidence
from lm_audit.models import LanguageModel
from lm_audit.models.toy.tiny_model import tiny_model
from lm_audit.sources import unreproduced, unsourced
from lm_audit.sources.statistics import STATISTICS as GENERIC

SIZES = {f"file{k}": k % 3 + 1 for k in range(7)}


def in_files(count: int) -> Benchmark:
    """Made-up questions in ``count`` files of different sizes, one that cannot be mixed, one sorted, one file empty."""
    names = list(SIZES)[:count]
    places = [name for name in names for _ in range(SIZES[name] + 1)]
    items = [replace(item, file=name) for item, name in zip(made_up_benchmark(40, seed=3).items, places, strict=False)]
    items[2] = Item("fixed", items[2].file, "Which hold?", ("a red coin", "a blue coin", "Both A and B"), "C")
    items[3] = replace(items[3], options=("a pin", "a cart", "a ladder", "a rainbow"))
    by_file = {name: sum(item.file == name for item in items) for name in names} | {"empty": 0}
    return Benchmark("in files", tuple(items), (*names, "empty"), len(items), len(items), by_file=by_file)


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return tiny_model()


@pytest.fixture(scope="module", params=[3, 7])
def found(request: Any, tiny: LanguageModel) -> dict[str, Evidence]:
    benchmark = in_files(request.param)
    results = [measure_memorisation(tiny, made_up_benchmark(8, seed=s), seed=0, orders=1) for s in (0, 1)]
    return {
        "published": published_memorisation(tiny, benchmark, seed=0),
        "memorisation": memorisation(tiny, benchmark, seed=0),
        "option order": option_order(tiny, benchmark, seed=0),
        "completion": completions(tiny, benchmark, seed=0),
        "text": text_likelihood(tiny, benchmark, clean=made_up_benchmark(9, seed=8), seed=0),
        "row order": row_order(tiny, benchmark, shards=3, permutations=4, seed=0),
        "overview": overview_evidence(results, "tiny"),
    }


def test_rows_give_the_metrics(found: dict[str, Evidence]) -> None:
    for name, evidence in found.items():
        assert not unreproduced(evidence), name
        assert not unsourced(evidence), name


UNDIRECTED = (
    ".shuffled", "score_shuffled", "score_shuffled_by_items", "score_baseline", "score_baseline_by_items", ".baseline",
    ".other_question", ".other_item", ".detectable", ".mean_logprob", ".min_k20", ".min_k20_plus", ".perplexity",
)  # fmt: skip


def test_whatever_can_get_worse_has_a_direction(found: dict[str, Evidence]) -> None:
    for evidence in found.values():
        for name, metric in evidence.metrics.items():
            if metric.unit != "p":
                assert (metric.better == "lower") == (not name.endswith(UNDIRECTED)), name
        assert evidence.headline is not None and evidence.metrics[evidence.headline].better == "lower"


def test_clusters_are_named_where_there_are_enough(found: dict[str, Evidence]) -> None:
    many = len({row["file"] for row in found["memorisation"].rows}) >= 6
    for name in ("published", "memorisation", "option order", "completion", "text"):
        for metric, source in found[name].sources.items():
            of_these, of_rows = metric.endswith(".these_files"), source.statistic not in GENERIC
            expected = () if of_these else ("file",) if many else ("question",) if of_rows else ()
            assert source.clusters == expected and (many or not of_these), metric
        headline = found[name].metrics[found[name].headline or ""]
        assert ("clusters" in headline.method) == (many and name != "published") or name == "published"
        assert ("these 3 files" in headline.method) == (not many and name != "published")
