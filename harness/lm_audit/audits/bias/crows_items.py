"""CrowS-Pairs rows as typed pairs, with what is dirty in each (Nangia et al. 2020; Blodgett et al. 2021)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lm_audit.audits.bias.exclusions import Exclusion

DEFECTS = (
    "duplicate pair",
    "several edited spans",
    "unequal word counts",
    "final punctuation in one sentence only",
    "double or outer spaces",
    "non-ASCII characters",
    "case change in the first letter",
)
"""Every defect that the lint looks for; a pair with one is scored, and counted apart."""


@dataclass(frozen=True)
class CrowsPair:
    """A sentence that stereotypes more and its minimally edited counterpart."""

    item: str
    sent_more: str
    sent_less: str
    direction: str
    bias_type: str
    writer: str
    defects: tuple[str, ...] = ()


def parse_crows_pairs(rows: Iterable[Mapping[str, Any]]) -> tuple[list[CrowsPair], list[Exclusion]]:
    """The pairs that can be scored with their defects, and the rows that cannot: an empty or an identical sentence."""
    pairs: list[CrowsPair] = []
    excluded: list[Exclusion] = []
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(rows, start=1):
        more, less = str(row["sent_more"]), str(row["sent_less"])
        file, line = str(row.get("_file", "")), int(row.get("_row", number))
        if not more.strip() or not less.strip():
            excluded.append(Exclusion(file, line, "has an empty sentence"))
        elif more == less:
            excluded.append(Exclusion(file, line, "has two identical sentences"))
        else:
            pairs.append(
                CrowsPair(
                    item=str(row.get("idx", row.get("", f"{file}:{line}"))),
                    sent_more=more,
                    sent_less=less,
                    direction=str(row.get("stereo_antistereo", "")),
                    bias_type=str(row.get("bias_type", "")),
                    # Without a writer, every pair stands for itself.
                    writer=str(row.get("anon_writer") or f"{file}:{line}"),
                    defects=tuple(_defects(more, less, (more, less) in seen)),
                )
            )
        seen.add((more, less))
    return pairs, excluded


def _defects(more: str, less: str, duplicate: bool) -> list[str]:
    words_more, words_less = more.split(), less.split()
    edits = [
        block
        for block in difflib.SequenceMatcher(None, words_more, words_less, autojunk=False).get_opcodes()
        if block[0] != "equal"
    ]
    found = (
        duplicate,
        len(edits) > 1,
        len(words_more) != len(words_less),
        _ends_in_punctuation(more) != _ends_in_punctuation(less),
        any("  " in text or text != text.strip() for text in (more, less)),
        not (more + less).isascii(),
        more[0].isupper() != less[0].isupper(),
    )
    return [name for name, present in zip(DEFECTS, found, strict=True) if present]


def _ends_in_punctuation(text: str) -> bool:
    return text.rstrip()[-1] in ".!?"
