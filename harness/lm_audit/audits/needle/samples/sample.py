"""Sample: one finished prompt with its answers and everything measured of it, as a line of JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from lm_audit.audits.needle.haystack.token_offsets import Integers
from lm_audit.audits.needle.samples.sequences import basis_points
from lm_audit.errors import DataError
from lm_audit.shared.number_checks import is_number

GENERATOR_VERSION = "1"


@dataclass(frozen=True)
class Sample:
    """One prompt. The model is fed ``input + answer_prefix``; ``outputs`` are the values that answer it.

    ``length`` is the target and ``actual_length`` the prompt's tokens plus ``tokens_to_generate``. Depths are in
    percent of the haystack's tokens, ``needle_token_position(s)`` the first token of a needle in the whole prompt. The
    lists run over the needles, of which the first is the one that the cell places. ``needle_spans`` are token ranges.
    """

    index: int
    input: str
    outputs: tuple[str, ...]
    length: int
    actual_length: int
    target_position: float
    actual_position: float
    needle_token_position: int
    answer_prefix: str
    target_positions: tuple[float, ...] = ()
    actual_positions: tuple[float, ...] = ()
    needle_token_positions: tuple[int, ...] = ()
    needle_spans: tuple[tuple[int, int], ...] = ()
    needles: tuple[str, ...] = ()
    tokens_to_generate: int = 0
    haystack_tokens: int = 0
    ids_sha256: str = ""
    text_sha256: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Name of the sample, unique within a grid."""
        return sample_id(self.length, self.target_position, self.index)

    @property
    def prompt(self) -> str:
        """The whole text that the model is fed."""
        return self.input + self.answer_prefix

    @property
    def special(self) -> bool:
        """Whether the tokenizer's own BOS comes before the text."""
        return bool(self.metadata.get("add_special_tokens", True))

    def to_json(self) -> dict[str, Any]:
        """All fields, and the id, as plain JSON values."""
        return {"id": self.id, **asdict(self), "metadata": dict(self.metadata)}

    @classmethod
    def from_json(
        cls, record: Mapping[str, object], *, file: str | Path | None = None, row: int | None = None
    ) -> Sample:
        """The inverse of :meth:`to_json`; ``DataError`` for a record that lacks a field or has one of another type."""
        for name, test in _FIELDS.items():
            if name in record and not test(record[name]):
                raise DataError(f"is {_short(record[name])}, which is no {name}", file=file, row=row, field=name)
        try:
            known = {one.name: record[one.name] for one in fields(cls) if one.name in record}
            lists = {name: _tuple(value) for name, value in known.items() if isinstance(value, list)}
            return cls(**{**known, **lists})
        except TypeError as error:
            raise DataError(f"is no sample: {error}", file=file, row=row) from None


def sample_id(length: int, depth: float, index: int) -> str:
    """``L004096-P05000-00003``: length in tokens, depth in basis points, number within the cell."""
    return f"L{length:06d}-P{basis_points(depth):05d}-{index:05d}"


def json_line(sample: Sample) -> str:
    """The sample as one line of JSON, without the line break."""
    return json.dumps(sample.to_json(), ensure_ascii=False)


def hash_ids(ids: Integers) -> str:
    """SHA-256 of token ids as little-endian 32-bit numbers."""
    return hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()


def hash_text(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12


def _is_number(value: object) -> bool:
    return is_number(value) and -1 <= value <= 100


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _list_of(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(test, value))


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("index", "tokens_to_generate", "haystack_tokens"), _is_whole),
    **dict.fromkeys(("length", "actual_length"), lambda value: _is_whole(value) and value > 0),
    **dict.fromkeys(("input", "answer_prefix", "ids_sha256", "text_sha256"), _is_text),
    "outputs": lambda value: _list_of(_is_text)(value) and len(value) > 0 and all(value),
    "target_position": lambda value: _is_number(value) and value >= 0,
    "actual_position": _is_number,
    "needle_token_position": lambda value: _is_whole(value) or (value == -1 and type(value) is int),
    **dict.fromkeys(("target_positions", "actual_positions"), _list_of(_is_number)),
    "needle_token_positions": _list_of(_is_whole),
    "needle_spans": _list_of(lambda span: _list_of(_is_whole)(span) and len(span) == 2),
    "needles": _list_of(_is_text),
    "metadata": lambda value: isinstance(value, Mapping),
}


def _tuple(value: object) -> Any:
    return tuple(_tuple(item) for item in value) if isinstance(value, list) else value
