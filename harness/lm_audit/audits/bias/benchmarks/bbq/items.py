"""BBQ and CBBQ rows as typed items: which answer is unknown, and which one the stereotype would give.

BBQ: Parrish et al. 2022 (https://github.com/nyu-mll/BBQ). CBBQ: Huang and Xiong 2024. The target of bias is the
authors' own (``target_loc`` of their ``additional_metadata.csv``) where it is there, else follows from the row's
metadata and polarity (:mod:`lm_audit.audits.bias.benchmarks.bbq.groups`).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from lm_audit.audits.bias.benchmarks.bbq.groups import ANSWERS, stereotyped_answer, stereotyped_answer_chinese
from lm_audit.audits.bias.benchmarks.exclusions import Exclusion, parse_each
from lm_audit.audits.bias.benchmarks.published_columns import published_rows
from lm_audit.audits.bias.benchmarks.rows import unique_items
from lm_audit.audits.bias.benchmarks.text_fields import label_field, text_field
from lm_audit.errors import DataError
from lm_audit.shared.visible import seen

_POLARITY: dict[str, Literal["neg", "nonneg"]] = {
    **dict.fromkeys(("neg", "negative"), "neg"),
    **dict.fromkeys(("nonneg", "non_neg", "nonnegative", "non_negative"), "nonneg"),
}
_CONDITION: dict[str, Literal["ambig", "disambig"]] = {
    "ambig": "ambig",
    "ambiguous": "ambig",
    "disambig": "disambig",
    "disambiguous": "disambig",
    "disambiguated": "disambig",
}
_CHINESE_UNKNOWN = (
    "不知道", "无法确定", "未知", "无法判断", "不确定", "不能确定", "没有足够信息", "没有足够的信息", "信息不足",
    "无法得知", "不清楚", "无法回答", "不能判断", "未定", "无从得知",
)  # fmt: skip
_UNKNOWN = frozenset(
    (
        "unknown", "cannot be determined", "can't be determined", "not answerable", "not known", "not enough info",
        "not enough information", "cannot answer", "can't answer", "undetermined",
    )
)  # fmt: skip
"""How BBQ's authors word the third answer."""
_CHINESE = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_LANGUAGES = {name: name for name in ("ko", "es", "ca")}
"""Beside English and Chinese: languages whose sets are read (:mod:`~.other_releases`)."""
_TARGET_COLUMNS = ("target_loc", "target_label")


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
    def in_other_words(self) -> bool:
        """Whether an item that is asked in English has no English "unknown" of BBQ's authors: it may be no English."""
        return self.language == "en" and self.answers[self.unknown].lower().strip(" .") not in _UNKNOWN

    @property
    def aligned(self) -> bool:
        """Whether the right answer is the stereotype's too (meaningful for disambiguated items)."""
        return self.label == self.target


def parse_bbq(rows: Iterable[Mapping[str, object]]) -> tuple[list[BBQItem], list[Exclusion]]:
    """The usable items, and the rows that are not usable with the reason for each."""
    rows = published_rows(rows, "bbq")
    names = unique_items(("", f"{row.get('_file', 'row')}:{row.get('_row', i)}") for i, row in enumerate(rows, start=1))
    folded = _targets_follow_polarity(rows)
    return parse_each(
        rows,
        lambda row, number: _item(row, number, names[number - 1], folded),
        _content,
        lambda item: f"right {item.label}, biased {item.target}",
    )


def _content(item: BBQItem) -> Hashable:
    return replace(item, item="", question_index="", label=0, target=0, unknown=0)


def _item(row: Mapping[str, object], number: int, name: str, folded: bool) -> BBQItem:
    answers = tuple(text_field(row, name) for name in ANSWERS)
    if len(set(map(seen, answers))) < len(answers):
        raise DataError(f"two of the answers {answers} are the same; three are expected")
    polarity = _known(_POLARITY, row, "question_polarity")
    chinese = row.get("answer_info") is None
    if chinese and not _CHINESE.search("".join(answers)):
        raise DataError("is absent: it says of which group each answer is, as in BBQ's own files", field="answer_info")
    unknown = _unknown_chinese(answers) if chinese else _unknown(row)
    if not chinese:
        _check_tagged_answers(row)
    condition, label = _known(_CONDITION, row, "context_condition"), _label(row)
    _check_label(condition, label, unknown)
    return BBQItem(
        item=name,
        category=label_field(row, "category"),
        question_index=label_field(row, "question_index") or str(number),
        polarity=polarity,
        condition=condition,
        context=text_field(row, "context"),
        question=text_field(row, "question"),
        answers=(answers[0], answers[1], answers[2]),
        label=label,
        unknown=unknown,
        target=_target(row, unknown, polarity, folded, chinese=chinese),
        proxy=not chinese and _names_only(row, unknown),
        language="zh" if chinese else _LANGUAGES.get(str(row.get("language")), "en"),
    )


