"""Faults in what is reported of a benchmark of several files, which the positive control shows of made answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lm_audit.audits.leakage import averages, memory
from lm_audit.audits.leakage.controls.planted import made_up_items
from lm_audit.audits.leakage.controls.several_files import SIZES, in_files, wrong_of_files
from lm_audit.audits.leakage.half_option import completion, conditions, single_files
from lm_audit.audits.leakage.half_option.variants import ORIGINAL
from lm_audit.audits.leakage.items.benchmark import Benchmark
from lm_audit.audits.leakage.orders import evidence as orders
from lm_audit.audits.second_opinion import found_wrong
from lm_audit.stats import Estimate
from tests.audits.reporting_faults import CHANCES, COUNTS, WIDTHS, Fault

ITEMS = in_files(made_up_items(sum(SIZES)))


def put(module: Any, name: str, change: Callable[..., Any]) -> Fault:
    """``change(honest, *words, **options)`` in the place of a function."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = getattr(module, name)
        patch.setattr(module, name, lambda *words, **options: change(honest, *words, **options))

    return apply


def halved(found: Any) -> Any:
    if found is None or found.low is None:
        return found
    return replace(found, low=(found.value + found.low) / 2, high=(found.value + found.high) / 2)


def _narrow(honest: Any, *words: Any, **options: Any) -> Any:
    return halved(honest(*words, **options))


def _never(honest: Any, *words: Any, **options: Any) -> None:
    return None


def _as_general(honest: Any, values: Any, files: Any, benchmark: Any, **fields: Any) -> Estimate:
    return averages.mean_of(values, files, **fields)


def _between_files(honest: Any, data: Any, names: Any, *words: Any) -> Estimate:
    return honest(np.asarray(data), ["one"] * len(names), *words)  # type: ignore[no-any-return]


FAULTS: dict[str, Fault] = {
    "no interval for these files, effects": put(conditions, "of_these_files", _never),
    "no interval for these files, places": put(orders, "of_these_files", _never),
    "no interval for these files, copies": put(completion, "of_these_files", _never),
    "that of files in general, effects": put(conditions, "of_these_files", _as_general),
    "that of files in general, copies": put(completion, "of_these_files", _as_general),
    "half of the width, effects": put(conditions, "of_these_files", _narrow),
    "half of the width, places": put(orders, "of_these_files", _narrow),
    "half of the width, copies": put(completion, "of_these_files", _narrow),
    "spread between files counted for these": put(averages, "_of_these_files", _between_files),
    "files ignored in the share of first ranks": put(
        orders, "_first_ranks", lambda honest, used, summary, clusters: honest(used, summary, ())
    ),
    "largest of the smallest files too": put(single_files, "Counter", lambda honest, names: dict.fromkeys(names, 99)),
    "limits of one file alone": put(
        single_files,
        "_largest",
        lambda honest, parts, unit, fewest: replace(
            honest(parts, unit, fewest), **dict(zip(("low", "high"), _one_alone(parts), strict=True))
        ),
    ),
    "mean of the files for the largest": put(
        single_files,
        "_largest",
        lambda honest, parts, *w: replace(honest(parts, *w), value=float(np.mean([p.mean() for p in parts]))),
    ),
    "least memorised options first": put(completion, "_most_alike", lambda honest, rows: honest(rows)[::-1]),
    "most alike options first, whatever their length": put(
        completion, "_most_alike", lambda honest, rows: honest([{**row, "truth": "a"} for row in rows])
    ),
    "gains over nothing": put(
        completion,
        "_most_alike",
        lambda honest, rows: honest(
            [row if row["condition"] == ORIGINAL else {**row, "edit_similarity": 0.0} for row in rows]
        ),
    ),
    "smallest effect of one-sided tests": put(conditions, "power_paired_t", lambda honest, **o: honest(**o, level=0.1)),
    "unsorted questions are all": put(memory, "sorted_items", lambda honest, items: [False] * len(items)),
}


def _one_alone(parts: Any) -> tuple[float, float]:
    part = max(parts, key=lambda values: values.mean())
    reach = 2.1 * part.std(ddof=1) / len(part) ** 0.5
    return float(part.mean() - reach), float(part.mean() + reach)


def test_nothing_is_wrong_with_sound_answers() -> None:
    assert wrong_of_files(ITEMS) == []


@pytest.mark.slow
def test_nothing_is_wrong_with_sound_answers_of_other_questions() -> None:
    for seed in range(1, 40):
        assert wrong_of_files(in_files(made_up_items(sum(SIZES), seed=seed))) == [], seed


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_several_files_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[fault](monkeypatch)
    assert found_wrong("files", lambda: wrong_of_files(ITEMS))


@pytest.mark.parametrize("fault", [*WIDTHS, *CHANCES, *COUNTS])
def test_what_is_misreported_of_several_files_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (WIDTHS | CHANCES | COUNTS)[fault](monkeypatch)
    assert found_wrong("files", lambda: wrong_of_files(ITEMS))


def test_the_share_of_first_ranks_is_as_wide_as_files_differ() -> None:
    """Of four files all published orders are the likeliest, of eight none: 12 files tell no more than 12 answers."""
    import pandas as pd

    items = [replace(item, file=f"f{k % 12}") for k, item in enumerate(made_up_items(60))]
    table = pd.DataFrame(
        [
            {"item_id": item.id, "file": item.file, "n_orders": 6, "published_rank": 1 if k % 12 < 4 else 6,
             "p_rank": 1.0, "orders": [[0, 1, 2, 3]] * 6, "logprobs": [0.0] * 6}
            for k, item in enumerate(items)
        ]
    )  # fmt: skip
    names = tuple(dict.fromkeys(item.file for item in items))
    found = orders.ranked_evidence(table, items, Benchmark("b", tuple(items), names, 60, 60)).metrics
    first = found["leakage.option_order.first"]
    assert first.low is not None and first.high is not None
    assert first.value == pytest.approx(1 / 3) and first.low < 0.12 and first.high > 0.6
