"""Rows that a user names for any audit: a file of rows, or a data set of the hub, with labels by their names.

One place for what is no public set with a form of its own: own samples, texts that were trained on, haystacks, and the
lists of words and requests that a TOML file takes from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.audits.given.columnar_rows import (
    COLUMNAR,
    NO_ROWS,
    columnar_rows,
    holds_saved_set,
    saved_parts,
    saved_rows,
)
from lm_audit.audits.given.json_documents import document_rows
from lm_audit.audits.hub_rows import Row, hub_parts, hub_set, structured
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import (
    OnDisk,
    chosen_files,
    ending_of,
    files_in,
    is_folder,
    is_there,
    json_lines,
    on_disk,
    parse_json,
    readable_file,
    table_rows,
    text_of,
)
from lm_audit.shared.textfiles.fields import check_keys, tables_field, texts_field
from lm_audit.shared.visible import is_blank

ENDINGS = (".jsonl", ".json", ".csv", ".tsv", *COLUMNAR)
"""Files of rows."""

_FORM = "OWNER/NAME@REVISION:CONFIG:SPLIT"


@dataclass(frozen=True)
class GivenRow:
    """One row, and where it stands: a file, or a set of the hub with its configuration and split."""

    file: str
    number: int
    values: Row

    def error(self, message: str, field: str | None = None) -> DataError:
        """What is wrong with the row, with its place."""
        return DataError(message, file=self.file, row=self.number, field=field)


def holds_rows(source: str | Path) -> bool:
    """Whether a source is a file of rows by its ending, a set that was saved, or can only be a data set of the hub."""
    named = on_disk(source)
    if is_folder(named.path):
        return bool(named.parts) or holds_saved_set(named.path)
    return ending_of(named.path) in ENDINGS or hub_set(source) is not None


def given_rows(source: str | Path) -> Iterator[GivenRow]:
    """The rows of a file by its ending (``ENDINGS``), of a folder that ``save_to_disk`` of `datasets` wrote, of a part
    of either (``FILE:SPLIT``, ``FOLDER:CONFIG:SPLIT``, also of a folder of files), or of
    ``OWNER/NAME[@REVISION][:CONFIG[:SPLIT]]``.

    Whatever is not named is read whole. Raises ``DataError`` with file and row for what cannot be
    read, and for a source that is neither; ``UsageError`` where a set of the hub needs a package that is not here.
    """
    here = on_disk(source)
    path = here.path
    if (saved := saved_parts(here)) is not None:
        for part in saved:
            place = f"{path} ({part.split})" if part.split else str(path)
            for number, row in saved_rows(part.files):
                yield GivenRow(place, number, row)
        return
    if is_there(path):
        for file in _files(here):
            for number, row in _rows_of(file):
                yield GivenRow(str(file.path), number, row)
        return
    named = hub_set(source)
    if named is None:
        raise DataError(f"no such file, and no hub id ({_FORM})", file=str(source))
    for found in hub_parts(named):
        place = ":".join([str(source).split(":")[0], *filter(None, (found.config, found.split))])
        for number, row in found.rows:
            yield GivenRow(place, number, row)


def _files(named: OnDisk) -> list[OnDisk]:
    """The file, or those in all folders of a folder that belong to the part that is named of it."""
    if not (named.parts and is_folder(named.path)):
        return [OnDisk(readable_file(named.path), named.parts)]
    return [OnDisk(file) for file in files_of_part(named, ENDINGS)]


def files_of_part(named: OnDisk, endings: Sequence[str]) -> list[Path]:
    """The files with such endings, in all folders of a folder, that belong to the part that is named of it."""
    files = files_in(named.path, "*", below=True)
    return chosen_files([one for one in files if ending_of(one) in endings and one.name not in NO_ROWS], named)


def _rows_of(file: OnDisk) -> Iterator[tuple[int, Row]]:
    ending = ending_of(file.path)
    if ending == ".json":
        return _of_document(file)
    path = file.whole()
    if ending in COLUMNAR:
        return columnar_rows(path)
    if ending in (".csv", ".tsv"):
        return table_rows(path, "\t" if ending == ".tsv" else ",")
    return json_lines(path)


def _of_document(file: OnDisk) -> Iterator[tuple[int, Row]]:
    for _, number, row in document_rows(parse_json(text_of(file.path), file.path, None), file):
        yield number, row


def legal_name(name: str) -> str:
    """A name that may be part of a case's id: nothing that ids are divided by, and nothing that cannot be seen."""
    visible = "".join(character if character.isprintable() else "-" for character in name)
    return re.sub(r"[@\[\]\s:]+", "-", visible).strip("-")[:100] or "benchmark"


