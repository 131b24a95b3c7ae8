"""Where haystack text comes from: a file, a folder of text files, the embedded essay, noise, or distractor needles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lm_audit.audits.given.given_rows import given_rows, holds_rows, text_column, text_in
from lm_audit.audits.given.prose import prose_of
from lm_audit.audits.hub_rows import hub_set
from lm_audit.audits.needle.haystack.scripts import LONGEST_WORD
from lm_audit.audits.needle.samples.drawing import derived_rng, draw_item
from lm_audit.audits.needle.samples.wording import needle_sentence
from lm_audit.errors import DataError, UsageError
from lm_audit.shared.textfiles import ending_of, files_in, is_file, is_folder, is_there, on_disk, parse_json, text_of
from lm_audit.shared.visible import is_blank

NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
_BLOCKS = 512
# Borders of tables, from Python 3.12 on: longer than any word, they would be cut, and their pieces read otherwise each
# by itself, so that no prompt of the essay could be measured by its seams.
_BORDER = re.compile(rf"^ *[-+=|~]{{{LONGEST_WORD + 1},}} *\n", re.MULTILINE)
KINDS = ("essay", "noise", "needle")


@dataclass(frozen=True)
class SourceText:
    """A text; ``lines``: its line breaks matter; ``uniform``: every window of it is like every other."""

    name: str
    text: str
    file: str | None = None
    lines: bool = False
    uniform: bool = False


def read_source(source: str | Path | SourceText) -> SourceText:
    """The text behind ``source``; ``DataError`` for a file that cannot be read as UTF-8 text."""
    if isinstance(source, SourceText):
        return source
    if isinstance(source, Path):
        return from_path(source)
    if source == "essay":
        return embedded_essay()
    if source == "noise":
        return SourceText("noise", "\n".join([NOISE] * _BLOCKS), lines=True, uniform=True)
    if _names_a_file(source):
        return from_path(Path(source))
    return SourceText("text", source)


def embedded_essay() -> SourceText:
    """The English text that comes with every Python: the topics of ``help()``, some 460 KB, another in each release."""
    from pydoc_data.topics import topics

    return SourceText("essay", _BORDER.sub("", "\n\n".join(topics[name] for name in sorted(topics))))


def distractors(count: int, key_type: str, value_type: str, seed: int, language: str = "en") -> SourceText:
    """``count`` needle sentences with keys and values of their own, one a line; no key or value occurs twice."""
    rng, seen, rows = derived_rng(seed, "distractors"), set[str](), []
    for _ in range(20 * count):
        key, value = draw_item(rng, key_type), draw_item(rng, value_type)
        if key in seen or value in seen or key == value:
            continue
        seen |= {key, value}
        rows.append(needle_sentence(value_type, key, value, language))
        if len(rows) == count:
            return SourceText("needle", "\n".join(rows), lines=True)
    raise UsageError(f"only {len(rows)} of {count} distractors are distinct for {key_type} and {value_type}; use uuids")


def _names_a_file(source: str) -> bool:
    """A text is taken for a path where it is one line that exists as a file or ends like a text file's name."""
    if not source or "\n" in source or len(source) > 1000:
        return False
    return source.endswith(".txt") or is_there(on_disk(source).path)


def _one_text(path: Path) -> str | None:
    """The text of a JSON file that is one object with it, as RULER keeps its essays; ``None`` for any other file."""
    if ending_of(path) != ".json" or not is_file(path):
        return None
    document = parse_json(text_of(path), path, None)
    text = document.get("text") if isinstance(document, dict) else None
    return text if isinstance(text, str) and not is_blank(text) else None


def from_path(path: Path) -> SourceText:
    """The text of a file, of a folder's .txt files by name, or of the rows of a set of the hub or a file of rows.

    Rows stand as paragraphs; their text is the column ``text``, or the only one that holds a text. ``DataError`` for
    what cannot be read.
    """
    if hub_set(path) is not None or (is_there(on_disk(path).path) and holds_rows(path)):
        if (whole := _one_text(path)) is not None:
            return SourceText(path.name, whole, file=str(path))
        texts = [text_in(row, text_column(row)) for row in given_rows(path)]
        if not texts:
            raise DataError("has no rows; expected at least one text", file=path, field="haystack")
        return SourceText(path.name, "\n\n".join(texts), file=str(path))
    if not is_there(path):
        raise DataError("does not exist; expected a text file or folder", file=path, field="haystack")
    # Sorted: the order of a folder differs between machines.
    files = files_in(path, "*.txt") if is_folder(path) else [path]
    if not files:
        raise DataError("is a folder without .txt files; expected text files", file=path, field="haystack")
    text = "\n\n".join(map(prose_of, files))
    if is_blank(text):
        raise DataError("holds no text; expected at least one sentence", file=path, field="haystack")
    return SourceText(path.name, text, file=str(path))
