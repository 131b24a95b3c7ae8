"""Sets without a column of options, whose questions list them at their end: each row divided into the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lm_audit.audits.leakage.items.column_names import QUESTIONS
from lm_audit.audits.leakage.items.labels.in_a_question import listed_in

Row = Mapping[str, Any]

OPTIONS = "options"
"""The column that a divided row has more: it is added only where the set has none that holds options."""


def dividing(rows: Sequence[Row], mapping: Mapping[str, str]) -> tuple[str, Callable[[Row], Row]] | None:
    """The column whose texts list their options, by most of these rows, and what divides a row; ``None`` without one.

    ``mapping`` is what the user said of the columns. The rows must be known to have no column of options.
    """
    names = [mapping["question"]] if "question" in mapping else _questions(rows)
    for name in names:
        texts = [text for row in rows if isinstance(text := row.get(name), str) and text.strip()]
        if texts and 2 * sum(listed_in(text) is not None for text in texts) > len(texts):
            return name, partial(_divided, name=name)
    return None


def _questions(rows: Sequence[Row]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row if name)
    plain = {name: str(name).strip().lower().replace(" ", "_") for name in names}
    return [name for known in QUESTIONS for name in names if plain[name] == known]


def _divided(row: Row, name: str) -> Row:
    text = row.get(name)
    listed = listed_in(text) if isinstance(text, str) else None
    if listed is None:
        return row
    return {**row, name: listed.question, OPTIONS: {"text": list(listed.texts), "label": list(listed.labels)}}
