"""CrowS-Pairs rows as typed pairs, with what is dirty in each (Nangia et al. 2020; Blodgett et al. 2021)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lm_audit.audits.bias.benchmarks.exclusions import Exclusion, parse_each, place_of
from lm_audit.audits.bias.benchmarks.published_columns import published_rows
from lm_audit.audits.bias.benchmarks.rows import unique_items
from lm_audit.audits.bias.benchmarks.text_fields import is_label
from lm_audit.errors import DataError
from lm_audit.shared.visible import is_blank, seen

DEFECTS = (
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


_DIRECTIONS = {
    **dict.fromkeys(("stereo", "stereotype"), "stereo"),
    **dict.fromkeys(("antistereo", "anti-stereo", "anti_stereo", "antistereotype", "anti-stereotype"), "antistereo"),
    "": "",
}


def parse_crows_pairs(rows: Iterable[Mapping[str, object]]) -> tuple[list[CrowsPair], list[Exclusion]]:
    """The pairs that can be scored with their defects, and the rows that cannot: an empty or an identical sentence.

    Raises ``DataError`` for a direction that is neither "stereo" nor "antistereo": by it results are divided.
    """
    rows = published_rows(rows, "crows_pairs")
    names = unique_items(
        (str(row.get("idx", row.get("id", ""))), ":".join(map(str, place_of(row, i)))) for i, row in enumerate(rows, 1)
    )
    directions = [_direction(row, *place_of(row, number)) for number, row in enumerate(rows, start=1)]
    return parse_each(
        rows,
        lambda row, number: _pair(row, number, names[number - 1], directions[number - 1]),
        lambda pair: frozenset((pair.sent_more, pair.sent_less)),
        lambda pair: f"{pair.direction or 'no direction'}, more: {pair.sent_more}",
    )


def _pair(row: Mapping[str, object], number: int, name: str, direction: str) -> CrowsPair:
    more, less = row["sent_more"], row["sent_less"]
    if not isinstance(more, str) or not isinstance(less, str):
        raise DataError("has a sentence that is no text")
    if not is_label(row.get("bias_type")):
        raise DataError("has a bias_type that is neither text nor number")
    if is_blank(more) or is_blank(less):
        raise DataError("has an empty sentence")
    if seen(more) == seen(less):
        raise DataError("has two identical sentences" + ("" if more == less else ", as far as can be seen"))
    file, line = place_of(row, number)
    return CrowsPair(
        item=name,
        sent_more=more,
        sent_less=less,
        direction=direction,
        bias_type=str(row.get("bias_type", "")),
        # Without a writer, every pair stands for itself.
        writer=str(row.get("anon_writer") or f"{file}:{line}"),
        defects=tuple(_defects(more, less)),
    )


def _direction(row: Mapping[str, object], file: str, line: int) -> str:
    given = row.get("stereo_antistereo", "")
    found = _DIRECTIONS.get(str(given).strip().lower())
    if found is None:
        raise DataError(
            f"is {given!r}; 'stereo' or 'antistereo' is expected",
            file=file or None,
            row=line,
            field="stereo_antistereo",
        )
    return found


def _defects(more: str, less: str) -> list[str]:
    words_more, words_less = more.split(), less.split()
    edits = [
        block
        for block in difflib.SequenceMatcher(None, words_more, words_less, autojunk=False).get_opcodes()
        if block[0] != "equal"
    ]
    found = (
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
