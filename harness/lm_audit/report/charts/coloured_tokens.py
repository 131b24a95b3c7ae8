"""Text coloured by value: the view behind figures of kind ``tokens``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_audit.report.wording.names import visible
from lm_audit.report.wording.numbers import number
from lm_audit.shared.number_checks import is_number

STEPS = 5
"""Shades on each side of zero; few enough to tell apart, many enough to rank."""


@dataclass(frozen=True)
class TokenSpan:
    """One token: what is shown, its colour class, and what hovering says."""

    text: str
    css: str
    title: str
    breaks: bool


@dataclass(frozen=True)
class Frame:
    """One position of the slider."""

    label: str
    tokens: tuple[TokenSpan, ...]


@dataclass(frozen=True)
class TokenView:
    """All frames, and the value of the darkest shade."""

    frames: tuple[Frame, ...]
    limit: str
    diverging: bool


def token_view(data: Mapping[str, Any]) -> TokenView:
    """The figure's frames with colours on one scale for all of them, so that frames compare."""
    frames = data.get("frames") or []
    diverging = data.get("scale") != "sequential"
    values = [t.get("value") for frame in frames for t in frame.get("tokens", [])]
    limit = max((abs(v) for v in values if is_number(v)), default=0.0)
    shown = tuple(
        Frame(visible(frame.get("label", "")), _spans(frame.get("tokens", []), limit, diverging)) for frame in frames
    )
    return TokenView(shown, number(limit), diverging)


def _spans(tokens: Sequence[Mapping[str, object]], limit: float, diverging: bool) -> tuple[TokenSpan, ...]:
    return tuple(_span(token, limit, diverging) for token in tokens)


def _span(token: Mapping[str, Any], limit: float, diverging: bool) -> TokenSpan:
    raw, value, group = str(token.get("text", "")), token.get("value"), str(token.get("group") or "")
    known = is_number(value)
    title = " · ".join(part for part in (repr(raw), number(value) if known else "no value", visible(group)) if part)
    css = _shade(float(value), limit, diverging) if known and value is not None else "t-none"
    shown = visible(raw.replace("\n", "\u23ce"))
    return TokenSpan(shown or "\u2205", css, visible(title), raw.endswith("\n"))


def _shade(value: float, limit: float, diverging: bool) -> str:
    if limit == 0 or value == 0:
        return "t-0"
    step = max(1, min(STEPS, round(STEPS * (abs(value) / limit))))
    return f"t-{'n' if value < 0 and diverging else 'p'}{step}"
