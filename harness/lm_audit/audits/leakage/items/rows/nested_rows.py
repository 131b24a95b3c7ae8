"""Rows whose cells hold more than a text: a stem and choices, a story in sentences, a passage of questions, a chat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from lm_audit.audits.given.flat_columns import unflattened
from lm_audit.audits.hub_rows import records, structured
from lm_audit.audits.leakage.items.column_names import CONTEXTS, OPTION_LISTS, QUESTIONS
from lm_audit.audits.leakage.items.columns import has_known_columns

Row = Mapping[str, Any]

_SENTENCE = re.compile(r"inputsentence([1-9])")
"""Columns of StoryCloze and its translations, by their names in small letters without underscores."""

_STRUCTURES = ("question", *OPTION_LISTS)
"""What tables made of JSON spread over columns: "choices.text", "options.0", "question.stem"."""

_RECORDS = ("data", "doc", "item", "example", "sample")
"""What a record in a row is called that holds all of a question."""

_CHATS = ("messages", "conversations", "conversation", "prompt", "input")
"""Columns that may hold the turns of a chat."""
_REPLY = ("assistant", "gpt", "model")

_SINGULAR = {"questions": "question", "answers": "answer"}


def plain_rows(row: Row) -> Iterator[Row]:
    """The row as one row a question; the columns that are the same for all of them stand in each."""
    row = _unwrapped({**row, **unflattened(row, _STRUCTURES)})
    question = structured(row.get("question"))
    if isinstance(row.get("questions"), str | Mapping):  # as text, or as the hub stores lists of records
        asked = records(structured(row["questions"]))
        if isinstance(asked, list):
            row = {**row, **{name: structured(value) for name, value in row.items()}, "questions": asked}
    if isinstance(question, Mapping) and "stem" in question:  # ARC's first release
        yield {**row, "question": question["stem"], **{k: v for k, v in question.items() if k != "stem"}}
    elif is_nested(row):
        yield from _of_passage(row)
    else:
        yield of_chat(row) or _of_story(row) or row


def _unwrapped(row: Row) -> Row:
    """The row with the columns of the record in it that has a question's, where it has none itself."""
    name = next((one for one in _RECORDS if isinstance(row.get(one), Mapping) and _is_known(tuple(row[one]))), None)
    if name is None or _is_known(tuple(row)):
        return row
    return {**{other: value for other, value in row.items() if other != name}, **row[name]}


@lru_cache(maxsize=64)
def _is_known(names: tuple[str, ...]) -> bool:
    return has_known_columns(names)


def is_nested(row: Row) -> bool:
    """Whether a row is a passage with several questions (the first release of RACE, QuALITY)."""
    questions = row.get("questions")
    if not isinstance(questions, list) or not questions or not set(CONTEXTS) & set(row):
        return False
    return all(isinstance(one, Mapping) for one in questions) or _options_of(row) is not None


def _options_of(row: Row) -> list[Any] | None:
    """The lists of options, one for each question of a row; ``None`` where they are no such lists."""
    questions, options = row["questions"], row.get("options", row.get("choices"))
    alike = isinstance(options, list) and len(options) == len(questions)
    return options if alike and all(isinstance(one, list | Mapping) for one in options or ()) else None


def _of_passage(row: Row) -> Iterator[Row]:
    questions = row["questions"]
    if all(isinstance(one, Mapping) for one in questions):
        shared = {name: value for name, value in row.items() if name != "questions"}
        for one in questions:
            yield {**shared, **one}
        return
    lists = {name for name, value in row.items() if isinstance(value, list) and len(value) == len(questions)}
    for k in range(len(questions)):
        yield {_SINGULAR.get(name, name): value[k] if name in lists else value for name, value in row.items()}


def of_chat(row: Row) -> Row | None:
    """The row of a conversation of one question, and at most one reply behind it; ``None`` for any other row."""
    for name in _CHATS:
        turns = records(structured(row[name])) if name in row else None
        if not isinstance(turns, list) or not all(isinstance(turn, Mapping) for turn in turns):
            continue
        said = [
            (str(turn.get("role", turn.get("from"))).lower(), turn.get("content", turn.get("value"))) for turn in turns
        ]
        said = [(role, text) for role, text in said if role != "system"]
        roles = [role for role, _ in said]
        if roles[:1] not in (["user"], ["human"]) or len(said) > 2 or (roles[1:] and roles[1] not in _REPLY):
            continue
        rest = {other: value for other, value in row.items() if other != name}
        if any(isinstance(text, str) and other.lower() in QUESTIONS for other, text in rest.items()):
            return None  # It is the prompt of a log, beside the question that it asks.
        return {"question": said[0][1], **({"answer": said[1][1]} if len(said) > 1 else {}), **rest}
    return None


def _of_story(row: Row) -> Row | None:
    """The row of a story in numbered sentences, as one question; ``None`` for any other row."""
    sentences = _sentences(tuple(row))
    texts = [row[name] for name in sentences]
    if len(texts) < 2 or not all(isinstance(text, str) for text in texts):
        return None
    rest = {name: value for name, value in row.items() if name not in sentences}
    return {"question": " ".join(text.strip() for text in texts), **rest}


@lru_cache(maxsize=64)
def _sentences(names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a story's sentences, in their order; rows of a set have the same columns."""
    found = {match[1]: name for name in names if (match := _SENTENCE.fullmatch(name.lower().replace("_", "")))}
    return tuple(found[number] for number in sorted(found))
