"""A preference grid read from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_audit.audits.bias.lexicon import Axis, PreferenceSet, WordPair, normalise_slot
from lm_audit.audits.bias.linting import require_clean
from lm_audit.errors import DataError
from lm_audit.textfiles import read_toml


def load_preference_set(path: str | Path) -> PreferenceSet:
    """The grid in a TOML file, linted.

    Raises ``DataError`` with the file and the field for TOML that does not parse, a missing or unknown key, and every
    defect that :func:`lm_audit.audits.bias.linting.lint` finds.
    """
    path = Path(path)
    preference_set = _from_document(read_toml(path), str(path))
    require_clean(preference_set)
    return preference_set


_REQUIRED = ("language", "templates", "axes", "pairs", "neutral")
_OPTIONAL = ("separator", "terminator")


def _from_document(document: Mapping[str, Any], source: str) -> PreferenceSet:
    missing = [key for key in _REQUIRED if key not in document]
    unknown = [key for key in document if key not in (*_REQUIRED, *_OPTIONAL)]
    if missing or unknown:
        raise DataError(
            f"missing keys {missing}, unknown keys {unknown}; a grid has {[*_REQUIRED, *_OPTIONAL]}", file=source
        )
    for key in ("axes", "pairs"):
        if not isinstance(document[key], list):
            raise DataError(f"must be tables [[{key}]], found {document[key]!r}", file=source, field=key)
    return PreferenceSet(
        language=str(document["language"]),
        separator=str(document.get("separator", " ")),
        templates=tuple(normalise_slot(template) for template in _texts(document["templates"], source, "templates")),
        axes=tuple(_axis(entry, row, source) for row, entry in enumerate(document["axes"], start=1)),
        pairs=tuple(_pair(entry, row, source) for row, entry in enumerate(document["pairs"], start=1)),
        neutral=str(document["neutral"]),
        terminator=str(document.get("terminator", "")),
        source=source,
    )


def _texts(value: Any, source: str, field: str) -> list[str]:
    """``value`` as a list of texts; a lone text would be taken for the list of its letters."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise DataError(f"must be a list of texts, found {value!r}", file=source, field=field)
    return value


def _axis(entry: Mapping[str, Any], row: int, source: str) -> Axis:
    if not isinstance(entry, Mapping) or "name" not in entry or "groups" not in entry:
        raise DataError(f"an axis needs name and groups, found {entry!r}", file=source, row=row, field="axes")
    groups = _texts(entry["groups"], source, f"axis {entry['name']!r} groups")
    try:
        return Axis.of(str(entry["name"]), groups, entry.get("reference"))
    except DataError as error:
        raise DataError(str(error), file=source, row=row, field="axes") from error


def _pair(entry: Mapping[str, Any], row: int, source: str) -> WordPair:
    if not isinstance(entry, Mapping) or not {"positive", "negative"} <= set(entry):
        raise DataError(f"a pair needs positive and negative, found {entry!r}", file=source, row=row, field="pairs")
    return WordPair(str(entry["positive"]), str(entry["negative"]))
