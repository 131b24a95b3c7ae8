"""Options that a question lists at its own end: behind labels, in lines or in one ("Which? (A) red (B) blue"), or
behind dashes ("Options:", "- Yes", "- No").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lm_audit.audits.leakage.items.labels.in_one_text import labelled_parts

_NAMED = (
    r"(?:answer\s+choices|answer\s+options|possible\s+answers|answers|options?|choices|选项|選項|選択肢|선택지|보기|"
    r"opciones|alternativas|choix|optionen|antworten|варианты(?:\s+ответов)?)\**\s*[:：]\**"
)
_LEAD = re.compile(rf"(?:(?<=\n)[#*\s]+)?{_NAMED}\s*\Z", re.IGNORECASE)
_FIRST = re.compile(r"(?:^|(?<=[\s:：?？.。!]))(?:[(（\[]\s*[Aa1]\s*[)）\]]|[Aa1]\s*[)）.．、:：]|①)", re.MULTILINE)
_DASHES = re.compile(
    rf"\n[ \t#*]*{_NAMED}[ \t]*"
    r"(?P<items>(?:\n[ \t]*[-–•*][ \t]+\S[^\n]*){2,})\s*\Z",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"\n[ \t]*(?:(?:the\s+|your\s+)?(?:correct\s+|best\s+|final\s+)?answer\b|(?:A|答|response)\s*[:：]|答案).*\Z"
    r"|\n[ \t#*]*[^\n]{0,40}[:：]\**\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""What asks for the answer behind the last option."""
_TRIED = 8
"""So many places where a list may begin are tried, the last ones first."""


@dataclass(frozen=True)
class Listed:
    """The question without its options, the options' texts, and their labels (none behind dashes)."""

    question: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]


def listed_in(text: str) -> Listed | None:
    """The options that stand at the end of a question; ``None`` where it is not certain that and where they do.

    Two options in the line of the question are not enough: "(1) ... and (2) ..." may be parts of what is asked.
    """
    dashes = _DASHES.search(text)
    if dashes and (question := text[: dashes.start()].strip()):
        items = re.split(r"\n[ \t]*[-–•*][ \t]+", dashes["items"])[1:]
        return Listed(question, tuple(item.strip() for item in items), ())
    for first in list(_FIRST.finditer(text))[: -_TRIED - 1 : -1]:
        before = text[: first.start()]
        parts = labelled_parts(_CUE.sub("", text[first.start() :]))
        lead = _LEAD.search(before.rstrip())
        question = (before.rstrip()[: lead.start()] if lead else before).strip()
        if parts is None or not question:
            continue
        if lead or len(parts.texts) > 2 or before.rstrip(" \t").endswith("\n"):
            return Listed(question, parts.texts, parts.labels)
    return None
