"""Rows of Parquet files; what is not sound in them is an error that names the file and the row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_audit.errors import DataError


def parquet_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows, page checksums verified; class numbers that the file itself names get their names."""
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            names = list(file.schema_arrow.names)
            twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
            if twice is not None:
                raise DataError(f"has two columns called {twice!r}", file=path)
            classes = _classes(file.schema_arrow.metadata or {})
            for batch in file.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    number += 1
                    yield number, {name: named_class(value, classes.get(name)) for name, value in row.items()}
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, TypeError, KeyError) as error:
        raise DataError(f"cannot be read as Parquet: {error}", file=path, row=number + 1) from error


def named_class(value: Any, names: list[str] | None) -> Any:
    """The name of a class number, where the set has names and the number is one of theirs; else the value."""
    if names and isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return names[value]
    return value


def _classes(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """The class names by column that the `datasets` package leaves in a file's metadata."""
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        return {
            name: [str(x) for x in feature["names"]]
            for name, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
        }
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
