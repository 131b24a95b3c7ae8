"""Rows of a data set of the hub, with labels by their names.

One place for every audit: how such a set is named (``OWNER/NAME@REVISION:CONFIG:SPLIT``), read, and brought into the
form of its published files. A class label is stored as a number and means its name; a list of records is stored as a
dictionary of lists; nested metadata is sometimes stored as text. Nothing here knows what a column means.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_audit.audits.hub_network import why_unreached, without_network
from lm_audit.errors import DataError, UsageError
from lm_audit.shared.textfiles import is_there, on_disk

Row = dict[str, Any]

_NAME = re.compile(
    r"(?P<repo>[\w-][\w.-]*/[\w-][\w.-]*)(?:@(?P<revision>[^\s:@]+))?(?::(?P<config>[^\s:]*))?"
    r"(?::(?P<split>[^\s:\[]*(?:\[[^\s\]]*\][^\s:\[]*)*))?"
)
_PRINTED = re.compile(r"""(?<![\\\[{(,:\s])['"]\s+['"]""")
"""Two quoted texts with nothing but white space between them."""

FILE_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".arrow", ".txt", ".toml", ".gz")
"""A name with one of these is a file that is absent, never a data set."""


@dataclass(frozen=True)
class HubSet:
    """A data set of the hub; without ``config`` or ``split`` all that the set has are meant."""

    repo: str
    revision: str | None = None
    config: str | None = None
    split: str | None = None

    @classmethod
    def parse(cls, text: str | Path) -> HubSet | None:
        """The set that ``OWNER/NAME[@REVISION][:CONFIG[:SPLIT]]`` names; ``None`` where the text has another form."""
        match = _NAME.fullmatch(str(text))
        # A colon with nothing behind it is an unset variable, and would stand for all there is.
        if match is None or str(text).endswith(("/", ":")):
            return None
        if any(part.endswith(FILE_ENDINGS) for part in match["repo"].lower().split("/")):
            return None
        return cls(match["repo"], *(match[part] or None for part in ("revision", "config", "split")))

    def __str__(self) -> str:
        text = self.repo + (f"@{self.revision}" if self.revision else "")
        return text + (f":{self.config or ''}:{self.split}" if self.split else f":{self.config}" if self.config else "")


@dataclass(frozen=True)
class HubPart:
    """One split of one configuration; ``rows`` gives numbers from 1 and rows, and can be iterated once."""

    config: str | None
    split: str
    rows: Iterator[tuple[int, Row]]


def hub_set(text: str | Path) -> HubSet | None:
    """The set of the hub that a source can only be: it has the form of one, and nothing of that name is here."""
    return None if is_there(on_disk(text).path) or str(text).startswith((".", "/")) else HubSet.parse(text)


def hub_parts(source: HubSet, *, streaming: bool = False) -> Iterator[HubPart]:
    """The splits of the set, rows with labels by name; ``streaming`` reads row by row instead of whole files.

    A set with several configurations and none named is read configuration by configuration. Raises ``UsageError`` where
    the package ``datasets`` is not installed, ``DataError`` with the set's name for whatever keeps its rows away, a
    configuration or a split that it does not have among them (what it has is listed).
    """
    if is_there(Path(source.repo)):
        raise DataError(
            f"a folder {source.repo!r} is here, which `datasets` would read in place of the hub's set; write "
            f"{source.repo} for the folder, or call from another place",
            file=str(source),
        )
    try:
        import datasets  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"{str(source)!r} is no file here; reading it from the hub needs the package `datasets`"
        ) from error
    unreached = why_unreached(source.repo, source.revision)
    network: Callable[[], AbstractContextManager[None]] = without_network if unreached else nullcontext
    with network():
        configs = [source.config] if source.config else _configs(source)
    for config in configs:
        with network():
            found = _load(source, config, streaming, unreached)
        # A set of one split comes bare where that split was named, else as a mapping of splits.
        splits = found if isinstance(found, Mapping) else {source.split or "all": found}
        for split, rows in splits.items():
            yield HubPart(config, str(split), _numbered(rows, source))


def _configs(source: HubSet) -> list[str | None]:
    from datasets import get_dataset_config_names

    try:
        names = get_dataset_config_names(source.repo, revision=source.revision)
    except Exception:  # where the list cannot be had (a cache without network), loading says what is wrong
        return [None]
    return list(names) if len(names) > 1 else [None]


def _load(source: HubSet, config: str | None, streaming: bool, unreached: str | None) -> Any:
    from datasets import load_dataset

    options: dict[str, Any] = {"split": source.split, "revision": source.revision}
    if streaming:
        options["streaming"] = True
    try:
        return load_dataset(source.repo, config, **options)
    except Exception as error:  # the hub's client raises a dozen types; each means that the rows are not to be had
        if unreached:
            raise DataError(
                f"is not on this machine, and the hub could not be reached: {unreached}", file=str(source)
            ) from error
        raise DataError(
            f"could not be loaded from the hub: {first_lines(error)}. A set is named OWNER/NAME@REVISION:CONFIG:SPLIT",
            file=str(source),
        ) from error


def first_lines(error: Exception) -> str:
    """What an error of a library says, in one line of at most 400 letters."""
    return " ".join(str(error).split())[:400] or type(error).__name__


def _numbered(rows: Any, source: HubSet) -> Iterator[tuple[int, Row]]:
    features: Any = getattr(rows, "features", None)
    described = {} if features is None else features.to_dict()
    try:
        for number, row in enumerate(rows, start=1):
            yield number, placed(row, described, str(source), number)
    except DataError:
        raise
    except Exception as error:  # see above
        raise DataError(f"could not be read from the hub: {first_lines(error)}", file=str(source)) from error


def placed(row: Mapping[str, object], features: Mapping[str, object], file: str | Path, number: int) -> Row:
    """:func:`named`, with the row's place in what it raises."""
    try:
        return named(row, features)
    except DataError as error:
        raise DataError(str(error), file=file, row=number) from error


def named(row: Mapping[str, object], features: Mapping[str, object]) -> Row:
    """The row with every class label by its name, at any depth; ``features`` as ``Features.to_dict()`` writes them.

    Raises ``DataError`` for a class number beyond the names.
    """
    return {name: _named(value, features.get(name)) for name, value in row.items()}


def _named(value: Any, feature: object) -> Any:
    if value is None or feature is None:
        return value
    if isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel":
        if isinstance(value, list | tuple):
            return [_named(part, feature) for part in value]
        names = feature.get("names")
        names = list(names.values() if isinstance(names, Mapping) else names or ())
        if not isinstance(value, int) or isinstance(value, bool) or not names:
            return value
        if value >= len(names):
            raise DataError(f"holds the class number {value} where only {len(names)} classes have a name")
        # -1 stands for a label that is not known, as in test splits without answers.
        return names[value] if value >= 0 else None
    inner = feature[0] if isinstance(feature, list) and feature else None
    if isinstance(feature, Mapping) and "feature" in feature and isinstance(feature.get("_type"), str):
        inner = feature["feature"]
    if inner is not None:
        if isinstance(value, Mapping):  # a list of records, stored as a dictionary of lists
            return {name: _named(part, _listed(inner, name)) for name, part in value.items()}
        return [_named(part, inner) for part in value] if isinstance(value, list | tuple) else value
    if isinstance(feature, Mapping) and isinstance(value, Mapping):
        return {name: _named(part, feature.get(name)) for name, part in value.items()}
    return value


def _listed(inner: object, name: str) -> Any:
    return [inner[name]] if isinstance(inner, Mapping) and name in inner else None


def records(value: object) -> Any:
    """A dictionary of equally long lists as a list of dictionaries, at every depth; anything else as it is."""
    if isinstance(value, Mapping):
        lists = [part for part in value.values() if isinstance(part, list | tuple)]
        if value and len(lists) == len(value) and len({len(part) for part in lists}) == 1:
            return [records(dict(zip(value, parts, strict=True))) for parts in zip(*lists, strict=True)]
        return {name: records(part) for name, part in value.items()}
    return [records(part) for part in value] if isinstance(value, list | tuple) else value


def structured(value: object) -> Any:
    """Text that holds a JSON or Python list or dictionary as that; anything else as it is.

    Exports to CSV write nested columns so. Arrays as numpy prints them have no commas and stay text: Python would join
    their elements into one.
    """
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    if _PRINTED.search(value):
        return value
    try:
        found = ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return found if isinstance(found, dict | list | tuple) else value
