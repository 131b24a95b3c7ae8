"""A user's own samples: one JSON object a line, checked as text before any model loads.

Keys: ``prompt`` (text), and optionally ``generation`` (text), ``thinking_span``, ``output_span`` (into the generation)
and ``evidence_spans`` (into the prompt). A span is ``[first, last)`` in characters, or the text itself, which must then
occur exactly once. ``id`` names the sample (default: its line).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lm_audit.audits.faithfulness.samples import Characters, Sample
from lm_audit.errors import DataError

_KEYS = {"id", "prompt", "generation", "thinking_span", "output_span", "evidence_spans"}


def read_samples(path: str | Path) -> list[Sample]:
    """The samples of a JSONL file; ``DataError`` names file, line and key of what cannot be used."""
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read as UTF-8 text: {error}", file=file) from None
    samples = [_sample(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not samples:
        raise DataError("has no samples; write one JSON object with a 'prompt' a line", file=file)
    names: dict[str, int] = {}
    for number, sample in enumerate(samples, 1):
        if names.setdefault(sample.name, number) != number:
            raise DataError(f"the id {sample.name!r} is used twice", file=file, row=number, field="id")
    return samples


def _sample(file: Path, row: int, line: str) -> Sample:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"is not JSON: {error}", file=file, row=row) from None
    if not isinstance(record, dict):
        raise DataError(f"is a {type(record).__name__}; each line is an object", file=file, row=row)
    unknown = sorted(set(record) - _KEYS)
    if unknown:
        raise DataError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}", file=file, row=row)
    prompt = _text(file, row, record, "prompt", required=True)
    generation = _text(file, row, record, "generation", required=False)
    evidence = record.get("evidence_spans") or []
    if not isinstance(evidence, list):
        raise DataError(f"is {evidence!r}; it must be a list of spans", file=file, row=row, field="evidence_spans")
    return Sample(
        name=str(record.get("id", f"line-{row}")),
        prompt=str(prompt),
        generation=generation,
        evidence=tuple(_span(file, row, "evidence_spans", span, str(prompt)) for span in evidence),
        thinking=_optional_span(file, row, record, "thinking_span", generation),
        output=_optional_span(file, row, record, "output_span", generation),
    )


def _text(file: Path, row: int, record: dict[str, Any], key: str, *, required: bool) -> str | None:
    value = record.get(key)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value:
        raise DataError(f"is {value!r}; it must be text that is not empty", file=file, row=row, field=key)
    return value


def _optional_span(file: Path, row: int, record: dict[str, Any], key: str, text: str | None) -> Characters | None:
    span = record.get(key)
    if span is None:
        return None
    if text is None:
        raise DataError("needs a 'generation' that it can point into", file=file, row=row, field=key)
    return _span(file, row, key, span, text)


def _span(file: Path, row: int, key: str, span: Any, text: str) -> Characters:
    if isinstance(span, str):
        found = text.count(span) if span else 0
        if found != 1:
            raise DataError(f"{span!r} occurs {found} times; it must occur once", file=file, row=row, field=key)
        return text.index(span), text.index(span) + len(span)
    if not (isinstance(span, list) and len(span) == 2 and all(type(edge) is int for edge in span)):
        raise DataError(f"is {span!r}; a span is [first, last) or a text", file=file, row=row, field=key)
    first, last = span
    if not 0 <= first < last <= len(text):
        raise DataError(f"is [{first}, {last}) in a text of {len(text)} characters", file=file, row=row, field=key)
    return first, last
