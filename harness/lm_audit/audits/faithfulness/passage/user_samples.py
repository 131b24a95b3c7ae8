"""A user's own samples: one row each of a JSONL file (or JSON, Parquet, a table) or of a data set of the hub, checked
as text before any model loads.

Keys: ``prompt`` (text), and optionally ``generation`` (text), ``thinking_span``, ``output_span`` (into the generation)
and ``evidence_spans`` (into the prompt). A span is ``[first, last)`` in characters, or the text itself, which must then
occur exactly once. ``id`` names the sample (default: its line).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from lm_audit.audits.faithfulness.passage.samples import Characters, Sample
from lm_audit.audits.given.given_rows import GivenRow, given_rows, holds_rows
from lm_audit.audits.hub_rows import structured
from lm_audit.errors import DataError
from lm_audit.models.text.thinking import split_reply
from lm_audit.shared.textfiles import ending_of, json_lines, on_disk
from lm_audit.shared.visible import is_blank, look

_KEYS = {"id", "prompt", "generation", "thinking_span", "output_span", "evidence_spans"}


def read_samples(source: str | Path) -> list[Sample]:
    """The samples of a source (:func:`~lm_audit.audits.given.given_rows.given_rows`); ``DataError`` names file, row and
    key of what cannot be used.
    """
    rows = list(given_rows(source) if holds_rows(source) else _of_lines(Path(source)))
    several = len({row.file for row in rows}) > 1
    # In JSON a span that is a text is that text, whatever it looks like.
    as_written = not holds_rows(source) or ending_of(on_disk(source).path) in (".jsonl", ".json")
    records = [row.values if as_written else _filled(row) for row in rows]
    samples = [
        _sample(row.file, row.number, record, several=several) for row, record in zip(rows, records, strict=True)
    ]
    if not samples:
        raise DataError("has no samples; write one JSON object with a 'prompt' a line", file=source)
    names: dict[str, str] = {}
    contents: dict[Sample, str] = {}
    for row, sample in zip(rows, samples, strict=True):
        place = f"row {row.number}" + (f" of {row.file}" if several else "")
        if (first := names.setdefault(look(sample.name), place)) != place:
            raise row.error(f"the id {sample.name[:60]!r} is already that of {first}, or looks like it", field="id")
        if (first := contents.setdefault(replace(sample, name=""), place)) != place:
            # Twice the same is no second sample: the interval would be narrower than what is known.
            raise row.error(f"is the same sample as {first}; take one of them out")
    return samples


def _of_lines(path: Path) -> Iterator[GivenRow]:
    """The lines of a file whose ending says nothing."""
    return (GivenRow(str(path), number, row) for number, row in json_lines(path))


def _filled(row: GivenRow) -> dict[str, Any]:
    """A row whose spans are lists, which tables and sets of the hub may hold as text, without a table's empty cells."""
    is_table = ending_of(row.file) in (".csv", ".tsv")
    spans = ("thinking_span", "output_span", "evidence_spans")
    found = {name: structured(value) if name in spans else value for name, value in row.values.items()}
    return {name: value for name, value in found.items() if value != "" or not is_table}


def _sample(file: str, row: int, record: dict[str, Any], *, several: bool = False) -> Sample:
    unknown = sorted(set(record) - _KEYS)
    if unknown:
        raise DataError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}", file=file, row=row)
    prompt = _text(file, row, record, "prompt", required=True)
    generation = _text(file, row, record, "generation", required=False)
    evidence = record.get("evidence_spans")
    evidence = [] if evidence is None else evidence
    if not isinstance(evidence, list):
        raise DataError(f"is {evidence!r}; it must be a list of spans", file=file, row=row, field="evidence_spans")
    spans = tuple(_span(file, row, "evidence_spans", span, str(prompt)) for span in evidence)
    _refuse_overlap(file, row, "evidence_spans", spans)
    thinking = _optional_span(file, row, record, "thinking_span", generation)
    output = _optional_span(file, row, record, "output_span", generation)
    _refuse_overlap(file, row, "output_span and thinking_span", [span for span in (thinking, output) if span])
    if generation is not None and output is None and is_blank(split_reply(generation).answer or ""):
        message = "holds a thought and no answer that could be explained; add the answer, or give output_span"
        raise DataError(message, file=file, row=row, field="generation")
    name = _name(file, row, record, several=several)
    return Sample(name, str(prompt), generation, spans, thinking, output)


def _name(file: str, row: int, record: dict[str, Any], *, several: bool) -> str:
    name = record.get("id", f"{file}:{row}" if several else f"line-{row}")
    if isinstance(name, bool) or not isinstance(name, str | int) or is_blank(str(name)):
        raise DataError(f"is {name!r:.60}; text or a whole number is needed", file=file, row=row, field="id")
    return str(name)


def _refuse_overlap(file: str, row: int, key: str, spans: Sequence[Characters]) -> None:
    """Characters of two spans would count twice, as evidence or as both thought and answer."""
    for (first, last), (start, end) in pairwise(sorted(spans)):
        if start < last:
            message = f"[{first}, {last}) and [{start}, {end}) overlap; give each character to one span"
            raise DataError(message, file=file, row=row, field=key)


def _text(file: str, row: int, record: dict[str, Any], key: str, *, required: bool) -> str | None:
    value = record.get(key)
    if value is None and not required:
        return None
    if not isinstance(value, str) or is_blank(value):
        raise DataError(f"is {value!r:.60}; it must be text that is not empty or blank", file=file, row=row, field=key)
    return value


def _optional_span(file: str, row: int, record: dict[str, Any], key: str, text: str | None) -> Characters | None:
    span = record.get(key)
    if span is None:
        return None
    if text is None:
        raise DataError("needs a 'generation' that it can point into", file=file, row=row, field=key)
    return _span(file, row, key, span, text)


def _occurrences(part: str, text: str) -> int:
    """How often ``part`` stands in ``text``, also where two occurrences overlap."""
    return sum(text.startswith(part, at) for at in range(len(text))) if part else 0


def _span(file: str, row: int, key: str, span: object, text: str) -> Characters:
    if isinstance(span, str):
        found = _occurrences(span, text)
        if found != 1:
            raise DataError(f"{span!r:.80} occurs {found} times; it must occur once", file=file, row=row, field=key)
        return text.index(span), text.index(span) + len(span)
    if not (isinstance(span, list) and len(span) == 2 and all(type(edge) is int for edge in span)):
        raise DataError(f"is {span!r}; a span is [first, last) or a text", file=file, row=row, field=key)
    first, last = span
    if not 0 <= first < last <= len(text):
        raise DataError(f"is [{first}, {last}) in a text of {len(text)} characters", file=file, row=row, field=key)
    if is_blank(text[first:last]):
        raise DataError(f"is [{first}, {last}), which holds white space alone", file=file, row=row, field=key)
    return first, last
