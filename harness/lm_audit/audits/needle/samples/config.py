"""NeedleConfig: everything that determines a grid of samples, under the names of RULER and of the folder's metadata."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from lm_audit.audits.needle.haystack.sources import KINDS
from lm_audit.audits.needle.samples.drawing import ITEM_TYPES
from lm_audit.audits.needle.samples.presets import preset
from lm_audit.audits.needle.samples.sequences import depth_sequence, length_sequence
from lm_audit.audits.needle.samples.task import BuildOptions, NeedleTask
from lm_audit.audits.needle.samples.wording import check_language
from lm_audit.errors import UsageError

_NOT_CONTENT = ("save_name", "tokenizer_path")
"""Fields that change no sample: the tokenizer counts by what it does, not by where it lies."""

_LATER: Mapping[str, Any] = {"chat_args": {}, "thinking": True}
"""Fields that came later: with these values a grid's hash is what it was without them, so that old folders go on."""


@dataclass(frozen=True)
class NeedleConfig:
    """The parameters of a grid: lengths x depths x samples. Raises ``UsageError`` for any that cannot be used.

    ``haystack`` is a text file or folder of the user's that replaces the embedded essay. ``tokenizer_path`` is a model
    spec, of which only the tokenizer is read. ``position_strategy`` and the lengths are as in
    :func:`depth_sequence` and :func:`length_sequence`; the rest is as in :class:`BuildOptions`.
    """

    target_length: int
    length_interval: int
    num_positions: int
    num_samples: int
    start_length: int | None = None
    position_strategy: str = "uniform"
    type_haystack: str = "essay"
    haystack: str | None = None
    type_needle_k: str = "words"
    type_needle_v: str = "numbers"
    num_needle_k: int = 1
    num_needle_v: int = 1
    num_needle_q: int = 1
    tokens_to_generate: int = 128
    tokenizer_path: str = "smollm2"
    tokenizer_type: str = "hf"
    save_name: str = ""
    subset: str = "validation"
    template: str = "auto"
    chat_args: Mapping[str, Any] = field(default_factory=dict)
    thinking: bool = True
    random_seed: int = 0
    remove_newline_tab: bool = False
    language: str = "en"
    boundary: str = "sentence"
    windows: str = "independent"
    other_depths: str = "spread"
    planted: bool = True
    verify: str = "auto"

    def __post_init__(self) -> None:
        self._check_types()
        for name in ("target_length", "length_interval"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name.replace('_', ' ')} is {getattr(self, name)}; expected 1 or more")
        if self.random_seed < 0:
            raise UsageError(f"random seed is {self.random_seed}; expected 0 or more")
        first = self.length_interval if self.start_length is None else self.start_length
        if first < 1:
            raise UsageError(f"start length is {first}; expected 1 token or more")
        if self.start_length is None and self.length_interval > self.target_length:
            raise UsageError(
                f"length interval {self.length_interval} is larger than the target length {self.target_length}; "
                "no length would be built"
            )
        if first > self.target_length:
            raise UsageError(f"start length {first} is above the target length {self.target_length}; lower it")
        if self.num_samples < 1:
            raise UsageError(f"number of samples is {self.num_samples}; expected 1 or more")
        for name, allowed in (
            ("type_haystack", KINDS),
            ("type_needle_k", ITEM_TYPES),
            ("type_needle_v", ITEM_TYPES),
            ("tokenizer_type", ("hf",)),
            ("subset", ("validation", "test")),
        ):
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(allowed)}")
        if self.haystack is not None and self.type_haystack != "essay":
            raise UsageError(
                f"a haystack file was named, but type_haystack is {self.type_haystack!r}; expected 'essay'"
            )
        check_language(self.language)
        _ = self.lengths, self.depths, self.task, self.options

    def _check_types(self) -> None:
        kinds = {"int": int, "int | None": (int, type(None)), "bool": bool, "str": str, "str | None": (str, type(None))}
        for one in fields(self):
            value, kind = getattr(self, one.name), kinds.get(str(one.type))
            if kind and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):  # type: ignore[arg-type]
                raise UsageError(f"{one.name} is {value!r}; expected {one.type}")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> NeedleConfig:
        """A configuration from names and values, ``preset`` among them; ``UsageError`` for unknown or missing names."""
        given = {name: value for name, value in values.items() if name not in ("preset", "save_dir")}
        if values.get("preset") is not None:
            given = {**preset(values["preset"]), **given}
        known = {one.name for one in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise UsageError(f"unknown parameter {unknown[0]!r}; expected one of {', '.join(sorted(known))}")
        try:
            return cls(**given)
        except TypeError as error:
            raise UsageError(f"configuration: {error}") from None

    @property
    def lengths(self) -> list[int]:
        """Prompt lengths in tokens."""
        return length_sequence(self.target_length, self.length_interval, self.start_length)

    @property
    def depths(self) -> list[float]:
        """Needle depths in percent."""
        return depth_sequence(self.num_positions, self.position_strategy, seed=self.random_seed)

    @property
    def task(self) -> NeedleTask:
        """What is hidden and asked for."""
        return NeedleTask(
            self.type_needle_k, self.type_needle_v, self.num_needle_k, self.num_needle_v, self.num_needle_q
        )

    @property
    def options(self) -> BuildOptions:
        """How prompts are made."""
        return BuildOptions(
            template=self.template,
            chat_args=self.chat_args,
            thinking=self.thinking,
            tokens_to_generate=self.tokens_to_generate,
            boundary=self.boundary,  # type: ignore[arg-type]
            windows=self.windows,  # type: ignore[arg-type]
            other_depths=self.other_depths,  # type: ignore[arg-type]
            language=self.language,
            one_line=self.remove_newline_tab,
            planted=self.planted,
            verify=self.verify,  # type: ignore[arg-type]
            subset=self.subset,
        )

    def to_json(self) -> dict[str, Any]:
        """All parameters."""
        return asdict(self)

    def content_hash(self, *parts: str) -> str:
        """SHA-256 of all that determines the samples; ``parts`` stand for the haystack and the tokenizer."""
        content = {name: value for name, value in self.to_json().items() if name not in _NOT_CONTENT}
        for name, usual in _LATER.items():
            if content[name] == usual:
                del content[name]
        return hashlib.sha256(json.dumps([content, *parts], sort_keys=True).encode()).hexdigest()
