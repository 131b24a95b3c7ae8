"""A preference grid read from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lm_audit.audits.bias.grid.lexicon.linting import require_clean
from lm_audit.audits.bias.grid.lexicon.parts import Axis, PreferenceSet, WordPair, normalise_slot
from lm_audit.audits.given.given_rows import tables_or_set, texts_or_set
from lm_audit.errors import DataError
from lm_audit.shared.textfiles import read_toml
from lm_audit.shared.textfiles.fields import check_keys, tables_field, text_field


def load_preference_set(path: str | Path) -> PreferenceSet:
    """The grid in a TOML file, linted. Templates, groups and pairs may stand elsewhere: ``pairs = {from =
    "OWNER/NAME:CONFIG:SPLIT", positive = "good", negative = "bad"}`` (:mod:`lm_audit.audits.given.given_rows`).

    Raises ``DataError`` with the file and the field for TOML that does not parse, a missing or unknown key, and every
    defect that :func:`lm_audit.audits.bias.grid.lexicon.linting.lint` finds.
    """
    path = Path(path)
    preference_set = _from_document(read_toml(path), str(path))
    require_clean(preference_set)
    return preference_set


_PAIR = ("positive", "negative")
_NEEDED = ("language", "templates", "axes", "pairs", "neutral")


def _from_document(document: Mapping[str, object], source: str) -> PreferenceSet:
    check_keys(document, source, needed=_NEEDED, optional=("separator", "terminator"))
    return PreferenceSet(
        language=text_field(document, "language", source),
        separator=text_field(document, "separator", source, default=" "),
        templates=tuple(
            normalise_slot(template) for template in texts_or_set(document, "templates", source, default="template")
        ),
        axes=tuple(_axis(entry, row, source) for row, entry in enumerate(tables_field(document, "axes", source), 1)),
        pairs=tuple(
            _pair(entry, row, source) for row, entry in enumerate(tables_or_set(document, "pairs", source, _PAIR), 1)
        ),
        neutral=text_field(document, "neutral", source),
        terminator=text_field(document, "terminator", source),
        source=source,
    )


def _axis(entry: Mapping[str, object], row: int, source: str) -> Axis:
    check_keys(entry, source, needed=("name", "groups"), optional=("reference",), where="axes", row=row)
    name = text_field(entry, "name", source, row=row)
    groups = texts_or_set(entry, "groups", source, default="group", row=row)
    reference = text_field(entry, "reference", source, row=row) if "reference" in entry else None
    if reference == "":  # and not the first group, which stands for one that is not given
        raise DataError("is empty; name one of the groups, or leave it out", file=source, row=row, field="reference")
    try:
        return Axis.of(name, groups, reference)
    except DataError as error:
        raise DataError(str(error), file=source, row=row, field="axes") from error


def _pair(entry: Mapping[str, object], row: int, source: str) -> WordPair:
    check_keys(entry, source, needed=_PAIR, where="pairs", row=row)
    return WordPair(*(text_field(entry, key, source, row=row) for key in _PAIR))
