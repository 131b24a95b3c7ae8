"""Which encoding a text file is in: UTF-8 (with or without BOM), GB18030, UTF-16; anything else is an error."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from lm_audit.errors import DataError, DataWarning
from lm_audit.shared.textfiles.chinese import ChineseEvidence
from lm_audit.shared.textfiles.packed import opened_bytes
from lm_audit.shared.textfiles.paths import readable_file

LFS = (b"version https://git-lfs.github.com/", "the pointer that Git LFS keeps in a file's place (git lfs pull)")
"""What stands in a checkout for a large file that was not fetched, and what it is."""

_NO_TEXT = {
    b"PK\x03\x04": "a zip archive or a spreadsheet (unzip it, or save the sheet as CSV)",
    b"\x28\xb5\x2f\xfd": "packed by Zstandard (unpack it: zstd -d FILE)",
    b"BZh": "packed by bzip2 (unpack it: bunzip2 -k FILE)",
    b"\xfd7zXZ\0": "packed by xz (unpack it: unxz -k FILE)",
    b"%PDF-": "PDF",
    b"PAR1": "Parquet (name it .parquet)",
    b"ARROW1": "Arrow (name it .arrow)",
    b"\xff\xff\xff\xff": "an Arrow stream (name it .arrow)",
    b"GGUF": "a GGUF model",
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    LFS[0]: LFS[1],
}
"""What other files begin with."""

_PIECE = 2**24
"""So many bytes of a line are looked at at once: a file of NUL bytes alone has no line ends."""

_ISO_2022 = re.compile(rb"\x1b\$[@AB()]")
"""What switches to another alphabet in texts of seven bits (ISO-2022-JP, "JIS")."""


def encoding_of(path: str | Path) -> str:
    """The file's encoding, read line by line so that memory stays flat.

    Whether a text is GB18030 is a guess, which a ``DataWarning`` tells, with what else it could be. Raises
    ``DataError`` for what is no readable file or no text, with the row where a line is in neither encoding, where some
    lines are UTF-8 only and others GB18030 only, and where what would be GB18030 is not clearly Chinese: too few
    letters to tell, or those of EUC-KR, Shift-JIS, Big5, Windows-1251, Latin-1, which decode as that.
    """
    path = readable_file(path)
    try:
        return _look(path)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from error


def _look(path: Path) -> str:
    first = {"utf-8": 0, "gb18030": 0}
    plausible_utf8 = 0
    chinese = ChineseEvidence()
    with opened_bytes(path) as handle:
        start = handle.read(264)
        _refuse_other_files(start, path)
        if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16"
        handle.seek(0)
        for number, line in enumerate(_lines(handle), start=1):
            if b"\0" in line:
                raise DataError(
                    "holds NUL bytes (UTF-16 without its mark?); save the file as UTF-8", file=path, row=number
                )
            if line.isascii():
                if b"\x1b" in line and _ISO_2022.search(line):
                    raise DataError("is ISO-2022 (JIS); save the file as UTF-8", file=path, row=number)
                continue
            found = _encoding_of_line(line)
            if found is None:
                raise DataError("is neither UTF-8 nor GB18030; save the file as UTF-8", file=path, row=number)
            first[found] = first[found] or number
            if found == "gb18030":
                chinese.weigh(line)
            # A few words of GB18030 may happen to be valid UTF-8; ideographs in UTF-8 hardly come about by chance.
            if found == "utf-8" and not plausible_utf8 and _ideographs(line) >= 2:
                plausible_utf8 = number
            if first["gb18030"] and plausible_utf8:
                raise _mixed(path, plausible_utf8, first["gb18030"])
    if not first["gb18030"]:
        return "utf-8-sig"
    if not chinese.likely:
        raise DataError(
            "is not UTF-8, and cannot be told to be Chinese text in GB18030"
            f"{_or(chinese.others)}; save the file as UTF-8",
            file=path,
            row=first["gb18030"],
        )
    warnings.warn(
        f"{path}: is not UTF-8 and was read as GB18030 (Chinese), going by its most frequent letters"
        f"{_or(chinese.others)}; if it is in another encoding, save it as UTF-8",
        DataWarning,
        stacklevel=3,
    )
    return "gb18030"


def _or(others: str) -> str:
    return f"; its bytes would also be {others}" if others else ""


def _lines(handle: IO[bytes]) -> Iterator[bytes]:
    """The lines with their ends; of one that holds a NUL byte the piece that does, however long it is."""
    parts: list[bytes] = []
    while piece := handle.readline(_PIECE):
        if b"\0" in piece or (not parts and piece.endswith(b"\n")):
            yield piece
            parts = []
            continue
        parts.append(piece)
        if piece.endswith(b"\n"):
            yield b"".join(parts)
            parts = []
    if parts:
        yield b"".join(parts)


def _refuse_other_files(start: bytes, path: Path) -> None:
    if start[257:262] == b"ustar":
        raise DataError("is a tar archive; unpack it (tar -xf FILE) and name what is in it", file=path)
    for magic, kind in _NO_TEXT.items():
        if start.startswith(magic):
            what = "save the file as UTF-8" if kind == "UTF-32" else "a text file is needed"
            raise DataError(f"is {kind}; {what}", file=path)


def _encoding_of_line(line: bytes) -> str | None:
    return next((encoding for encoding in ("utf-8", "gb18030") if _decodes(line, encoding)), None)


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _ideographs(line: bytes) -> int:
    return sum("\u4e00" <= character <= "\u9fff" for character in line.decode())


def _mixed(path: Path, utf8: int, gb: int) -> DataError:
    return DataError(
        f"mixes encodings: row {utf8} is UTF-8 and row {gb} is GB18030; save the file in one, best UTF-8",
        file=path,
        row=max(utf8, gb),
    )
