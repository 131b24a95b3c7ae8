"""Figures of the memorisation test: conditions, distribution, files, most memorised items, style."""

from __future__ import annotations

from typing import Any

import numpy as np

from lm_audit.audits.leakage.evidence.figures import (
    distribution,
    ending,
    forest,
    memorised_table,
    style_figure,
    table,
    visible,
)
from lm_audit.audits.leakage.half_option.conditions import UNITS
from lm_audit.audits.leakage.half_option.variants import BASELINES, ORIGINAL, OTHER_ITEM, SHUFFLED
from lm_audit.audits.leakage.items.item import LETTERS
from lm_audit.audits.leakage.measured_memory import Memorisation
from lm_audit.evidence import Figure

SHOWN = 15
"""Rows of the table of what is memorised most."""


def memorisation_figures(result: Memorisation) -> list[Figure]:
    """Conditions, distribution, files, most memorised items, style."""
    conditions = (ORIGINAL, SHUFFLED, *BASELINES)
    chance = {m: result.mean(m, OTHER_ITEM).value for m in UNITS}
    labels = {c: c.replace("_", " ") for c in conditions}
    figures = [
        forest(
            f"conditions_{measure}",
            f"Conditions: {'hits' if measure == 'hits' else 'log-probability'}",
            {labels[c]: result.mean(measure, c) for c in conditions},
            UNITS[measure],
            chance[measure],
            "Dashed: what language alone gives (the option after another item). Memory of the order shows as original "
            "right of shuffled; original right of the baselines may also be knowledge.",
        )
        for measure in UNITS
    ]
    figures.append(
        distribution(
            "distribution",
            "Scores of the questions",
            {labels[c]: result.scores.of("logprob", c) for c in (ORIGINAL, SHUFFLED, OTHER_ITEM)},
            UNITS["logprob"],
            chance["logprob"],
            "Mean log-probability a byte of the second halves of a question's options. Dashed: mean of the baseline.",
        )
    )
    return [*figures, _files(result), memorised_table(_memorised(result), _CAPTION), style_figure(result.styles)]


_CAPTION = (
    "By how much likelier the second half is in its place than after another item (nats a byte). Well-known facts "
    "stand high as well as memorised text."
)


def _files(result: Memorisation) -> Figure:
    rows = []
    for name in result.benchmark.files:
        here = np.array([file == name for file in result.scores.files])
        row: dict[str, Any] = {"file": name, "items": int(here.sum())}
        for condition in (ORIGINAL, SHUFFLED, OTHER_ITEM):
            values = result.scores.of("hits", condition)[here] if here.any() else np.zeros(0)
            values = values[np.isfinite(values)]
            row[condition] = round(float(values.mean()), 3) if len(values) else None
        rows.append(row)
    columns = {"file": "file", "items": "items", ORIGINAL: "original", SHUFFLED: "shuffled", OTHER_ITEM: "baseline"}
    return table("files", "Hits by file", columns, rows, "Share of options whose next token was right.")


def _memorised(result: Memorisation) -> list[dict[str, Any]]:
    """The options with the largest gain of the published place over the baseline."""
    measured = result.table.assign(per_byte=result.table["suffix_logprob"] / result.table["suffix_bytes"].clip(lower=1))
    keys = ["base", "base_option"]
    baseline = measured.loc[measured["condition"] == OTHER_ITEM, [*keys, "per_byte"]]
    own = measured[measured["condition"] == ORIGINAL].merge(baseline, on=keys, suffixes=("", "_baseline"))
    own["gain"] = own["per_byte"] - own["per_byte_baseline"]
    top = own.sort_values("gain", ascending=False, kind="stable").head(SHOWN)
    return [
        {
            "item": f"{row['file']}:{row['item_id']} {LETTERS[row['base_option']]}",
            "prefix": visible(ending(row["prefix"])),
            "wrote": visible(row["predicted"]),
            "truth": visible(row["suffix"]),
            "gain": round(float(row["gain"]), 3),
        }
        for row in top.to_dict("records")
    ]