def column_of(row: GivenRow, column: str) -> Any:
    """What a row holds in a column; ``DataError`` that names what there is where it has none of that name."""
    if column not in row.values:
        raise row.error(f"has no column {column!r}; it has {list(row.values)}")
    return row.values[column]


def text_in(row: GivenRow, column: str) -> str:
    """The text in a column; ``DataError`` for null, a number, a list, and a text of which nothing is seen."""
    value = column_of(row, column)
    if not isinstance(value, str) or is_blank(value):
        raise row.error(f"is {value!r:.60}; a text is expected", field=column)
    return value


def text_column(row: GivenRow) -> str:
    """The column that holds a row's text: ``text``, or the only one with a text; ``DataError`` where several could."""
    if "text" in row.values:
        return "text"
    texts = [name for name, value in row.values.items() if isinstance(value, str) and not is_blank(value)]
    if len(texts) == 1:
        return texts[0]
    raise row.error(f"has no column 'text', and {len(texts)} others with texts; it has {list(row.values)}")


def column_of_texts(row: GivenRow, names: Sequence[str]) -> str:
    """The first of these columns that a row has, else the one that :func:`text_column` finds."""
    return next((name for name in names if name in row.values), None) or text_column(row)


def texts_of_rows(source: str | Path, names: Sequence[str]) -> list[str]:
    """The texts of a source of rows: in the first of the named columns that its rows have, or in their only one."""
    found: list[str] = []
    column = None
    for row in given_rows(source):
        column = column or column_of_texts(row, names)
        found.append(text_in(row, column))
    if not found:
        raise DataError("holds no row", file=str(source))
    return found


def texts_or_set(
    table: Mapping[str, object], key: str, file: str | Path, *, default: str = "text", row: int | None = None
) -> list[str]:
    """A list of texts in a TOML table, or of a column elsewhere: ``key = {from = "OWNER/NAME:CONFIG", column = "x"}``.

    ``from`` names what :func:`given_rows` reads; a file is looked for beside the TOML file. ``default`` is the column
    where none is named.
    """
    value = table.get(key)
    if not isinstance(value, Mapping) or "from" not in value:
        return texts_field(table, key, file, row=row)
    check_keys(value, file, needed=("from",), optional=("column",), where=key, row=row)
    column = str(value.get("column", default))
    return [text_in(one, column) for one in given_rows(_beside(value["from"], key, file))]


def tables_or_set(
    table: Mapping[str, object], key: str, file: str | Path, names: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Tables ``[[key]]`` of a TOML file, or rows of elsewhere: ``key = {from = ..., NAME = "its column"}``.

    ``names`` are the fields of each; one whose column is not named has its own name there. Lists written as text are
    lists.
    """
    value = table.get(key)
    if not isinstance(value, Mapping) or "from" not in value:
        return tables_field(table, key, file)
    check_keys(value, file, needed=("from",), optional=tuple(names), where=key)
    return [
        {name: structured(column_of(one, str(value.get(name, name)))) for name in names}
        for one in given_rows(_beside(value["from"], key, file))
    ]


def _beside(source: object, key: str, file: str | Path) -> str:
    if not isinstance(source, str) or not source:
        raise DataError(f"from is {source!r:.60}; a file or {_FORM} is expected", file=file, field=key)
    near = Path(file).parent / source
    return str(near) if is_there(on_disk(near).path) else source
