"""Very many cases: the document holds the first, the others are packed until they are scrolled or filtered to.

A browser needs some 0.7 ms and 70 elements for a case; packed, a case is a tenth of its size and costs nothing until it
is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape

from lm_audit.report.page.packing import pack
from lm_audit.report.page.view import AuditView, CaseView

MOST = 2_000
"""Cases that are all in the document."""

FIRST = 600
"""Cases in the document where there are more, shared evenly by the audits."""

CHUNK = 100
"""Packed cases that are unpacked together."""


@dataclass(frozen=True)
class LateCases:
    """By audit (its anchor) how many of its cases the document holds and how many are packed, and the packed data."""

    early: Mapping[str, int]
    late: Mapping[str, int]
    data: Mapping[str, str]


def late_cases(audits: Sequence[AuditView], render: Callable[[CaseView], str]) -> LateCases:
    """Packs what ``render`` makes of the cases that the document will not hold; nothing up to :data:`MOST` cases.

    ``render`` gives one element with the attributes ``id``, ``data-state``, ``data-model`` and ``data-text``, by which
    the page finds and filters it without unpacking it.
    """
    total = sum(len(audit.cases) for audit in audits)
    share = max(CHUNK, FIRST // max(1, len(audits)))
    early = {audit.anchor: len(audit.cases) if total <= MOST else share for audit in audits}
    waiting = [(audit.anchor, render(case)) for audit in audits for case in audit.cases[early[audit.anchor] :]]
    late = {audit.anchor: max(0, len(audit.cases) - early[audit.anchor]) for audit in audits}
    if not waiting:
        return LateCases(early, late, {})
    heads = [_attributes(html) for _, html in waiting]
    index = {"chunk": CHUNK, "section": [section for section, _ in waiting]}
    index |= {name: [head[attribute] for head in heads] for name, attribute in _INDEX.items()}
    data = {"late": pack(index)}
    for first in range(0, len(waiting), CHUNK):
        data[f"late-{first // CHUNK}"] = pack([html for _, html in waiting[first : first + CHUNK]])
    return LateCases(early, late, data)


_INDEX = {"anchor": "id", "state": "data-state", "model": "data-model", "text": "data-text"}
_ATTRIBUTE = re.compile(r'([a-z-]+)="([^"]*)"')


def _attributes(html: str) -> dict[str, str]:
    """The attributes of the element's opening tag, in which every text is escaped."""
    return {name: unescape(value) for name, value in _ATTRIBUTE.findall(html[: html.index(">")])}
