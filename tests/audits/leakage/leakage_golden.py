"""Reference values of the leakage audit, from independent runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lm_audit.audits.leakage import Item
from tests.shared_data import golden_file

SETS = ("cpa_one", "cfa_l1", "cpa_multi", "cpa_one_old", "cpa_multi_old")


def golden(name: str) -> Any:
    """One of the golden files; skips where they are absent."""
    return json.loads(golden_file(f"leakage/golden_{name}.dev.json").read_text(encoding="utf-8"))


def as_item(record: dict[str, Any]) -> Item:
    """A golden record's question."""
    answer = record.get("answer", "")
    return Item(str(record["id"]), record["file"], record["question"], tuple(record["options"]), answer)


def shortest(records: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The records with the shortest questions, so that a test on CPU is quick."""
    return sorted(records, key=lambda record: len(record["question"]) + sum(map(len, record["options"])))[:count]