def _target(row: Mapping[str, object], unknown: int, polarity: str, folded: bool, *, chinese: bool) -> int:
    given = _given_target(row)
    if given is not None and given != unknown:
        return given if folded else _by_polarity(given, unknown, polarity)
    found = stereotyped_answer_chinese(row, unknown) if chinese else stereotyped_answer(row, unknown)
    return _by_polarity(found, unknown, polarity)


def _by_polarity(stereotyped: int, unknown: int, polarity: str) -> int:
    return stereotyped if polarity == "neg" else ({0, 1, 2} - {unknown, stereotyped}).pop()


def _given_target(row: Mapping[str, object]) -> int | None:
    """The target that the row itself states: an index, or ``None`` for "NA" and for rows without one."""
    for column in _TARGET_COLUMNS:
        text = str(row.get(column)).strip().removesuffix(".0")
        if text in ("0", "1", "2"):
            return int(text)
    return None


def _targets_follow_polarity(rows: Iterable[Mapping[str, object]]) -> bool:
    """Whether the stated targets are biased answers (BBQ's final metadata), or the stereotyped group's (its first).

    Questions that are not negative tell the two apart, where the row's own metadata knows the group.
    """
    biased = stereotyped = 0
    for row in rows:
        given = _given_target(row)
        if given is None or _POLARITY.get(str(row.get("question_polarity"))) != "nonneg" or "answer_info" not in row:
            continue
        try:
            group = stereotyped_answer(row, _unknown(row))
        except DataError:
            continue
        stereotyped += given == group
        biased += given != group
    return biased >= stereotyped


def _known(table: Mapping[str, object], row: Mapping[str, object], field: str) -> Any:
    found = table.get(str(row[field]).strip().lower().replace("-", "_"))
    if found is None:
        raise DataError(f"is {row.get(field)!r}; one of {sorted(table)} is expected", field=field)
    return found


def _label(row: Mapping[str, object]) -> int:
    """The place of the right answer, by its number, its letter or its text."""
    label = str(row["label"]).strip()
    number = label.removeprefix("ans").removesuffix(".0")
    places = ("0", "1", "2"), ("A", "B", "C"), tuple(_plain(row[name]) for name in ANSWERS)
    for said, names in zip((number, label.upper(), _plain(label)), places, strict=True):
        if said in names:
            return names.index(said)
    raise DataError(f"is {row['label']!r:.80}; 0, 1 or 2 is expected, A, B or C, or an answer's text", field="label")


def _check_label(condition: str, label: int, unknown: int) -> None:
    """An ambiguous context names nobody, a disambiguated one somebody; a label that says otherwise is wrong."""
    if condition == "ambig" and label != unknown:
        raise DataError(f"is {label}, but the context is ambiguous: only answer {unknown} is right", field="label")
    if condition == "disambig" and label == unknown:
        raise DataError(f"is {label}, the unknown, but the context is disambiguated and names one", field="label")


def _unknown(row: Mapping[str, object]) -> int:
    info = row["answer_info"]
    if not isinstance(info, Mapping) or not all(
        isinstance(info.get(name), list | tuple) and info[name] for name in ANSWERS
    ):
        raise DataError("must hold a list of texts for each of ans0, ans1 and ans2", field="answer_info")
    tagged = [index for index, name in enumerate(ANSWERS) if str(info[name][-1]).strip().lower() == "unknown"]
    found = tagged or [i for i, name in enumerate(ANSWERS) if str(row[name]).strip(" .").lower() in _UNKNOWN]
    if len(found) != 1:
        raise DataError(f"marks {len(found)} answers as unknown; exactly one is expected", field="answer_info")
    return found[0]


def _check_tagged_answers(row: Mapping[str, Any]) -> None:
    """A copy whose answers stand in another order than their tags would have its direction reversed."""
    texts = [_plain(row[name]) for name in ANSWERS]
    tagged = [_plain(row["answer_info"][name][0]) for name in ANSWERS]
    for place, text in enumerate(texts):
        elsewhere = [ANSWERS[k] for k, other in enumerate(tagged) if k != place and other == text]
        if elsewhere and tagged[place] != text:
            raise DataError(
                f"tags {row[ANSWERS[place]]!r:.80}, the text of {ANSWERS[place]}, as {elsewhere[0]}: texts and tags"
                " stand in different orders",
                field="answer_info",
            )


def _plain(text: object) -> str:
    words = str(text).lower().replace("{", "").replace("}", "").strip(" .").split()
    return " ".join(words[1:] if words[:1] == ["the"] else words)


def _names_only(row: Mapping[str, Any], unknown: int) -> bool:
    tags = [row["answer_info"][name] for index, name in enumerate(ANSWERS) if index != unknown]
    return all(len(str(tag[0]).split()) >= 2 and str(tag[0]).istitle() and tag[0] != tag[-1] for tag in tags)


def _unknown_chinese(answers: tuple[str, ...]) -> int:
    found = [index for index, answer in enumerate(answers) if answer.strip("。 ") in _CHINESE_UNKNOWN]
    if len(found) != 1:
        raise DataError(f"{len(found)} of the answers {answers} say 'unknown'; exactly one is expected")
    return found[0]
