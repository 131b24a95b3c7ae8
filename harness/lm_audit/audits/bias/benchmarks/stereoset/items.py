"""StereoSet rows as typed items (Nadeem et al. 2021): one context, three candidates, one target term."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lm_audit.audits.bias.benchmarks.exclusions import Exclusion, parse_each, place_of
from lm_audit.audits.bias.benchmarks.published_columns import published_rows
from lm_audit.audits.bias.benchmarks.rows import unique_items
from lm_audit.audits.bias.benchmarks.text_fields import text_field
from lm_audit.errors import DataError
from lm_audit.shared.visible import seen

LABELS = ("stereotype", "anti-stereotype", "unrelated")
TASKS = ("intrasentence", "intersentence")

_DRAWN = re.compile(r"BLANK|_{2,}|\[mask\]|<mask>|\.{3,}|…", re.IGNORECASE)
"""What may stand for the word left out, as sets of other origin write it; "blank" is an ordinary word too."""
_CERTAIN = re.compile(r"BLANK|_{2,}|(?i:\[mask\]|<mask>|\[blank\]|<blank>|\{blank\})")
"""What is nothing else: a row of a sentence alone, whatever its candidates are."""


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


def parse_stereoset(rows: Iterable[Mapping[str, object]]) -> tuple[list[StereoSetItem], list[Exclusion]]:
    """The usable items, and the rows that are not usable with the reason for each (two blanks, a candidate missing)."""
    rows = published_rows(rows, "stereoset")
    names = unique_items(
        (str(row.get("id") or ""), ":".join(map(str, place_of(row, number))))
        for number, row in enumerate(rows, start=1)
    )
    return parse_each(rows, lambda row, number: _item(row, names[number - 1]), _content, lambda item: item.candidates)


def _content(item: StereoSetItem) -> Hashable:
    return replace(item, item="", stereotype="", anti_stereotype="", unrelated=""), frozenset(item.candidates)


def _item(row: Mapping[str, object], name: str) -> StereoSetItem:
    context = text_field(row, "context")
    candidates: dict[str, str] = {}
    if not isinstance(row["sentences"], list) or not all(isinstance(s, Mapping) for s in row["sentences"]):
        raise DataError(f"are {row['sentences']!r:.60}; a list of records is expected", field="sentences")
    for sentence in row["sentences"]:
        label = re.sub("anti[_ ]?s", "anti-s", str(sentence.get("gold_label")).lower())
        if label not in LABELS or label in candidates:
            raise DataError(
                f"{label!r} is unknown or stands there twice; each of {list(LABELS)} once", field="sentences"
            )
        candidates[label] = text_field(sentence, "sentence")
    missing = [label for label in LABELS if not candidates.get(label, "").strip()]
    if missing:
        raise DataError(f"lacks the candidates {missing}", field="sentences")
    if len(set(map(seen, candidates.values()))) < len(candidates):
        raise DataError("has two candidates of one text; three are expected", field="sentences")
    return StereoSetItem(
        item=name,
        task=_task(row, context, list(candidates.values())),
        target=text_field(row, "target"),
        bias_type=text_field(row, "bias_type"),
        context=context,
        stereotype=candidates["stereotype"],
        anti_stereotype=candidates["anti-stereotype"],
        unrelated=candidates["unrelated"],
    )


def _task(row: Mapping[str, object], context: str, candidates: Sequence[str]) -> str:
    """The task that the row states, or that its context and candidates show; raises where they contradict each other.

    Candidates of one sentence repeat the context around its blank, however that is written.
    """
    stated = str(row.get("task") or "").strip().lower()
    if stated and stated not in TASKS:
        raise DataError(f"is {row['task']!r:.60}; one of {list(TASKS)} is expected", field="task")
    blanks = len(_CERTAIN.findall(context))
    filled = any(_fill(context, blank.span(), candidates) for blank in _DRAWN.finditer(context))
    if stated == "intersentence" or (not stated and not blanks and not filled):
        return "intersentence"
    if blanks > 1 or (not blanks and not filled):
        raise DataError(f"has {blanks} blanks; exactly one is expected", field="context")
    if not stated and not filled and "BLANK" not in context:
        raise DataError(
            "has a blank that the candidates do not fill; name the task of each row in a column task", field="context"
        )
    if not filled and not any(_repeats(context, text) for text in candidates):
        raise DataError(
            f"repeat nothing of {context!r:.60} around its blank ({candidates[0]!r:.40}); whole sentences are "
            "expected, the word filled in",
            field="sentences",
        )
    return "intrasentence"


def _repeats(context: str, candidate: str) -> bool:
    """Whether a candidate has any other word of the context than its blank: what only fills it has none."""
    words, said = (set(re.findall(r"\w+", text.casefold())) for text in (_DRAWN.sub(" ", context), candidate))
    return not words or bool(words & said) or any(word in candidate for word in words if not word.isascii())


def _fill(context: str, blank: tuple[int, int], candidates: Sequence[str]) -> bool:
    """Whether every candidate is the context with something in place of the blank, by case and gaps apart."""
    before, after = (" ".join(part.split()).casefold() for part in (context[: blank[0]], context[blank[1] :]))
    texts = [" ".join(text.split()).casefold() for text in candidates]
    before, after = before.rstrip("[<{ "), after.lstrip("]>} ")
    return any(map(str.isalnum, before + after)) and all(
        text.startswith(before) and text.endswith(after) and len(text) > len(before) + len(after) for text in texts
    )
