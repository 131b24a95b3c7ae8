"""Ordinary documents: chunks of 50 to 512 words of texts at hand, or the rows of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from lm_audit.audits.privacy.data.seeded_stream import Stream
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import is_folder, json_lines, text_of
from lm_audit.shared.visible import is_blank

MIN_WORDS, MAX_WORDS = 50, 512


def read_documents(path: Path) -> list[str]:
    """Documents of a ``.jsonl`` file (field ``text``), or of a text file or folder (``.txt``), cut into chunks.

    Raises ``DataError`` for a missing path, a row without text, or a source without any document.
    """
    if is_folder(path):
        documents = [doc for file in sorted(path.rglob("*.txt")) for doc in chunks(text_of(file))]
    elif path.suffix == ".jsonl":
        documents = [_field(record, path, number) for number, record in json_lines(path)]
    else:
        documents = list(chunks(text_of(path)))
    if not documents:
        raise DataError(f"no document of at least {MIN_WORDS} words was found", file=path)
    return documents


def chunks(text: str, *, least: int = MIN_WORDS, most: int = MAX_WORDS) -> Iterator[str]:
    """The text in pieces of ``least`` to ``most`` words; a shorter rest is dropped. White space becomes single blanks.

    Piece lengths cycle through the range, so that the documents are not all of one length; no randomness.
    """
    words = text.split()
    position, step = 0, 0
    while len(words) - position >= least:
        size = min(most, least + (step * 97) % (most - least + 1))
        yield " ".join(words[position : position + size])
        position += size
        step += 1


def sample_documents(documents: Iterable[str], n: int, *, seed: int) -> list[str]:
    """``n`` distinct documents in a seeded random order; ``DataError`` if there are too few."""
    unique = list(dict.fromkeys(documents))
    if len(unique) < n:
        raise DataError(f"{n} documents are asked for, but only {len(unique)} distinct ones exist")
    return Stream(seed, "documents").shuffled(unique)[:n]


def _field(record: dict[str, object], path: Path, number: int) -> str:
    text = record.get("text")
    if not isinstance(text, str) or is_blank(text):
        raise DataError(f"a non-empty string is needed, found {text!r}", file=path, row=number, field="text")
    return text
