"""Rows of Parquet and Arrow files, and of the folders in which `datasets` saves a set, with labels by their names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_audit.audits.hub_rows import Row, first_lines, placed
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import OnDisk, chosen, ending_of, is_file, is_folder, readable_file
from lm_audit.shared.textfiles.encodings import LFS
from lm_audit.shared.textfiles.json_text import read_json_object
from lm_audit.shared.textfiles.packed import is_packed

if TYPE_CHECKING:
    import pyarrow

COLUMNAR = (".parquet", ".arrow")
_AT_ONCE = 1024
_SPLITS, _STATE = "dataset_dict.json", "state.json"
NO_ROWS = (_SPLITS, _STATE, "dataset_info.json", "dataset_infos.json")
"""What `datasets` writes beside the rows."""


@dataclass(frozen=True)
class SavedPart:
    """A split of a set that was saved, "" where it has no name, and the files of its rows in their order."""

    split: str
    files: tuple[Path, ...]


def saved_parts(named: OnDisk) -> list[SavedPart] | None:
    """The splits in a folder that ``save_to_disk`` wrote, or the one that is named; ``None`` for any other folder.

    Raises ``DataError`` for a file or split that is named and absent, and for rows that were chosen by numbers which
    stand beside them.
    """
    folder = named.path
    if is_file(folder / _SPLITS):
        splits = _names_in(folder / _SPLITS, "splits")
        meant = [splits[place] for place in chosen([(split,) for split in splits], named)]
        return [SavedPart(split, part.files) for split in meant for part in _saved(folder / split)]
    if not is_file(folder / _STATE):
        return None
    parts = _saved(folder)
    return [parts[place] for place in chosen([(part.split,) if part.split else () for part in parts], named)]


def _saved(folder: Path) -> list[SavedPart]:
    state = read_json_object(readable_file(folder / _STATE))
    if state.get("_indices_data_files"):
        raise DataError(
            "keeps which rows are meant beside them; load it, call flatten_indices() and save again", file=folder
        )
    names = state.get("_data_files")
    if not isinstance(names, list) or not all(isinstance(one, dict) and "filename" in one for one in names):
        raise DataError("names no files of rows", file=folder / _STATE, field="_data_files")
    files = tuple(readable_file(folder / Path(str(one["filename"])).name) for one in names)
    return [SavedPart(str(state.get("_split") or ""), files)]


def _names_in(path: Path, field: str) -> list[str]:
    names = read_json_object(path).get(field)
    if not isinstance(names, list) or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise DataError("is no list of names", file=path, field=field)
    return names


def saved_rows(files: tuple[Path, ...]) -> Iterator[tuple[int, Row]]:
    """The rows of one split, numbered from 1 through all of its files."""
    for number, (_, row) in enumerate((pair for file in files for pair in columnar_rows(file)), start=1):
        yield number, row


def holds_saved_set(path: Path) -> bool:
    """Whether a path is a folder that ``save_to_disk`` wrote."""
    return is_folder(path) and any(is_file(path / name) for name in (_SPLITS, _STATE))


def columnar_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """The rows of a Parquet or Arrow file with numbers from 1; labels by name where it says that it is of the hub.

    An Arrow file may hold a stream or the format for random access. Page checksums of Parquet are verified. Raises
    ``DataError`` with the file, and the row after the last sound one, for what cannot be read, and for a column named
    twice.
    """
    import pyarrow

    path, number = readable_file(path), 0
    form = "Parquet" if ending_of(path) == ".parquet" else "Arrow"
    try:
        with path.open("rb") as file:
            if file.read(len(LFS[0])) == LFS[0]:
                raise DataError(f"is {LFS[1]}; a {form} file is needed", file=path)
        if is_packed(path):
            raise DataError("is packed by gzip; unpack it (gunzip -k FILE)", file=path)
        with _opened(path, form) as (schema, batches):
            twice = next((name for k, name in enumerate(schema.names) if name in schema.names[:k]), None)
            if twice is not None:
                raise DataError(f"has two columns called {twice!r}", file=path)
            described = _described(schema.metadata)
            for batch in batches:
                for start in range(0, batch.num_rows, _AT_ONCE):
                    for row in batch.slice(start, _AT_ONCE).to_pylist():
                        number += 1
                        yield number, placed(row, described, path, number)
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, TypeError, KeyError) as error:
        raise DataError(f"cannot be read as {form}: {first_lines(error)}", file=path, row=number + 1) from error


@contextmanager
def _opened(path: Path, form: str) -> Iterator[tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]]:
    import pyarrow.ipc
    import pyarrow.parquet

    # By handle, since a path that is not UTF-8 is none for Arrow.
    with path.open("rb") as handle:
        if form == "Parquet":
            with pyarrow.parquet.ParquetFile(handle, page_checksum_verification=True) as file:
                yield file.schema_arrow, file.iter_batches(batch_size=_AT_ONCE)
            return
        begins = handle.read(6)
        handle.seek(0)
        if begins == b"ARROW1":
            with pyarrow.ipc.open_file(handle) as random:
                yield random.schema, (random.get_batch(k) for k in range(random.num_record_batches))
        else:
            with pyarrow.ipc.open_stream(handle) as stream:
                yield stream.schema, iter(stream)


def _described(metadata: Mapping[bytes, bytes] | None) -> Mapping[str, Any]:
    """The features that ``datasets`` leaves in the metadata of a file; empty for other files."""
    try:
        found = json.loads((metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}
