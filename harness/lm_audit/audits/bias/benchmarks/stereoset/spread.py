"""StereoSet's three sentences where a table spreads them over columns, put back into one list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lm_audit.audits.hub_rows import structured

_PART = re.compile(
    r"sentences[._/:|\[\]]+(?:(?P<before>[0-9])[._/:|\[\]]+)?(?P<field>sentence|gold_label)(?:[._/:|\[\]]+(?P<after>[0-9])\]?)?"
)
"""``sentences.0.gold_label``, ``sentences.gold_label.0`` or, as a list of its own, ``sentences.gold_label``."""

_LABELS = {"stereotype": "stereotype", "antistereotype": "anti-stereotype", "unrelated": "unrelated"}


def sentences_of(row: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The records of the sentences, each with its label; ``None`` where no columns hold them.

    Each sentence may also stand in a column that is called as its label is.
    """
    named = {re.sub(r"[\W_]", "", str(column).lower().removesuffix("_sentence")): column for column in row}
    if all(name in named for name in _LABELS):
        return [{"sentence": row[named[name]], "gold_label": label} for name, label in _LABELS.items()]
    found: dict[int, dict[str, Any]] = {}
    for column, value in row.items():
        if (part := _PART.fullmatch(str(column))) is None:
            continue
        place = part["before"] or part["after"]
        values = [value] if place else structured(value)
        for number, one in enumerate(values if isinstance(values, list | tuple) else ()):
            found.setdefault(int(place or number), {})[part["field"]] = one
    return [found[place] for place in sorted(found)] or None
