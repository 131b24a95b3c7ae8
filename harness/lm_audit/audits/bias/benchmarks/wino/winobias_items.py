"""WinoBias lines as coreference questions (Zhao et al. 2018).

A line brackets the antecedent and the pronoun; the other candidate is the other one of the corpus' forty occupations
(facts of the corpus, from labour statistics) that the sentence names. A few lines bracket the pronoun twice, or not
exactly two spans: the first bracketed occupation and the first bracketed pronoun count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lm_audit.audits.bias.benchmarks.exclusions import Exclusion, parse_each
from lm_audit.audits.bias.benchmarks.published_columns import published_rows
from lm_audit.audits.bias.benchmarks.text_fields import text_field
from lm_audit.audits.bias.benchmarks.wino.coreference import Question
from lm_audit.errors import DataError

MALE_OCCUPATIONS = frozenset(
    [
        "driver",
        "supervisor",
        "janitor",
        "cook",
        "mover",
        "laborer",
        "carpenter",
        "manager",
        "lawyer",
        "farmer",
        "salesperson",
        "guard",
        "mechanic",
        "analyst",
        "physician",
        "developer",
        "chief",
        "sheriff",
    ]
) | {"construction worker", "CEO"}
FEMALE_OCCUPATIONS = frozenset(
    [
        "attendant",
        "cashier",
        "teacher",
        "nurse",
        "assistant",
        "secretary",
        "auditor",
        "cleaner",
        "receptionist",
        "clerk",
        "counselor",
        "designer",
        "hairdresser",
        "writer",
        "housekeeper",
        "baker",
        "accountant",
        "editor",
        "librarian",
        "tailor",
    ]
)
_PRONOUNS = {"he": "male", "him": "male", "his": "male", "she": "female", "her": "female", "hers": "female"}
_PRONOUN = re.compile(r"\b(" + "|".join(_PRONOUNS) + r")\b", re.IGNORECASE)
_SPAN = re.compile(r"\[([^\[\]]*)\]")
_OCCUPATION = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, MALE_OCCUPATIONS | FEMALE_OCCUPATIONS), key=len, reverse=True)) + r")\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class WinoBiasItem:
    """A question with its condition: whether the pronoun's gender fits the occupation's majority (``pro``) or not.

    ``pair`` is shared by the two genders of a sentence: the line's number in its file, or the sentence without
    pronouns.
    """

    question: Question
    pair: str
    condition: str
    type: int
    gender: str


def parse_winobias(rows: Iterable[Mapping[str, object]]) -> tuple[list[WinoBiasItem], list[Exclusion]]:
    """The usable lines, and those that are not usable with the reason for each."""
    return parse_each(
        published_rows(rows, "winobias"),
        _item,
        lambda item: replace(item, pair="", condition="", question=replace(item.question, item="", answer=0)),
        lambda item: f"{item.condition}, {item.question.candidates[item.question.answer]}",
    )


def bracketed(tokens: Sequence[str], clusters: Sequence[Any]) -> str:
    """A line in the published form from the hub's: ``clusters`` holds first and last token of each span, in one row.

    Raises ``DataError`` where they are not that, or spans overlap.
    """
    if not isinstance(tokens, list | tuple) or not all(isinstance(token, str) for token in tokens):
        raise DataError(f"are {tokens!r:.80}; a list of texts is expected", field="tokens")
    listed: Sequence[Any] = clusters if isinstance(clusters, list | tuple) else ("",)
    if not all(re.fullmatch(r"-?[0-9]{1,9}", str(end)) for end in listed):
        raise DataError(f"are {clusters!r:.80}; numbers of tokens are expected", field="coreference_clusters")
    ends = [int(end) for end in listed]
    spans = sorted(zip(ends[::2], ends[1::2], strict=False))
    inside = all(0 <= first <= last < len(tokens) for first, last in spans)
    if len(ends) % 2 or not inside or any(a[1] >= b[0] for a, b in pairwise(spans)):
        raise DataError(
            f"are {ends} for {len(tokens)} tokens; spans that do not overlap are expected", field="coreference_clusters"
        )
    words = list(map(str, tokens))
    for first, last in spans:
        words[first] = "[" + words[first]
        words[last] += "]"
    return re.sub(r" ([.,;:!?'])", r"\1", " ".join(words))


def _item(row: Mapping[str, object], number: int) -> WinoBiasItem:
    line = text_field(row, "sentence")
    if re.sub(r"[^\[\]]", "", line).replace("[]", ""):
        raise DataError("has brackets that overlap or do not close", field="sentence")
    spans = [span.strip() for span in _SPAN.findall(line)]
    pronouns = [span for span in spans if span.lower() in _PRONOUNS]
    antecedents = [match.group(1) for span in spans if (match := _OCCUPATION.search(span))]
    if not pronouns or not antecedents:
        raise DataError(f"brackets {spans}; an occupation and a pronoun are expected", field="sentence")
    sentence = _SPAN.sub(r"\1", line)
    others = {match.lower() for match in _OCCUPATION.findall(sentence) if match.lower() != antecedents[0].lower()}
    if len(others) != 1:
        raise DataError(f"names {sorted(others)} beside {antecedents[0]!r}; one other occupation is expected")
    # Alphabetical, so that the place of a candidate says nothing about which one is right.
    candidates = sorted([antecedents[0].lower(), others.pop()])
    file = str(row.get("_file", "row"))
    return WinoBiasItem(
        question=Question(
            item=f"{file}:{row.get('_row', number)}",
            sentence=sentence,
            pronoun=pronouns[0],
            candidates=(f"the {candidates[0]}", f"the {candidates[1]}"),
            answer=candidates.index(antecedents[0].lower()),
        ),
        pair=f"{file.partition('_')[2]}:{row['index']}" if "index" in row else _PRONOUN.sub("_", sentence).lower(),
        condition=_one_of(row, "condition", ("pro", "anti")),
        type=int(_one_of(row, "type", ("1", "2"))),
        gender=_PRONOUNS[pronouns[0].lower()],
    )


def _one_of(row: Mapping[str, object], field: str, known: Sequence[str]) -> str:
    value = str(row[field]).strip().removesuffix(".0")
    if value not in known:
        raise DataError(f"is {row[field]!r:.60}; {' or '.join(known)} is expected", field=field)
    return value
