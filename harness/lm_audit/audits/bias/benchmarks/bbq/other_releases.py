"""Sets made after BBQ in other languages, brought into its columns: KoBBQ, EsBBQ, CaBBQ.

KoBBQ (Jin et al. 2024, https://github.com/naver-ai/KoBBQ) has the three answers in one list, the right and the biased
one as texts, and everything else in the row's name: ``age-001a-002-amb-bsd``. EsBBQ and CaBBQ (Ruiz-Fernández et al.
2025, https://github.com/langtech-bsc/EsBBQ-CaBBQ) have BBQ's columns, but the groups beside and not within
``additional_metadata``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lm_audit.audits.bias.benchmarks.bbq.groups import ANSWERS
from lm_audit.audits.hub_rows import structured

Row = dict[str, Any]

_KOBBQ = ("sample_id", "choices", "biased_answer", "answer")
_ESBBQ = ("question_type", "template_id")
"""Columns of EsBBQ and CaBBQ that BBQ has not: copies of it may have the groups beside too."""
_NAMED = re.compile(r"(?P<category>.+?)-(?P<template>[0-9]+)[a-z]?-.*?-?(?P<context>amb|dis)-(?P<question>bsd|cnt)")
_UNKNOWN = re.compile(
    r"(?:답을\s*)?(?:알\s*수\s*없(?:음|다|습니다)|판단\s*(?:할\s*수\s*없음|불가)|모름|unknown)\.?", re.IGNORECASE
)
"""How KoBBQ's authors word the third answer."""


def in_columns_of_bbq(row: Mapping[str, Any]) -> Row:
    """What the row lacks of BBQ's columns and says in others; empty for a row of BBQ itself."""
    if all(row.get(name) is not None for name in _KOBBQ) and row.get("question_polarity") is None:
        return _of_kobbq(row)
    tags = _tags_apart(row)
    groups = row.get("stereotyped_groups", row.get("stereotyped_group"))
    if groups is None or row.get("additional_metadata") is not None:
        return {} if tags is None else {"answer_info": tags}
    info = structured(row.get("answer_info")) if tags is None else tags
    beside: Row = {"additional_metadata": {"stereotyped_groups": structured(groups)}, "answer_info": info}
    if not any(name in row for name in _ESBBQ):
        return beside
    return beside | {
        # Only Spanish begins a question with a mark of its own.
        "language": "es" if str(row.get("question") or "").lstrip().startswith("¿") else "ca",
        "answer_info": {name: _last_tag(value) for name, value in info.items()} if isinstance(info, Mapping) else info,
    }


def _tags_apart(row: Mapping[str, Any]) -> Row | None:
    """The answers' words and tags in columns of their own, as BBQ's authors' tables of results have them."""
    if row.get("answer_info") is not None or not all(
        f"{name}_{part}" in row for name in ANSWERS for part in ("text", "info")
    ):
        return None
    return {name: [row[f"{name}_text"], row[f"{name}_info"]] for name in ANSWERS}


def _last_tag(info: object) -> object:
    """Of an answer's tags the last one, as the authors count them: "mujer, anciana" is of the group "anciana"."""
    if not isinstance(info, list | tuple) or not info or not isinstance(info[-1], str):
        return info
    return [*info[:-1], info[-1].rpartition(",")[2].strip()]


def _of_kobbq(row: Mapping[str, Any]) -> Row:
    named = _NAMED.fullmatch(str(row["sample_id"]).strip())
    choices = structured(row["choices"])
    if named is None or not isinstance(choices, list | tuple) or len(choices) != len(ANSWERS):
        return {}
    texts = [str(choice).strip() for choice in choices]
    places = {text: place for place, text in enumerate(texts)}
    return {
        "language": "ko",
        "category": row.get("category") or named["category"],
        "question_index": named["template"],
        "context_condition": {"amb": "ambig", "dis": "disambig"}[named["context"]],
        "question_polarity": {"bsd": "neg", "cnt": "nonneg"}[named["question"]],
        **dict(zip(ANSWERS, texts, strict=True)),
        "answer_info": {
            name: [text, "unknown" if _UNKNOWN.fullmatch(text) else text]
            for name, text in zip(ANSWERS, texts, strict=True)
        },
        "label": places.get(str(row["answer"]).strip(), row["answer"]),
        "target_label": places.get(str(row["biased_answer"]).strip(), row["biased_answer"]),
    }
