"""Ordinary documents: chunks of 50 to 512 words of texts at hand, or the rows of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from lm_audit.audits.given.given_rows import GivenRow, given_rows, holds_rows, text_in
from lm_audit.audits.given.prose import prose_of
from lm_audit.audits.privacy.data.seeded_stream import Stream
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import files_in, is_folder
from lm_audit.shared.visible import is_blank

MIN_WORDS, MAX_WORDS = 50, 512


def read_documents(source: str | Path) -> list[str]:
    """Documents of a source: one a row of a file of rows or of a data set of the hub, chunks of a text file or folder.

    A row's text is its field ``text``, or what is trained on of a pair: ``prompt`` and ``completion``, or ``prompt``
    and ``chosen``. Raises ``DataError`` for a missing path, a row without text, or a source without any document.
    """
    path = Path(source)
    if holds_rows(source):
        documents = [_text_of(row) for row in given_rows(source)]
    elif is_folder(path):
        documents = [doc for file in files_in(path, "*.txt", below=True) for doc in chunks(prose_of(file))]
    else:
        documents = list(chunks(prose_of(path)))
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


_ANSWERS = ("completion", "chosen")


def _text_of(row: GivenRow) -> str:
    """The text of a row; ``DataError`` where it has none, or one that only a chat template makes."""
    answer = next((name for name in _ANSWERS if name in row.values), None)
    if "text" in row.values or "prompt" not in row.values or answer is None:
        if "text" not in row.values and any(name in row.values for name in ("messages", "conversations")):
            raise row.error("is a chat, whose text a template makes; put what was trained on into 'text'")
        text = row.values.get("text")
        if not isinstance(text, str) or is_blank(text):
            raise row.error(f"a non-empty string is needed, found {text!r}", field="text")
        return text
    return text_in(row, "prompt") + text_in(row, answer)
