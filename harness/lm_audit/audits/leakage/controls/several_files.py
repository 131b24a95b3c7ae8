"""What is reported of a benchmark of several files: made answers, since the questions that a control plants are of one.

Files differ, one of them most, so that an interval for these files is narrower than one for files in general.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lm_audit.audits.leakage.controls.whole_reports import differences_of, wrong_memory
from lm_audit.audits.leakage.half_option.completion import completion_evidence
from lm_audit.audits.leakage.half_option.variants import BASELINES, ORIGINAL, OTHER_ITEM, SHUFFLED
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.items.item import LETTERS, Item
from lm_audit.audits.leakage.items.style import sorted_items
from lm_audit.audits.leakage.memory import measured_effects, memorisation_of
from lm_audit.audits.leakage.orders.evidence import ranked_evidence, ranked_row
from lm_audit.audits.second_opinion import Level, misreported
from lm_audit.stats.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

    from lm_audit.evidence import Evidence

Rows = list[dict[str, Any]]

SIZES = (14, 12, 10, 6, 6, 5, 5)
"""Questions of each file: three have the eight that an interval of their own needs."""

ORDERS, RANKED = 3, 6
"""Shuffled orders of the memorisation test, and orders among which the published one is ranked."""

LEVEL = 0.05


def in_files(items: Sequence[Item]) -> list[Item]:
    """The first items, dealt out to the files; the options of every sixth stand in alphabetical order."""
    files = [f"made-{number}" for number, size in enumerate(SIZES) for _ in range(size)]
    return [
        replace(item, file=file, options=tuple(sorted(item.options)) if place % 6 == 0 else item.options)
        for place, (item, file) in enumerate(zip(items, files, strict=False))
    ]


def wrong_of_files(items: Sequence[Item]) -> list[str]:
    """What is reported of these questions (see :func:`in_files`) and made answers to them, and is not so."""
    some = tuple(items)
    files = tuple(dict.fromkeys(item.file for item in some))
    benchmark = Benchmark("made-up files", some, files, len(some), len(some))
    rng = np.random.default_rng(17)
    return [*_wrong_effects(benchmark, rng), *_wrong_places(benchmark, rng), *_wrong_copies(benchmark, rng)]


def _file_parts(items: Sequence[Item], rng: np.random.Generator) -> dict[str, float]:
    files = dict.fromkeys(item.file for item in items)
    return {file: 0.4 * (place == 1) + 0.5 * float(rng.normal()) for place, file in enumerate(files)}


def _wrong_effects(benchmark: Benchmark, rng: np.random.Generator) -> list[str]:
    rows = _probed(benchmark.items, rng)
    result = memorisation_of(_table(rows), benchmark.items, benchmark, parameters={"orders": ORDERS})
    recorded = [{name: value for name, value in row.items() if name not in ("base", "suffix_bytes")} for row in rows]
    metrics = measured_effects(result).metrics
    largest = {
        f"leakage.{name}.logprob.largest_file": differences_of(recorded, "logprob", unsorted=name.endswith("unsorted"))
        for name in ("order_effect", "order_effect_unsorted")
    }
    faults = wrong_memory(result, recorded, orders=ORDERS, chances=dict.fromkeys(largest, 0.0))
    file_of = {str(row["question"]): str(row["file"]) for row in rows}
    for name, differences in largest.items():
        found = metrics.get(name)
        told = None if found is None else (found.value, found.low, found.high)
        known = _largest(differences, file_of)
        if told is None or None in told or not np.allclose(np.array(told, dtype=np.float64), known, atol=1e-9):
            faults.append(f"{name} is {told}, by another formula {known}")
    kinds = [f"leakage.{name}.{m}" for name in ("order_effect", "order_effect_unsorted") for m in ("logprob", "hits")]
    return [*faults, *_without_own(metrics, kinds)]


def _probed(items: Sequence[Item], rng: np.random.Generator) -> Rows:
    """A row for each option of each question in each condition: whether it was hit, and how likely it was."""
    parts, in_order = _file_parts(items, rng), sorted_items(items)
    rows: Rows = []
    for base, item in enumerate(items):
        own = float(rng.normal())
        for condition in (ORIGINAL, *(f"{SHUFFLED}-{k}" for k in range(1, ORDERS + 1)), *BASELINES):
            gain = parts[item.file] + 0.2 * float(rng.normal()) if condition == ORIGINAL else 0.0
            for option in range(len(item.options)):
                size = int(rng.integers(4, 9))
                likely = -2.0 + 0.3 * own + gain + 0.3 * float(rng.normal())
                rows.append(
                    {
                        "item": f"{item.key}:{LETTERS[option]}:{condition}", "question": item.key, "file": item.file,
                        "condition": condition, "base": base, "sorted": in_order[base],
                        "hit": bool(rng.random() < 0.35 + gain / 2), "suffix_bytes": size,
                        "logprob_per_byte": likely,
                    }
                )  # fmt: skip
    return rows


def _table(rows: Rows) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame(rows)
    return table.assign(suffix_logprob=table["logprob_per_byte"] * table["suffix_bytes"])


def _largest(differences: Mapping[str, float], file_of: Mapping[str, str]) -> tuple[float, float, float]:
    """The largest of the files' means, and the largest lower and upper limit of t intervals that hold together."""
    from scipy.stats import t

    by_file: dict[str, list[float]] = defaultdict(list)
    for question, value in differences.items():
        by_file[file_of[question]].append(value)
    parts = [values for values in by_file.values() if len(values) >= 8]
    limits = [
        t.interval(
            1 - LEVEL / len(parts), len(v) - 1, loc=math.fsum(v) / len(v), scale=np.std(v, ddof=1) / math.sqrt(len(v))
        )
        for v in parts
    ]
    return max(math.fsum(v) / len(v) for v in parts), max(x for x, _ in limits), max(x for _, x in limits)


