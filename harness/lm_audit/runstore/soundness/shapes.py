"""Of which types the fields of each kind of record are: what a ledger says is checked once, where it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from lm_audit.errors import StoreError
from lm_audit.evidence import ControlRole
from lm_audit.findings.beyond import Side
from lm_audit.findings.record import Kind, Word
from lm_audit.runstore.inside import relative_name
from lm_audit.runstore.records import Outcome, VerdictWord
from lm_audit.shared.number_checks import is_number

Check = Callable[[Any], bool]
LARGEST = 2**63


def _text(value: object) -> bool:
    return isinstance(value, str)


def _maybe_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _maybe_number(value: object) -> bool:
    return value is None or is_number(value)


def _maybe_share(value: Any) -> bool:
    return value is None or (is_number(value) and 0 <= value <= 1)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _maybe_count(value: object) -> bool:
    return value is None or _count(value)


def _mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _outcome(value: object) -> bool:
    return value in get_args(Outcome)


def _maybe_role(value: object) -> bool:
    return value is None or value in get_args(ControlRole)


def _within(value: object) -> bool:
    if not isinstance(value, str):
        return False
    relative_name(value)
    return True


def _verdicts(value: object) -> bool:
    return isinstance(value, list) and all(_of_shape(_VERDICT, entry) for entry in value)


def _truth(value: object) -> bool:
    return isinstance(value, bool)


def _maybe_duration(value: Any) -> bool:
    return value is None or (is_number(value) and value >= 0)


_TERM: Mapping[str, Check] = {"weight": is_number, "where": _mapping, "column": _maybe_text}
_SOURCE: Mapping[str, Check] = {
    "statistic": _text, "column": _maybe_text, "where": _mapping, "unit": _texts, "within": _text,
    "terms": lambda value: isinstance(value, list) and all(_of_shape(_TERM, entry) for entry in value),
    "transform": _maybe_text, "clusters": _texts, "options": _mapping, "scale": is_number, "offset": is_number,
    "margin": _maybe_number, "seeded": _truth,
}  # fmt: skip


def _of_shape(shape: Mapping[str, Check], value: object) -> bool:
    return isinstance(value, Mapping) and not _wrong(shape, value)


_VERDICT: Mapping[str, Check] = {
    "metric": _text, "word": lambda value: value in get_args(VerdictWord), "limit": _text, "reason": _text,
}  # fmt: skip
_ESTIMATE: Mapping[str, Check] = {
    "value": _maybe_number, "low": _maybe_number, "high": _maybe_number, "n": _maybe_count, "chance": _maybe_number,
    "confidence": _maybe_share, "method": _text, "unit": _maybe_text, "better": _maybe_text, "note": _maybe_text,
    "units": _maybe_count, "fewest": _maybe_count,
}  # fmt: skip


def _estimate(value: object) -> bool:
    return _of_shape(_ESTIMATE, value)


_FINDING: Mapping[str, Check] = {
    **dict.fromkeys(
        ("key", "found", "absent", "unknown", "size", "counted", "reason", "look", "page"), _text
    ),
    "verdict": lambda value: value in get_args(Word), "kind": lambda value: value in get_args(Kind),
    "side": lambda value: value in get_args(Side), "metric": _maybe_text,
    "effect": lambda value: value is None or _estimate(value),
    **dict.fromkeys(("null", "margin", "excluded"), _maybe_number), "p": _maybe_share, "adjusted": _maybe_share,
    "needed": _maybe_count, "held": lambda value: value is None or _truth(value),
    "headline": _truth,
}  # fmt: skip


def _finding(value: object) -> bool:
    return _of_shape(_FINDING, value)


SHAPES: Mapping[str, Mapping[str, Check]] = {
    "case_start": {
        "audit": _maybe_text, "model": _maybe_text, "device": _maybe_text, "fingerprint": _maybe_text,
        "control": _maybe_role, "code_version": _maybe_text, "markers": _texts, "toy": _truth,
    },
    "model": {"fingerprint": _maybe_text},
    "metric": {
        "name": _text, "estimate": _estimate, "source": lambda value: value is None or _of_shape(_SOURCE, value),
    },
    "rows": {"file": _within, "n": _count, "sha256": _text},
    "figure": {"name": _text, "title": _text, "figure": _text, "data": _mapping, "caption": _text},
    "artifact": {"path": _within, "sha256": _text},
    "control": {
        "role": lambda value: value in get_args(ControlRole), "passed": _truth, "expected": _text, "observed": _text,
    },
    "parameter": {"name": _text},
    "note": {"text": _text},
    "read": {"files": lambda value: _mapping(value) and all(map(_text, value.values()))},
    "headline": {"metric": _text},
    "finding": {"finding": _finding},
    "verdict": _VERDICT,
    "judged": {"outcome": _outcome, "message": _text, "cause": _maybe_text, "verdicts": _verdicts},
    "case_end": {
        "outcome": _outcome, "duration_s": _maybe_duration, "message": _text, "cause": _maybe_text,
        "records": _maybe_count, "worker": _text,
    },
}  # fmt: skip
"""Fields that an older version did not write are absent; those that are there have these types."""

_OF_A_CASE: Mapping[str, Check] = {"case_id": lambda value: _text(value) and value != "", "attempt": _count}
_OF_A_RUN: Mapping[str, Mapping[str, Check]] = {
    "run_start": {},
    "plan": {"cases": lambda value: isinstance(value, list)},
    "run_end": {"interrupted": _truth},
}
_NEEDED = {"plan": ("cases",), "case_end": ("outcome",), "judged": ("outcome", "verdicts")}
"""What nobody else would miss."""


def check_shape(kind: str, record: Mapping[str, object]) -> None:
    """Raise ``ValueError`` where a record is of no known kind, or a field of it is not what it must be.

    The same where it is about a case and does not say about which.
    """
    if kind not in SHAPES and kind not in _OF_A_RUN:
        raise ValueError(f"this version knows no record of kind {kind[:80]!r}")
    for needed in (*(("case_id",) if kind in SHAPES else ()), *_NEEDED.get(kind, ())):
        if needed not in record:
            raise ValueError(f"{needed} is missing")
    wrong = _wrong({**_OF_A_CASE, **SHAPES[kind]} if kind in SHAPES else _OF_A_RUN[kind], record)
    if wrong:
        raise ValueError(f"{wrong} cannot be {type(record[wrong]).__name__!s} {_brief(record[wrong])}")


def _wrong(shape: Mapping[str, Check], record: Mapping[str, object]) -> str | None:
    for name, check in shape.items():
        try:
            if name in record and not check(record[name]):
                return name
        except (StoreError, TypeError, OverflowError):
            return name
    return None


def _brief(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # An integer of too many digits.
        text = "that is too long"
    return text if len(text) <= 120 else f"{text[:120]}\u2026"
