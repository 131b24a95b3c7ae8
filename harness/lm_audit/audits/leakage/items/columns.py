"""From a row of any multiple-choice set to an Item: which columns hold the question, the options, the answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_audit.audits.hub_rows import structured
from lm_audit.audits.leakage.items.answers.marks import MARKED_COLUMNS, marks_of
from lm_audit.audits.leakage.items.answers.readings import LABELS, LETTER, TEXTS, Readings, of_marks, readings
from lm_audit.audits.leakage.items.cells import Unusable, text_of, whole_characters
from lm_audit.audits.leakage.items.column_names import (
    ANSWERS,
    ANSWERS_IF_READABLE,
    BEGINNINGS,
    CONTEXTS,
    IDS,
    OPTION_FORMS,
    OPTION_FORMS_WITHOUT_A_LIST,
    OPTION_LISTS,
    OPTION_LISTS_BESIDE_A_KEY,
    QUESTIONS,
    RIGHTS,
    WRONG_FORMS,
    WRONG_LISTS,
)
from lm_audit.audits.leakage.items.item import LETTERS, Item
from lm_audit.audits.leakage.items.labels.in_a_question import listed_in
from lm_audit.audits.leakage.items.labels.of_a_set import PlaceLabels
from lm_audit.audits.leakage.items.option_lists import Options, options_of
from lm_audit.errors import DataError, UsageError
from lm_audit.shared.visible import is_blank

_FIELDS = ("question", "context", "options", "answer", "id", "subject", "answer-base", "answer-as", "header")

NO_CONTEXT = "none"
"""What ``context=`` is where the question is to stand alone."""
_VALUES = {"answer-base": ("0", "1"), "answer-as": (TEXTS, LETTER, LABELS), "header": ("yes", "no")}


@dataclass(frozen=True)
class Columns:
    """The columns of a set. ``options`` is one column that holds a list, or one a letter; ``answer`` may be absent.

    ``subject`` names the file of an item where one file holds several subjects, ``context`` a passage that stands
    before the question, ``labels`` what the options of each place bear in all rows, ``rivals`` other columns that may
    say which option is right, and must not say otherwise. ``by_role`` is true where the options are a
    column of the right text and columns of wrong ones, ``padding`` holds what fills up lists of options to one length.
    """

    question: str
    options: tuple[str, ...]
    answer: str | None = None
    id: str | None = None
    subject: str | None = None
    context: str | None = None
    labels: PlaceLabels | None = None
    rivals: tuple[str, ...] = ()
    by_role: bool = False
    padding: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Candidate:
    """A row as an item without its answer, and all ways in which its answer can be read.

    ``column`` is where the answer stands, ``rivals`` are the same of other columns that may say it too; ``None`` where
    no option can be read in one. ``right`` counts the options that are marked as right, ``None`` where the answer is no
    row of marks. ``cut`` says that the question listed its options at its end, ``padded`` that what filled up the list
    of options was left out, ``by_role`` that the set has its right options in a column of their own,
    ``divided`` that they stood in one text, parted by a sign alone.
    """

    item: Item
    answers: Readings
    stripped: bool
    rivals: Mapping[str, Readings | None]
    right: int | None
    column: str = ""
    cut: bool = False
    padded: bool = False
    by_role: bool = False
    divided: bool = False


def parse_mapping(text: str | None) -> dict[str, str]:
    """``question=Q,options=A|B|C|D,answer=ans,answer-base=1,header=no`` as a mapping.

    Raises ``UsageError`` for an unknown field, one given twice, and a value that the field cannot have.
    """
    if not text:
        return {}
    mapping: dict[str, str] = {}
    for part in text.split(","):
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or name not in _FIELDS or not column:
            raise UsageError(
                f"column mapping {part!r}: write FIELD=COLUMN with a field of {', '.join(_FIELDS)}; options may name "
                "several columns, as in options=A|B|C|D"
            )
        if name in mapping:
            raise UsageError(f"column mapping {text!r}: {name} is given twice")
        allowed = _VALUES.get(name)
        if allowed and column not in allowed:
            raise UsageError(f"column mapping {part!r}: {name} is {' or '.join(allowed)}")
        mapping[name] = column
    return mapping


def answer_base(mapping: Mapping[str, str]) -> int | None:
    """Where the user says that numbers count from; ``None`` where nothing is said."""
    return int(mapping["answer-base"]) if "answer-base" in mapping else None


def find_columns(
    names: Sequence[str],
    mapping: Mapping[str, str],
    *,
    file: str,
    filled: Mapping[str, int] | None = None,
    listed: Collection[str] = (),
    marked: Collection[str] = (),
) -> Columns:
    """The columns of a set with these column names; ``DataError`` that says what is missing and what is there.

    ``filled`` counts the values that columns hold; of several that could be meant, the first is taken that holds half
    as many as the fullest. ``listed`` are those of which each value is a list, ``marked`` those of options with marks.
    """
    known = _known(names)
    for field, column in mapping.items():
        absent = [part for part in column.split("|") if part not in names]
        if absent and field in Columns.__dataclass_fields__ and (field, column) != ("context", NO_CONTEXT):
            raise DataError(
                f"has no column {absent[0]!r}, which {field} was mapped to; it has {list(names)}", file=file
            )
    values = dict.fromkeys(names, 1) if filled is None else filled

    def found(field: str, candidates: Sequence[str]) -> str | None:
        if field in mapping:
            return mapping[field]
        there = list(dict.fromkeys(name for candidate in candidates for name in known.get(candidate, [])))
        most = max((values.get(name, 0) for name in there), default=0)
        usable = [name for name in there if values.get(name, 0) and 2 * values[name] >= most] or there
        twins = [name for name in usable if name.strip().lower() == usable[0].strip().lower()]
        if len(twins) > 1:
            raise DataError(
                f"has several columns for the {field}: {twins}; name one by --leakage-columns {field}={twins[0]}",
                file=file,
            )
        return usable[0] if usable else None

    question = found("question", QUESTIONS) or ("context" not in mapping and found("question", BEGINNINGS)) or None
    options = named_options(names, mapping, values, listed, marked)
    right, by_role = None, False
    if not options and (roles := _right_and_wrong(names, known, values)):
        right, options = roles
        by_role = True
    missing = [name for name, there in (("question", question), ("options", options)) if not there]
    if missing or question is None:
        raise DataError(
            f"has no column for {' and '.join(missing)}; it has {list(names)}. Options are columns A, B, C, ..., "
            f"or one of {', '.join(OPTION_LISTS[:7])}, or correct_answer beside distractor1 or incorrect_answer_1, or "
            "a list at the end of each question (a set answered by yes or no has none and cannot be used); name others "
            "by --leakage-columns question=...,options=A|B|C, or where the file has no header by number: "
            "header=no,question=1,options=2|3|4|5,answer=6",
            file=file,
        )
    # "answer_a" may be an option, and is then no answer.
    answers = [name for name in ANSWERS if not set(known.get(name, [])) & set(options)]
    answer = mapping.get("answer") or right or found("answer", answers)
    name = found("id", IDS)
    context = found("context", [one for one in CONTEXTS if not {question, answer, *options} & set(known.get(one, []))])
    context = None if context == NO_CONTEXT else context
    _refuse_double_use([("question", question), ("context", context), *(("options", one) for one in options)], file)
    if context is not None and context == answer:
        raise DataError(
            f"has its answers in {context!r}, which context was mapped to: they would be given away", file=file
        )
    subject = mapping.get("subject")
    used = {question, context, answer, name, subject, *options}
    maybe = [one for key in (*answers, *ANSWERS_IF_READABLE, *MARKED_COLUMNS) for one in known.get(key, [])]
    rivals = () if "answer" in mapping or by_role else tuple(one for one in maybe if one not in used)
    return Columns(question, options, answer, name, subject, context, rivals=rivals, by_role=by_role)


def named_options(
    names: Sequence[str],
    mapping: Mapping[str, str],
    filled: Mapping[str, int],
    listed: Collection[str] = (),
    marked: Collection[str] = (),
) -> tuple[str, ...]:
    """The columns that hold all options, right and wrong alike, as :func:`find_columns` takes them; () for none."""
    known = _known(names)
    return (
        _mapped_options(mapping)
        or _option_columns(known, filled)
        or _with_marks(known, marked)
        or _beside_a_key(known, filled, listed)
    )


def _right_and_wrong(
    names: Sequence[str], known: Mapping[str, Sequence[str]], filled: Mapping[str, int]
) -> tuple[str, tuple[str, ...]] | None:
    """The column of the right text, and all options in the order in which their columns stand; ``None`` without."""
    right = next((known[name][0] for name in RIGHTS if name in known and filled.get(known[name][0])), None)
    wrong: list[str] = []
    for form in WRONG_FORMS:
        wrong = [known[name][0] for k in range(10) if (name := form.format(k)) in known] or wrong
    wrong = wrong or [known[name][0] for name in WRONG_LISTS if name in known and filled.get(known[name][0])][:1]
    if right is None or not wrong or right in wrong:
        return None
    return right, tuple(sorted([right, *wrong], key=list(names).index))


def has_right_and_wrong(names: Sequence[str], filled: Mapping[str, int]) -> bool:
    """Whether a set has one column of right texts and others of wrong ones."""
    return _right_and_wrong(names, _known(names), filled) is not None


def _refuse_double_use(uses: Sequence[tuple[str, str | None]], file: str) -> None:
    """``DataError`` for a column that is read as two things; an option's column may hold the answers' texts too."""
    first: dict[str, str] = {}
    for field, column in uses:
        if column is not None and column in first:
            both = field if first[column] == field else f"{first[column]} and {field}"
            raise DataError(f"would have its column {column!r} read twice, as {both}; name another column", file=file)
        if column is not None:
            first[column] = field


def has_known_columns(names: Sequence[str]) -> bool:
    """Whether a table's first line reads like a header: it names a question or options."""
    known = _known(names)
    return any(name in known for name in (*QUESTIONS, *OPTION_LISTS)) or bool(_option_columns(known, set(names)))


