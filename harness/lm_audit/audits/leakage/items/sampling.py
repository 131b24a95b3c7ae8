"""A benchmark's rows read one by one: what is kept, what repeats, what is left out and why, and the seeded sample."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain, islice
from typing import Literal

from lm_audit.audits.hub_rows import structured
from lm_audit.audits.leakage.items.answers.choosing import chosen, unread_answers
from lm_audit.audits.leakage.items.answers.forms import AnswerForm, AnswerForms
from lm_audit.audits.leakage.items.answers.marks import MarkedRows
from lm_audit.audits.leakage.items.answers.places import OptionRemarks, RightPlaces
from lm_audit.audits.leakage.items.answers.readings import CONTRADICTION, FROM_0, FROM_1
from lm_audit.audits.leakage.items.answers.rivals import Rivals
from lm_audit.audits.leakage.items.benchmark import LISTED, MANY, Benchmark, Exclusion
from lm_audit.audits.leakage.items.cells import Unusable
from lm_audit.audits.leakage.items.columns import (
    Candidate,
    Columns,
    answer_base,
    candidate_of,
    find_columns,
    has_right_and_wrong,
    named_options,
    unread_texts,
)
from lm_audit.audits.leakage.items.item import Item
from lm_audit.audits.leakage.items.labels.of_a_set import place_labels
from lm_audit.audits.leakage.items.option_lists import are_marked, padding_of, unlabelled
from lm_audit.audits.leakage.items.reading import Row, Source
from lm_audit.audits.leakage.items.repeats import Asked, Repeats
from lm_audit.audits.leakage.items.rows.divided_rows import dividing
from lm_audit.audits.leakage.items.rows.nested_rows import plain_rows
from lm_audit.errors import DataError

Drawn = Literal["items", "pairs"]
"""What a sample is drawn of: single items, or pairs of neighbouring rows."""
OnItem = Callable[[Item], None]
"""Sees every item that has a question and options, its answer left out."""


class Reading:
    """One pass over a benchmark: counts, exclusions, the sample, and what the set as a whole says of its answers."""

    def __init__(self, mapping: Mapping[str, str], sample: Sample, on_item: OnItem | None = None):
        self._mapping, self._sample, self._on_item = mapping, sample, on_item
        self._rows = 0
        self._remarks = OptionRemarks()
        self._places = RightPlaces()
        self._divided: dict[str, None] = {}
        self._repeats = Repeats()
        self._reasons: Counter[str] = Counter()
        self._listed: list[Exclusion] = []
        self._forms = AnswerForms()
        self._rivals = Rivals()
        self._marked = MarkedRows()
        self._unread_answers: dict[str, None] = {}
        self._by_file: Counter[str] = Counter()
        self._unread: dict[tuple[str, frozenset[str]], list[Exclusion]] = {}
        self._unread_counts: Counter[tuple[str, frozenset[str]]] = Counter()
        self._positional: list[str] = []
        self._contexts: dict[str, None] = {}
        self._unread_texts: dict[str, None] = {}
        self._alike = 0
        self._splits: Counter[tuple[str, str]] = Counter()
        self._tables = False

    def read(self, source: Source, number_of_file: int) -> None:
        """All rows of one file."""
        rows = ((number, row) for number, given in source.rows for row in plain_rows(given))
        first = list(islice(rows, LOOKED_AT))
        if (divide := self._dividing(first)) is not None:
            first, rows = [(number, divide(row)) for number, row in first], ((k, divide(row)) for k, row in rows)
        columns = self._columns(source, [row for _, row in first])
        for number, row in chain(first, rows):
            assert columns is not None  # there is a row
            candidate, reason = None, ""
            try:
                candidate = candidate_of(row, columns, file=source.stem, number=number)
            except Unusable as why:
                reason = str(why)
            except DataError as error:
                raise DataError(str(error), file=source.file, row=number) from error
            asked = Asked.of_text(repr(row)) if candidate is None else Asked.of(candidate.item, candidate.answers)
            if self._repeats.is_repeat(asked, file=source.file, row=number):
                continue
            self._rows += 1
            self._splits.update(_split_of(row))
            if columns.context and "context" not in self._mapping and _holds_something(row.get(columns.context)):
                self._contexts[columns.context] = None
            if candidate is None:
                self._exclude(Exclusion(source.file, number, reason))
            else:
                if "answer" not in self._mapping:  # of what the user named, nothing is in doubt
                    self._rivals.add(candidate, file=source.file, number=number)
                self._keep(candidate, source.file, number_of_file, number)

    def _dividing(self, rows: Sequence[tuple[int, Row]]) -> Callable[[Row], Row] | None:
        """What divides rows whose questions list their options; ``None`` for a set with columns of options."""
        given = [row for _, row in rows]
        names = list(dict.fromkeys(name for row in given for name in row))
        filled, listed, marked = _held(given)
        if named_options(names, self._mapping, filled, listed, marked) or has_right_and_wrong(names, filled):
            return None
        found = dividing(given, self._mapping)
        if found is None:
            return None
        self._divided[found[0]] = None
        return found[1]

    def _columns(self, source: Source, rows: Sequence[Row]) -> Columns | None:
        """The columns, by the names and values of the first rows: a JSON object may lack what the next one has."""
        table = source.table
        self._tables |= table is not None
        names = list(dict.fromkeys(name for row in rows for name in row)) or (table.names if table else [])
        if not rows and not names:
            return None
        mapping = dict(self._mapping)
        if table is not None and table.positional:
            self._positional.append(source.stem)
            width = len(names)
            if "question" not in mapping and all(str(row.get("1") or "").strip().isdigit() for row in rows):
                raise DataError(
                    "has no header, and its first column holds numbers, not questions; name columns by position, as "
                    "in --leakage-columns header=no,question=2,options=3|4|5|6,answer=7",
                    file=source.file,
                )
            mapping.setdefault("question", "1")
            mapping.setdefault("options", "|".join(str(k) for k in range(2, width)))
            mapping.setdefault("answer", str(width))
        filled, listed, marked = _held(rows)
        columns = find_columns(names, mapping, file=source.file, filled=filled, listed=listed, marked=marked)
        columns = replace(columns, labels=place_labels([*filter(None, (unlabelled(r, columns.options) for r in rows))]))
        columns = replace(columns, padding=padding_of(rows, columns.options))
        columns = chosen(rows, columns)
        if columns.answer is None and (unread := unread_answers(rows, columns)) is not None:
            self._unread_answers[unread] = None
        if "context" not in mapping and columns.context is None:
            self._unread_texts |= dict.fromkeys(unread_texts(rows, columns))
            if len(rows) >= ENOUGH and 2 * len({str(row.get(columns.question)) for row in rows}) < len(rows):
                self._alike += 1
        return columns

    def _exclude(self, exclusion: Exclusion) -> None:
        self._reasons[_kind(exclusion.reason)] += 1
        if len(self._listed) < LISTED:
            self._listed.append(exclusion)

    def _keep(self, candidate: Candidate, file: str, number_of_file: int, number: int) -> None:
        if self._on_item is not None:
            self._on_item(candidate.item)
        self._forms.add(candidate.answers)
        self._places.add(candidate.answers, by_role=candidate.by_role)
        self._remarks.stripped += candidate.stripped
        self._remarks.cut += candidate.cut
        self._remarks.padded += candidate.padded
        self._remarks.divided += candidate.divided
        if candidate.right is not None:
            self._marked.add(candidate.right, file, number)
        subject, forms = candidate.item.file, frozenset(candidate.answers)
        place = self._by_file[subject]
        self._by_file[subject] += 1
        # Whether these rows can be read is known at the end; the first of them are remembered for the list.
        key = (subject, forms)
        self._unread_counts[key] += 1
        remembered = self._unread.setdefault(key, [])
        if len(remembered) < LISTED // 10:
            remembered.append(Exclusion(file, number, _UNREAD))
        self._sample.add(candidate, number_of_file, number, place)

    def result(self, source: str, name: str, files: Sequence[str]) -> Benchmark:
        """The benchmark, its answers read as the set as a whole says."""
        form = self._forms.decide(
            answer_base(self._mapping),
            file=source,
            main=self._mapping.get("answer-as"),
            beside=self._rivals.base_of(),
        )
        differing = [*self._rivals.remarks(form), *self._repeats.remarks(form)]
        for (subject, forms), count in self._unread_counts.items():
            if form.of(dict.fromkeys(forms, "A")) is None:
                self._by_file[subject] -= count
                self._reasons[_UNREAD] += count
                self._listed += self._unread[subject, forms][: max(0, LISTED - len(self._listed))]
        kept = [
            (candidate.item, self._rivals.instead(candidate, form) if answer == "" else answer, place)
            for candidate, place in self._sample.kept()
            for answer in [form.of(candidate.answers)]
        ]
        held = self._places.held(form)
        items = [
            replace(item, answer=answer, held=held.slots(answer) if held else ())
            for item, answer, _ in kept
            if answer is not None
        ]
        if not items:
            why = f": {dict(self._reasons)}" if self._reasons else ""
            raise DataError(f"has no usable item in {self._rows} rows{why}", file=source)
        if 2 * sum(self._reasons.values()) > self._rows:
            first = self._listed[0]
            raise DataError(
                f"more than half of the rows cannot be used: {dict(self._reasons)} of {self._rows}; the first is row "
                f"{first.row} of {first.file}: {first.reason}",
                file=source,
            )
        subjects = [subject for subject, count in self._by_file.items() if count]
        named = (
            list(files) if set(subjects) <= set(files) else list(dict.fromkeys([*_without(files, subjects), *subjects]))
        )
        return Benchmark(
            name,
            tuple(unique(items)),
            tuple(named),
            self._rows,
            sum(self._by_file.values()),
            dict(self._reasons),
            tuple(self._listed),
            {subject: self._by_file[subject] for subject in named},
            (*self._guesses(form), *differing, *([held.remark()] if held else [])),
            tuple(place for _, answer, place in kept if answer is not None),
            self._repeats.count,
        )

    def _without_effect(self) -> Iterator[str]:
        """What the user said of the columns that nothing here follows."""
        forms = set().union(*(forms for _, forms in self._unread_counts))
        said = self._mapping.get("answer-as")
        reasons = {
            "answer-base": None if forms & {FROM_0, FROM_1} else "no answer can be read as a number",
            "answer-as": None if said in forms else f"no answer can be read as one of the {said}",
            "header": None if self._tables else "only tables (CSV, TSV) have one",
        }
        for name, reason in reasons.items():
            if name in self._mapping and reason is not None:
                yield f"`--leakage-columns {name}={self._mapping[name]}` changes nothing: {reason}"

    def _guesses(self, form: AnswerForm) -> Iterator[str]:
        if self._positional:
            yield (
                f"{', '.join(self._positional[:5])}: no header, read by position as question, options, answer: "
                "`--leakage-columns header=yes` to change"
            )
        for column in self._contexts:
            yield f"{column!r} is read before each question: `--leakage-columns context=none` to change"
        splits = [f"{value} {count}" for (_, value), count in self._splits.items()]
        if len(splits) > 1 and (column := next(iter(self._splits))[0]) not in self._mapping.values():
            yield (
                f"rows of several splits ({', '.join(splits)}, by the column {column!r}) are read as one set: "
                f"`--leakage-columns subject={column}` to tell them apart"
            )
        if self._alike:
            yield (
                "most rows share their question with another; if a passage belongs to each, name its column: "
                "`--leakage-columns context=COLUMN`"
            )
        elif self._unread_texts:
            names = ", ".join(map(repr, self._unread_texts))
            yield (
                f"long texts in {names} are not read; if questions ask about one, "
                f"`--leakage-columns context={next(iter(self._unread_texts))}`"
            )
        note = form.note()
        if note:
            yield note
        for column in self._unread_answers:
            yield f"no column of answers is known; {column!r} may be one: `--leakage-columns answer={column}` reads it"
        if self._repeats.reordered > MANY * self._rows:
            yield (
                f"{self._repeats.reordered} of {self._rows} rows ask what an earlier row asks, with the options in "
                "another order: they count each, and are not independent"
            )
        yield from self._marked.remarks()
        yield from self._without_effect()
        for column in self._divided:
            yield f"no column of options is known; those that {column!r} lists at its end are read"
        yield from self._remarks


ENOUGH = 10
"""So many rows with few questions among them are no accident."""

LOOKED_AT = 200
"""So many rows of a file say which columns there are and which of them hold values."""

_UNREAD = "the answer cannot be read in the way of the others"


def _held(rows: Sequence[Row]) -> tuple[Counter[str], list[str], list[str]]:
    """How many values columns hold, which hold lists in all rows, and which lists of marked options."""
    filled = Counter(name for row in rows for name, value in row.items() if _holds_something(value))
    listed = [name for name in filled if all(_is_list(row.get(name)) for row in rows)]
    marked = [name for name in filled if all(are_marked(row.get(name)) for row in rows)]
    return filled, listed, marked


def _is_list(value: object) -> bool:
    value = structured(value)
    return isinstance(value, list | tuple) and len(value) > 1


def _holds_something(value: object) -> bool:
    return value is not None and value != "" and value == value  # NaN is not itself


_SPLITS = ("train", "training", "test", "testing", "val", "valid", "validation", "dev")


def _split_of(row: Row) -> list[tuple[str, str]]:
    """The column and the name of the split that a row says it is of."""
    found = ((name, value) for name, value in row.items() if name.strip().lower() in ("split", "partition"))
    return [(name, value) for name, value in found if isinstance(value, str) and value.lower() in _SPLITS][:1]


def _kind(reason: str) -> str:
    """The reason without its values, so that counts stay few."""
    if reason.startswith(CONTRADICTION):
        return CONTRADICTION
    return "the answer is none of the options" if reason.startswith("the answer is ") else reason


class Sample:
    """The ``limit`` items whose hashed places are smallest: a sample that needs no second pass and little memory."""

    def __init__(self, limit: int | None, seed: int, drawn: Drawn):
        self._limit, self._seed, self._drawn = limit, seed, drawn
        self._kept: list[tuple[int, int, int, int, Candidate]] = []

    def add(self, candidate: Candidate, file: int, row: int, place: int) -> None:
        """One item: the ``row`` of its file, at ``place`` among the usable ones."""
        unit = place // 2 if self._drawn == "pairs" else row
        entry = (-self._priority(file, unit), -file, -place, row, candidate)
        if self._limit is None or len(self._kept) < self._limit:
            heapq.heappush(self._kept, entry)
        elif entry[:3] > self._kept[0][:3]:
            heapq.heapreplace(self._kept, entry)

    def kept(self) -> list[tuple[Candidate, int]]:
        """The sample in the files' order, each with its place."""
        return [(entry[4], -entry[2]) for entry in sorted(self._kept, key=lambda entry: (-entry[1], -entry[2]))]

    def _priority(self, file: int, unit: int) -> int:
        digest = blake2b(f"{self._seed}:{file}:{unit}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big")


def unique(items: Sequence[Item]) -> Iterator[Item]:
    """Items whose keys differ: an id that a file uses twice gets a number behind it."""
    seen: Counter[str] = Counter()
    for item in items:
        seen[item.key] += 1
        yield item if seen[item.key] == 1 else replace(item, id=f"{item.id}#{seen[item.key]}")


def _without(files: Sequence[str], subjects: Sequence[str]) -> list[str]:
    """The files, unless their rows name subjects of their own, which then stand in their place."""
    return [file for file in files if file in subjects]
