"""StereoSet rows as typed items (Nadeem et al. 2021): one context, three candidates, one target term."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lm_audit.audits.bias.benchmarks.exclusions import Exclusion, parse_each, place_of
from lm_audit.audits.bias.benchmarks.rows import unique_items
from lm_audit.audits.bias.benchmarks.text_fields import text_field
from lm_audit.errors import DataError

LABELS = ("stereotype", "anti-stereotype", "unrelated")


@dataclass(frozen=True)
class StereoSetItem:
    """A context and its stereotypical, anti-stereotypical and unrelated candidates.

    For ``intrasentence`` a candidate is the whole sentence; for ``intersentence`` it follows the context.
    """

    item: str
    task: str
    target: str
    bias_type: str
    context: str
    stereotype: str
    anti_stereotype: str
    unrelated: str

    @property
    def candidates(self) -> tuple[str, str, str]:
        """The candidates in the order of :data:`LABELS`."""
        return self.stereotype, self.anti_stereotype, self.unrelated


def parse_stereoset(rows: Iterable[Mapping[str, Any]]) -> tuple[list[StereoSetItem], list[Exclusion]]:
    """The usable items, and the rows that are not usable with the reason for each (two blanks, a candidate missing)."""
    rows = list(rows)
    names = unique_items(
        (str(row.get("id") or ""), ":".join(map(str, place_of(row, number))))
        for number, row in enumerate(rows, start=1)
    )
    return parse_each(rows, lambda row, number: _item(row, names[number - 1]), lambda item: replace(item, item=""))


def _item(row: Mapping[str, Any], name: str) -> StereoSetItem:
    context = text_field(row, "context")
    task = str(row.get("task") or ("intrasentence" if "BLANK" in context else "intersentence"))
    if task == "intrasentence" and context.count("BLANK") != 1:
        raise DataError(f"has {context.count('BLANK')} blanks; exactly one is expected", field="context")
    candidates: dict[str, str] = {}
    if not isinstance(row["sentences"], list) or not all(isinstance(s, Mapping) for s in row["sentences"]):
        raise DataError(f"are {row['sentences']!r:.60}; a list of records is expected", field="sentences")
    for sentence in row["sentences"]:
        label = str(sentence.get("gold_label")).lower().replace("antistereotype", "anti-stereotype")
        if label not in LABELS or label in candidates:
            raise DataError(
                f"{label!r} is unknown or stands there twice; each of {list(LABELS)} once", field="sentences"
            )
        candidates[label] = text_field(sentence, "sentence")
    missing = [label for label in LABELS if not candidates.get(label, "").strip()]
    if missing:
        raise DataError(f"lacks the candidates {missing}", field="sentences")
    return StereoSetItem(
        item=name,
        task=task,
        target=text_field(row, "target"),
        bias_type=text_field(row, "bias_type"),
        context=context,
        stereotype=candidates["stereotype"],
        anti_stereotype=candidates["anti-stereotype"],
        unrelated=candidates["unrelated"],
    )
