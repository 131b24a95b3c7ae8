"""Outputs that another system generated for the samples of a folder: read, matched and scored without a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_audit.audits.needle.answers.answerers import Answer, opened_by
from lm_audit.audits.needle.grid.cells import Scored, score_sample
from lm_audit.audits.needle.grid.folder import read_samples, sample_files
from lm_audit.audits.needle.samples.sample import Sample, sample_id
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import is_file, is_there, json_lines

PREDICTION = ("pred", "prediction", "output", "text")
REASONING = ("reasoning_content", "reasoning", "thinking")
"""Under which names an API gives a thought apart from its answer."""

FINISH = ("finish_reason", "done_reason", "stop_reason")
_ENDS = {
    **dict.fromkeys(("length", "max_tokens", "max_length"), "length"),
    **dict.fromkeys(("stop", "eos", "end_turn", "stop_sequence", "eos_token"), "eos"),
}
"""Under which names, and in which words, an API says why a text ended."""


def score_outputs(folder: str | Path, outputs: str | Path) -> list[Scored]:
    """Every sample of the folder with its output, scored.

    ``outputs`` is one JSONL file whose lines name their sample by ``id`` (or by ``length``, ``position`` and ``index``)
    and hold the text as ``pred``, a thought that came apart as ``reasoning_content`` and perhaps why the text ended as
    ``finish_reason``; or a folder laid out like the samples' own, where ``index`` is enough. An output repeats no
    prompt. Raises ``DataError`` for a sample without an output, two for one sample, and an unknown sample.
    """
    files = sample_files(folder)
    texts = _read_outputs(Path(folder), Path(outputs), files)
    scored = []
    for path in files:
        for sample in read_samples(path):
            if sample.id not in texts:
                raise DataError(f"has no output for sample {sample.id}; expected one for each sample", file=outputs)
            text, reasoning, finish = texts.pop(sample.id)
            answer = Answer(_after_prompt(sample, text), finish, opened=opened_by(sample), reasoning=reasoning)
            scored.append(score_sample(sample, answer))
    if texts:
        raise DataError(f"has an output for {min(texts)!r}, which is no sample of {folder}", file=outputs)
    return scored


def _after_prompt(sample: Sample, text: str) -> str:
    # Some systems return the prompt with the answer; whatever stands in the prompt would then count as found.
    return text[len(sample.prompt) :] if text.startswith(sample.prompt) else text


def _read_outputs(folder: Path, outputs: Path, files: list[Path]) -> dict[str, tuple[str, str | None, str]]:
    if not is_there(outputs):
        raise DataError("does not exist; expected a JSONL file or a folder of them", file=outputs)
    texts: dict[str, tuple[str, str | None, str]] = {}
    sources = [outputs] if is_file(outputs) else [outputs / path.relative_to(folder) for path in files]
    for source, of in zip(sources, files, strict=False):
        if not is_there(source):
            raise DataError("does not exist; expected the outputs of the samples' file of this name", file=source)
        first = None if is_file(outputs) else next(read_samples(of))
        for row, record in json_lines(source):
            name = _name(record, first, source, row)
            if name in texts:
                raise DataError(f"has a second output for sample {name}", file=source, row=row)
            texts[name] = (_prediction(record, source, row), _reasoning(record, source, row), _finish(record))
    return texts


def _name(record: Mapping[str, Any], first: Sample | None, path: Path, row: int) -> str:
    if isinstance(record.get("id"), str):
        return str(record["id"])
    length = record.get("length", first.length if first else None)
    depth = record.get("position", record.get("target_position", first.target_position if first else None))
    index = record.get("index")
    if length is None or depth is None or index is None:
        raise DataError("names no sample; expected id, or length, position and index", file=path, row=row)
    try:
        return sample_id(int(length), float(depth), int(index))
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"names no sample: length {length!r}, position {depth!r}, index {index!r}", file=path, row=row
        ) from None


def _reasoning(record: Mapping[str, object], path: Path, row: int) -> str | None:
    for name in REASONING:
        value = record.get(name)
        if value is not None and not isinstance(value, str):
            raise DataError(f"is {type(value).__name__}; expected text", file=path, row=row, field=name)
        if value is not None:
            return str(value)
    return None


def _finish(record: Mapping[str, object]) -> str:
    return next((_ENDS[said] for name in FINISH if (said := str(record.get(name)).lower()) in _ENDS), "unknown")


def _prediction(record: Mapping[str, object], path: Path, row: int) -> str:
    for name in PREDICTION:
        if name in record:
            value = record[name]
            if value is None:
                return ""
            if not isinstance(value, str):
                raise DataError(f"is {type(value).__name__}; expected text", file=path, row=row, field=name)
            return value
    raise DataError(f"holds no text; expected one of {', '.join(PREDICTION)}", file=path, row=row)
