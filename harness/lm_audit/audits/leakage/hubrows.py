"""Rows of a data set of the hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lm_audit.audits.leakage.parquetrows import named_class
from lm_audit.errors import DataError, UsageError

Rows = Iterator[tuple[int, Mapping[str, Any]]]


def hub_splits(name: str) -> Iterator[tuple[str, str, Rows]]:
    """Each split of ``owner/name[@revision][:config[:split]]``: what to call it, the split, its rows.

    Class numbers become their names. Raises ``DataError`` for what the hub does not have, ``UsageError`` where the
    package `datasets` is absent.
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise UsageError(f"{name!r} is no file here; reading it from the hub needs the package `datasets`") from error
    where, *rest = name.split(":")
    repo, _, revision = where.partition("@")
    config = rest[0] or None if rest else None
    split = rest[1] or None if len(rest) > 1 else None
    try:
        found = load_dataset(repo, config, split=split, revision=revision or None, streaming=True)
    except Exception as error:  # the hub's client raises a dozen types; each means that the rows are not to be had
        raise DataError(f"could not be loaded from the hub: {error}", file=name) from error
    splits: Mapping[str, Any] = {split or "all": found} if split else found
    for part, rows in splits.items():
        yield f"{name} ({part})", str(part), _numbered(rows, name)


def _numbered(rows: Iterable[Mapping[str, Any]], name: str) -> Rows:
    features = getattr(rows, "features", None) or {}
    classes = {column: list(feature.names) for column, feature in features.items() if hasattr(feature, "names")}
    try:
        for number, row in enumerate(rows, start=1):
            yield number, {column: named_class(value, classes.get(column)) for column, value in row.items()}
    except Exception as error:  # see above
        raise DataError(f"could not be read from the hub: {error}", file=name) from error