def _known(names: Sequence[str]) -> dict[str, list[str]]:
    """The columns by their names in small letters; "Answer Key" and "answerKey" are "answer_key" too, if none is."""
    known: dict[str, list[str]] = {}
    for name in names:
        if name:
            known.setdefault(str(name).strip().lower(), []).append(str(name))
    for there in list(known.values()):
        parts = re.split(r"[\s-]+|(?<=[a-z0-9])(?=[A-Z])", there[0].strip())
        for plain in ("_".join(re.split(r"[\s-]+", there[0].strip().lower())), "_".join(parts).lower()):
            known.setdefault(plain, there)
    return known


def _mapped_options(mapping: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(mapping["options"].split("|")) if "options" in mapping else ()


def _option_columns(known: Mapping[str, Sequence[str]], filled: Collection[str]) -> tuple[str, ...]:
    lists = [known[name][0] for name in OPTION_LISTS if name in known]
    return (
        _in_forms(known, OPTION_FORMS)
        or tuple([name for name in lists if name in filled][:1] or lists[:1])
        or _in_forms(known, OPTION_FORMS_WITHOUT_A_LIST)
    )


def _in_forms(known: Mapping[str, Sequence[str]], forms: Sequence[str]) -> tuple[str, ...]:
    """Columns that hold an option each: at least two in a row of a form, by letters or by numbers from 0 or 1."""
    for form in forms:
        for series in (LETTERS.lower(), [str(k) for k in range(26)], [str(k) for k in range(1, 27)]):
            found: list[str] = []
            for name in series:
                there = known.get(form.format(name), [])
                if len(there) != 1:
                    break
                found.append(there[0])
            if len(found) >= 2:
                return tuple(found)
    return ()


def _with_marks(known: Mapping[str, Sequence[str]], marked: Collection[str]) -> tuple[str, ...]:
    """A column called "answers" or "choice" whose records are options, since each says whether it is right."""
    return tuple([one for name in OPTION_LISTS_BESIDE_A_KEY for one in known.get(name, []) if one in marked][:1])


def _beside_a_key(
    known: Mapping[str, Sequence[str]], values: Mapping[str, int], listed: Collection[str]
) -> tuple[str, ...]:
    """A column of lists called "answers" or "choice", where another column says which of them is right."""
    keys = [one for key in (*ANSWERS, *ANSWERS_IF_READABLE) for one in known.get(key, []) if values.get(one)]
    lists = [one for name in OPTION_LISTS_BESIDE_A_KEY for one in known.get(name, []) if one in listed]
    return tuple([one for one in lists if set(keys) - {one}][:1])


LONG_TEXT = 80
"""Characters from which on a column that is not read may be a passage."""
_EXPLAINING = re.compile(
    r"expla|exp$|ration|reason|solut|proof|analys|comment|cot|thought|evidence|url|解析|解释", re.I
)


def unread_texts(rows: Sequence[Mapping[str, object]], columns: Columns) -> list[str]:
    """Columns of long texts, none of them an explanation by its name, that nothing is read from."""
    used = {columns.question, columns.answer, columns.id, columns.subject, columns.context, *columns.options}
    names = dict.fromkeys(name for row in rows for name in row if name not in used and not _EXPLAINING.search(name))
    least = max(LONG_TEXT, _length(rows, columns.question))
    return [name for name in names if _length(rows, name) > least]


def _length(rows: Sequence[Mapping[str, object]], name: str) -> float:
    """The mean length of the texts in a column, 0 where it holds none."""
    cells = [row.get(name) for row in rows]
    texts = ["".join(map(str, cell)) if isinstance(cell, list) else cell for cell in cells]
    lengths = [len(text) for text in texts if isinstance(text, str) and text]
    return sum(lengths) / len(lengths) if lengths else 0.0


def candidate_of(row: Mapping[str, object], columns: Columns, *, file: str, number: int) -> Candidate:
    """The row as an item whose answer is still open; raises :class:`Unusable` with the reason why it cannot be one."""
    question = text_of(row.get(columns.question)).strip("\r\n")
    if is_blank(question):
        raise Unusable("the question is empty")
    context = context_of(row.get(columns.context)) if columns.context else ""
    options = options_of(row, columns.options, columns.labels, columns.padding)
    name = text_of(row.get(columns.id)).strip() if columns.id else ""
    subject = text_of(row.get(columns.subject)).strip() if columns.subject else ""
    whole_characters(context, question, *options.texts, name, subject)
    cut = _lists_its_options(question, options.texts)
    if cut:
        question = _without_its_options(question, options.texts)
    value = row.get(columns.answer) if columns.answer else None
    answers = read_answer(columns.answer or "", value, options)
    rivals = {name: rival_readings(name, row.get(name), options) for name in columns.rivals}
    marks = marks_of(value, options.texts, options.labels)
    if options.marks and value is None:
        answers, marks = of_marks(options.marks), options.marks
    elif options.marks:
        rivals[f"the marks in {columns.options[0]}"] = of_marks(options.marks)
    if answers is None:
        last = LETTERS[len(options.texts) - 1]
        raise Unusable(f"the answer is {str(value)!r:.40}, which is none of the options {LETTERS[0]} to {last}")
    asked = f"{context}\n{question}" if context else question
    item = Item(name or str(number), subject or file, asked, options.texts)
    right = None if marks is None else sum(marks)
    return Candidate(
        item,
        answers,
        options.stripped,
        rivals,
        right,
        columns.answer or "",
        cut,
        options.padded,
        columns.by_role,
        options.divided,
    )


def read_answer(column: str, value: object, options: Options) -> Readings | None:
    """All ways to read a cell of an answer column; empty where it says nothing, ``None`` where it says no option.

    Of a column that may as well name the options (``labels``) only marks are read. Raises :class:`Unusable` as
    :func:`readings` does.
    """
    if column.strip().lower() in MARKED_COLUMNS:
        marks = marks_of(value, options.texts, options.labels)
        return None if marks is None else of_marks(marks)
    return readings(value, options.texts, options.labels, options.given, options.columns)


def rival_readings(column: str, value: object, options: Options) -> Readings | None:
    """The same of a column that may hold something else: what is no answer is ``None``, whatever is wrong with it."""
    if value is None:
        return {}
    try:
        return read_answer(column, value, options)
    except Unusable:
        return None


def context_of(value: Any) -> str:
    """The passage in a column: a text, or several (PubMedQA's list); "" where a row has none.

    Raises :class:`Unusable` for what is no text.
    """
    if value is None or value != value:
        return ""
    listed = structured(value)
    if isinstance(listed, list) and all(isinstance(part, str) for part in listed):
        value = listed
    parts = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise Unusable("the passage before the question is no text")
    text = "\n".join(part.strip("\r\n") for part in parts)
    return "" if is_blank(text) else text


def _without_its_options(question: str, options: Sequence[str]) -> str:
    """The question without the labelled list of its options at its end; :class:`Unusable` for any other list."""
    listed = listed_in(question)
    if listed is None or [" ".join(text.split()) for text in listed.texts] != [" ".join(o.split()) for o in options]:
        raise Unusable("the question itself lists the options, so that their order could be copied from it")
    return listed.question


def _lists_its_options(question: str, options: Sequence[str]) -> bool:
    """Whether all options stand in the question one after the other in their order."""
    place = 0
    for option in map(str.strip, options):
        # A word must stand there as a word: "a" is in many others.
        left = r"(?<![^\W_])" if option[:1].isascii() and option[:1].isalnum() else ""
        right = r"(?![^\W_])" if option[-1:].isascii() and option[-1:].isalnum() else ""
        found = re.compile(left + re.escape(option) + right).search(question, place)
        if found is None:
            return False
        place = found.end()
    return True
