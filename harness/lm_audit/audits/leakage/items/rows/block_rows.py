"""Text files of questions in blocks divided by empty lines: the answer's letter, a passage, a question, its options.

The first release of LogiQA is written so (https://github.com/lgw863/LogiQA-dataset).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError
from lm_audit.shared.textfiles.plain import lines_of

_LETTER = re.compile(r"[A-Za-z]")
_OPTION = re.compile(r"\(?([A-Z])\s*[.．、):：]\s*(.*)", re.DOTALL)


def block_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The blocks as rows, their numbers those of their first lines.

    Raises ``DataError`` with the line for a block of another form: what else a text file holds is unknown.
    """
    for blank, lines in groupby(lines_of(path), key=lambda line: not line[1].strip()):
        if not blank:
            block = list(lines)
            yield block[0][0], _row([text.strip() for _, text in block], path, block[0][0])


def _row(lines: list[str], path: Path, number: int) -> Mapping[str, Any]:
    first = next((k for k, line in enumerate(lines) if (found := _OPTION.fullmatch(line)) and found[1] == "A"), 0)
    options = [_OPTION.fullmatch(line) for line in lines[first:]]
    names = "".join(option[1] for option in options if option)
    if not _LETTER.fullmatch(lines[0]) or first < 2 or names != "ABCDEFGHIJ"[: len(options)] or len(names) < 2:
        raise DataError(
            "is a text file, of which only blocks can be read that hold the answer's letter, a passage, a question and "
            "its options (A., B., ...) in lines of their own; save any other set as CSV, JSONL or Parquet",
            file=path,
            row=number,
        )
    *passage, question = lines[1:first]
    asked = {"context": "\n".join(passage)} if passage else {}
    texts = {"text": [option[2] for option in options if option], "label": list(names)}
    return {**asked, "question": question, "options": texts, "answer": lines[0].upper()}
