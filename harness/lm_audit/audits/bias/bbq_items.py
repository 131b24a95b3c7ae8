"""BBQ and CBBQ rows as typed items: which answer is unknown, and which one the stereotype would give.

BBQ: Parrish et al. 2022 (https://github.com/nyu-mll/BBQ). CBBQ: Huang and Xiong 2024. The target of bias is defined
here from the row's own metadata and polarity, because the published ``target_loc`` file is absent for most copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lm_audit.audits.bias.exclusions import Exclusion, parse_each
from lm_audit.errors import DataError

ANSWERS = ("ans0", "ans1", "ans2")
_POLARITY: dict[str, Literal["neg", "nonneg"]] = {"neg": "neg", "nonneg": "nonneg", "non_neg": "nonneg"}
_CONDITION: dict[str, Literal["ambig", "disambig"]] = {
    "ambig": "ambig",
    "ambiguous": "ambig",
    "disambig": "disambig",
    "disambiguous": "disambig",
}
_CHINESE_UNKNOWN = ("不知道", "无法确定", "未知", "无法判断", "不确定", "不能确定")
_CHINESE_NEGATIONS = ("非{}", "没有{}", "不是{}", "{}的朋友")


@dataclass(frozen=True)
class BBQItem:
    """One question with its three answers in the published order.

    ``label`` is the right answer, ``unknown`` the one that declines, ``target`` the one that a biased answerer gives:
    the stereotyped group's for a negative question, the other group's for a non-negative one. ``proxy`` marks items
    whose groups are named only through proper names.
    """

    item: str
    category: str
    question_index: str
    polarity: Literal["neg", "nonneg"]
    condition: Literal["ambig", "disambig"]
    context: str
    question: str
    answers: tuple[str, str, str]
    label: int
    unknown: int
    target: int
    proxy: bool = False
    language: str = "en"

    @property
    def cluster(self) -> str:
        """The template the item was filled from; items of one template are not independent."""
        return f"{self.category}:{self.question_index}"

    @property
    def aligned(self) -> bool:
        """Whether the right answer is the stereotype's too (meaningful for disambiguated items)."""
        return self.label == self.target


def parse_bbq(rows: Iterable[Mapping[str, Any]]) -> tuple[list[BBQItem], list[Exclusion]]:
    """The usable items, and the rows that are not usable with the reason for each."""
    return parse_each(rows, _item)


def _item(row: Mapping[str, Any], number: int) -> BBQItem:
    answers = tuple(str(row[name]) for name in ANSWERS)
    polarity = _known(_POLARITY, row, "question_polarity")
    chinese = "answer_info" not in row
    unknown = _unknown_chinese(answers) if chinese else _unknown(row)
    stereotyped = _stereotyped_chinese(answers, unknown) if chinese else _stereotyped(row, unknown)
    other = ({0, 1, 2} - {unknown, stereotyped}).pop()
    return BBQItem(
        item=f"{row.get('_file', 'row')}:{row.get('_row', number)}",
        category=str(row.get("category", "")),
        question_index=str(row.get("question_index", number)),
        polarity=polarity,
        condition=_known(_CONDITION, row, "context_condition"),
        context=str(row["context"]),
        question=str(row["question"]),
        answers=(answers[0], answers[1], answers[2]),
        label=_label(row),
        unknown=unknown,
        target=stereotyped if polarity == "neg" else other,
        proxy=not chinese and _names_only(row, unknown),
        language="zh" if chinese else "en",
    )


def _known(table: Mapping[str, Any], row: Mapping[str, Any], field: str) -> Any:
    try:
        return table[str(row[field])]
    except KeyError as error:
        raise DataError(f"is {row.get(field)!r}; one of {sorted(table)} is expected", field=field) from error


def _label(row: Mapping[str, Any]) -> int:
    label = str(row["label"])
    if label not in ("0", "1", "2"):
        raise DataError(f"is {label!r}; 0, 1 or 2 is expected", field="label")
    return int(label)


def _unknown(row: Mapping[str, Any]) -> int:
    found = [index for index, name in enumerate(ANSWERS) if row["answer_info"].get(name, ["", ""])[-1] == "unknown"]
    if len(found) != 1:
        raise DataError(f"marks {len(found)} answers as unknown; exactly one is expected", field="answer_info")
    return found[0]


def _stereotyped(row: Mapping[str, Any], unknown: int) -> int:
    groups = {str(group).lower() for group in (row.get("additional_metadata") or {}).get("stereotyped_groups") or ()}
    if not groups:
        raise DataError("is absent, so no answer can be called biased", field="additional_metadata.stereotyped_groups")
    found = [
        index
        for index, name in enumerate(ANSWERS)
        if index != unknown and groups & {str(tag).lower() for tag in row["answer_info"][name]}
    ]
    if len(found) != 1:
        raise DataError(f"{sorted(groups)} match {len(found)} answers; exactly one is expected", field="answer_info")
    return found[0]


def _names_only(row: Mapping[str, Any], unknown: int) -> bool:
    tags = [row["answer_info"][name] for index, name in enumerate(ANSWERS) if index != unknown]
    return all(len(str(tag[0]).split()) >= 2 and str(tag[0]).istitle() and tag[0] != tag[-1] for tag in tags)


def _unknown_chinese(answers: tuple[str, ...]) -> int:
    found = [index for index, answer in enumerate(answers) if answer.strip("。 ") in _CHINESE_UNKNOWN]
    if len(found) != 1:
        raise DataError(f"{len(found)} of the answers {answers} say 'unknown'; exactly one is expected")
    return found[0]


def _stereotyped_chinese(answers: tuple[str, ...], unknown: int) -> int:
    # CBBQ names the group in one answer and its absence in the other; its metadata uses other words than the answers.
    first, second = (index for index in range(3) if index != unknown)
    for group, other in ((first, second), (second, first)):
        if any(answers[other].startswith(form.format(answers[group])) for form in _CHINESE_NEGATIONS):
            return group
    raise DataError(f"neither of {answers[first]!r} and {answers[second]!r} negates the other: no target of bias")
