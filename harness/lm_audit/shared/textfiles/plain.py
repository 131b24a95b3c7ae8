"""Text as it stands in a file, whole or line by line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from lm_audit.errors import DataError
from lm_audit.shared.textfiles.encodings import encoding_of
from lm_audit.shared.textfiles.packed import opened_bytes
from lm_audit.shared.textfiles.paths import as_spelt


@contextmanager
def opened(path: str | Path) -> Iterator[TextIO]:
    """The open file, lines ended by LF alone and kept as they are; ``DataError`` for whatever keeps it from us."""
    path = as_spelt(Path(path))
    encoding = encoding_of(path)
    try:
        with opened_bytes(path) as handle, TextIOWrapper(handle, encoding, newline="\n") as stream:
            yield stream
    except UnicodeError as error:
        raise DataError(f"its text is damaged ({error}); save the file as UTF-8", file=path) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from error


def text_of(path: str | Path) -> str:
    """The text of a file, its line breaks as they are; raises what :func:`encoding_of` raises."""
    with opened(path) as stream:
        return stream.read()


def lines_of(path: str | Path) -> Iterator[tuple[int, str]]:
    """Pairs (number from 1, line without its end), read as they are asked for.

    Only LF ends a line: U+2028, U+0085 and their like stand inside of texts.
    """
    with opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, line.removesuffix("\n").removesuffix("\r")
