"""Which encoding a text file is in: UTF-8 (with or without BOM), GB18030, UTF-16; a mixture is an error."""

from __future__ import annotations

from pathlib import Path

from lm_audit.errors import DataError


def encoding_of(path: Path) -> str:
    """The file's encoding, read line by line so that memory stays flat.

    Raises ``DataError`` with the row where a line is in neither encoding, or where some lines are UTF-8 only and others
    GB18030 only.
    """
    first = {"utf-8": 0, "gb18030": 0}
    plausible_utf8 = 0
    with path.open("rb") as handle:
        start = handle.read(4)
        if start in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
            raise DataError("is UTF-32; save the file as UTF-8", file=path)
        if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16"
        handle.seek(0)
        for number, line in enumerate(handle, start=1):
            if b"\0" in line:
                raise DataError(
                    "holds NUL bytes (UTF-16 without its mark?); save the file as UTF-8", file=path, row=number
                )
            if line.isascii():
                continue
            found = _encoding_of_line(line)
            if found is None:
                raise DataError("is neither UTF-8 nor GB18030; save the file as UTF-8", file=path, row=number)
            first[found] = first[found] or number
            # A few words of GB18030 may happen to be valid UTF-8; ideographs in UTF-8 hardly come about by chance.
            if found == "utf-8" and not plausible_utf8 and _ideographs(line) >= 2:
                plausible_utf8 = number
            if first["gb18030"] and plausible_utf8:
                raise _mixed(path, plausible_utf8, first["gb18030"])
    return "gb18030" if first["gb18030"] else "utf-8-sig"


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
