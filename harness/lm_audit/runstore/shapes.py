"""Of which types the fields of each kind of record are: what a ledger says is checked once, where it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from lm_audit.errors import StoreError
from lm_audit.evidence import ControlRole
from lm_audit.findings.record import Kind, Side, Word
from lm_audit.runstore.inside import relative_name
from lm_audit.runstore.records import VerdictWord
from lm_audit.shared.number_checks import is_number

Check = Callable[[Any], bool]
LARGEST = 2**63


def _text(value: object) -> bool:
    return isinstance(value, str)


def _maybe_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _number(value: object) -> bool:
    return is_number(value)


def _maybe_number(value: object) -> bool:
    return value is None or _number(value)


def _maybe_share(value: Any) -> bool:
    return value is None or (_number(value) and 0 <= value <= 1)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _maybe_count(value: object) -> bool:
    return value is None or _count(value)


def _mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _maybe_role(value: object) -> bool:
    return value is None or value in get_args(ControlRole)


def _within(value: object) -> bool:
    if not isinstance(value, str):
        return False
    relative_name(value)
    return True


def _verdicts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, Mapping) and not _wrong(_VERDICT, entry) for entry in value
    )


_VERDICT: Mapping[str, Check] = {
    "metric": _text, "word": lambda value: value in get_args(VerdictWord), "limit": _text, "reason": _text,
}  # fmt: skip
_ESTIMATE: Mapping[str, Check] = {
    "value": _maybe_number, "low": _maybe_number, "high": _maybe_number, "n": _maybe_count, "chance": _maybe_number,
    "confidence": _maybe_share, "method": _text, "unit": _maybe_text, "better": _maybe_text, "note": _maybe_text,
    "units": _maybe_count, "fewest": _maybe_count,
}  # fmt: skip


def _estimate(value: object) -> bool:
    return isinstance(value, Mapping) and not _wrong(_ESTIMATE, value)


_FINDING: Mapping[str, Check] = {
    **dict.fromkeys(
        ("key", "found", "absent", "unknown", "size", "counted", "reason", "look", "page"), _text
    ),
    "verdict": lambda value: value in get_args(Word), "kind": lambda value: value in get_args(Kind),
    "side": lambda value: value in get_args(Side), "metric": _maybe_text,
    "effect": lambda value: value is None or _estimate(value),
    **dict.fromkeys(("null", "margin", "excluded"), _maybe_number), "p": _maybe_share, "adjusted": _maybe_share,
    "needed": _maybe_count, "held": lambda value: value is None or isinstance(value, bool),
    "headline": lambda value: isinstance(value, bool),
}  # fmt: skip


def _finding(value: object) -> bool:
    return isinstance(value, Mapping) and not _wrong(_FINDING, value)


SHAPES: Mapping[str, Mapping[str, Check]] = {
    "case_start": {
        "audit": _maybe_text, "model": _maybe_text, "device": _maybe_text, "fingerprint": _maybe_text,
        "control": _maybe_role, "code_version": _maybe_text, "markers": _texts,
    },
    "model": {"fingerprint": _maybe_text},
    "metric": {"name": _text, "estimate": _estimate},
    "rows": {"file": _within, "n": _count, "sha256": _text},
    "figure": {"name": _text, "title": _text, "figure": _text, "data": _mapping, "caption": _text},
    "artifact": {"path": _within, "sha256": _text},
    "control": {"role": lambda value: value in get_args(ControlRole), "expected": _text, "observed": _text},
    "parameter": {"name": _text},
    "note": {"text": _text},
    "headline": {"metric": _text},
    "finding": {"finding": _finding},
    "verdict": _VERDICT,
    "judged": {"outcome": _text, "message": _text, "cause": _maybe_text, "verdicts": _verdicts},
    "case_end": {
        "outcome": _text, "duration_s": _maybe_number, "message": _text, "cause": _maybe_text, "records": _maybe_count,
        "worker": _text,
    },
}  # fmt: skip
"""Fields that an older version did not write are absent; those that are there have these types."""


def check_shape(kind: str, record: Mapping[str, object]) -> None:
    """Raise ``ValueError`` where a record of a case is of no known kind, or a field of it is not what it must be."""
    if kind not in SHAPES:
        raise ValueError(f"this version knows no record of kind {kind[:80]!r}")
    wrong = _wrong(SHAPES[kind], record)
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