def _wrong_places(benchmark: Benchmark, rng: np.random.Generator) -> list[str]:
    import pandas as pd

    parts = _file_parts(benchmark.items, rng)
    rows: Rows = []
    for item in benchmark.items:
        first = tuple(range(len(item.options)))
        orders = [first, *(tuple(int(k) for k in rng.permutation(len(first))) for _ in range(RANKED - 1))]
        likely = [-30.0 + float(rng.normal()) + 2 * parts[item.file] * (k == 0) for k in range(RANKED)]
        rank = 1 + sum(one >= likely[0] for one in likely[1:])
        rows.append(
            {"item_id": item.id, "file": item.file, "n_orders": RANKED, "published_rank": rank,
             "p_rank": rank / RANKED, "orders": [list(order) for order in orders], "logprobs": likely}
        )  # fmt: skip
    evidence = ranked_evidence(pd.DataFrame(rows), benchmark.items, benchmark)
    in_order = sorted_items(benchmark.items)
    evidence.rows = [ranked_row(*one) for one in zip(benchmark.items, rows, in_order, strict=True)]
    places = [(RANKED - row["published_rank"]) / (RANKED - 1) for row in rows]
    name = "leakage.option_order.place"
    values = dict.fromkeys((name, f"{name}.these_files"), math.fsum(places) / len(places))
    # How many orders an unsorted place is among differs from question to question.
    chances: dict[str, Level] = {"leakage.option_order.first": 1 / RANKED}
    chances["leakage.option_order_unsorted.first"] = (1 / RANKED - 0.02, 0.5)
    for kind in ("option_order", "option_order_unsorted"):
        chances |= {f"leakage.{kind}.place{of}": 0.5 for of in ("", ".these_files")}
    faults = misreported(evidence, values=values, chances=chances, counts=[({}, len(rows))])
    return [*faults, *_without_own(evidence.metrics, (name, "leakage.option_order_unsorted.place"))]


def _wrong_copies(benchmark: Benchmark, rng: np.random.Generator) -> list[str]:
    parts = _file_parts(benchmark.items, rng)
    rows: Rows = []
    for base, item in enumerate(benchmark.items):
        for condition in (ORIGINAL, OTHER_ITEM):
            for option in range(len(item.options)):
                more = 0.1 + parts[item.file] if condition == ORIGINAL else 0.0
                exact = bool(rng.random() < 0.3 + more)
                alike = 1.0 if exact else float(rng.beta(2, 4))
                rows.append(
                    {
                        "item": f"{item.key}:{LETTERS[option]}:{condition}", "question": item.key, "file": item.file,
                        "condition": condition, "base": base, "wrote": "a", "truth": "a" * (1 + (base + option) % 6),
                        "prefix": "b",
                        "thought": None, "exact": exact, "rouge_l": alike, "edit_similarity": alike,
                        "near_copy": alike > 0.75,
                    }
                )  # fmt: skip
    evidence = completion_evidence(rows, benchmark.items, benchmark)
    evidence.rows = rows
    name = "leakage.completion.exact"
    side = {c: [float(row["exact"]) for row in rows if row["condition"] == c] for c in (ORIGINAL, OTHER_ITEM)}
    gain = (math.fsum(side[ORIGINAL]) - math.fsum(side[OTHER_ITEM])) / len(side[ORIGINAL])
    values = dict.fromkeys((f"{name}.above_baseline", f"{name}.above_baseline.these_files"), gain)
    after_others = {
        full: float(found.value)
        for full, found in evidence.metrics.items()
        if full.endswith(".baseline") and found.value is not None
    }
    chances = {full.removesuffix(".baseline"): value for full, value in after_others.items()}
    faults = misreported(evidence, values=values, chances=chances)
    return [*faults, *_without_own(evidence.metrics, (f"{name}.above_baseline",)), *_wrong_most_memorised(evidence)]


def _wrong_most_memorised(written: Evidence) -> list[str]:
    """A table of the most memorised options in which those do not come first that are longest and most like the truth,
    less what the same options give after another item."""
    alike = {row["item"]: row["edit_similarity"] for row in written.rows}
    own = [row for row in written.rows if row["condition"] == ORIGINAL]
    gains = {name: alike[f"{name}:{ORIGINAL}"] - alike[f"{name}:{OTHER_ITEM}"] for name in map(_option_of, own)}
    weights = {_option_of(row): gains[_option_of(row)] * len(row["truth"]) for row in own}
    shown = next(figure.data["rows"] for figure in written.figures if figure.name == "most_memorised")
    told, first = [weights[row["item"]] for row in shown], sorted(weights.values(), reverse=True)[: len(shown)]
    if told and np.allclose(told, first) and all(abs(row["gain"] - gains[row["item"]]) < 0.001 for row in shown):
        return []
    return ["the table of the most memorised options does not begin with them"]


def _option_of(row: Mapping[str, Any]) -> str:
    return str(row["item"]).rpartition(":")[0]


def _without_own(metrics: Mapping[str, Estimate], names: Sequence[str]) -> list[str]:
    """Metrics without an interval for these files, or with one as wide as for files in general, which differ here."""
    faults = []
    for name in names:
        general, own = (_width(metrics.get(full)) for full in (name, f"{name}.these_files"))
        if general is None or own is None:
            faults.append(f"{name} has no interval for files in general, or none for these")
        elif not own < general:
            faults.append(f"{name}: its interval for these files is no narrower than that for files in general")
    return faults


def _width(estimate: Estimate | None) -> float | None:
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    return estimate.high - estimate.low
