"""Options that stand in one text, each behind its label: "a ) 38 , b ) 27.675 , c ) 30", "(A) red (B) blue"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lm_audit.audits.leakage.items.item import LETTERS

_BEGIN = r"(?:^|(?<=[\s,;|，；。]))"
_SERIES: tuple[tuple[str, Sequence[str]], ...] = (
    ("[A-Z]", LETTERS),
    ("[a-z]", LETTERS.lower()),
    ("[0-9]{1,2}", [str(k) for k in range(1, 27)]),
)
_FRAMES = (
    r"{begin}\(\s*({name})\s*\)",
    r"{begin}（\s*({name})\s*）",
    r"{begin}\[\s*({name})\s*\]",
    r"{begin}({name})\s*[)）]",
    r"{begin}({name})\s*[.．](?![0-9])",
    r"{begin}({name})\s*[、:：]",
)
_FORMS = (
    *((re.compile(frame.format(begin=_BEGIN, name=name)), series) for name, series in _SERIES for frame in _FRAMES),
    (re.compile("([①-⑳])"), [chr(0x2460 + k) for k in range(20)]),
)
_SEPARATOR = re.compile(r"\s*[,;|，；]\s*\Z")


@dataclass(frozen=True)
class LabelledParts:
    """The texts, and the label of each."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]


def labelled_parts(text: str) -> LabelledParts | None:
    """The options of one text; ``None`` where their labels do not say for sure where each begins.

    The text must begin with the first label of a series, and hold the others once each, in their order, and no further
    one of the same make: "A. Vitamin C. B. Iron" could be divided in two ways.
    """
    text = text.strip()
    for pattern, series in _FORMS:
        found = list(pattern.finditer(text))
        names = tuple(match.group(1) for match in found)
        if len(names) < 2 or found[0].start() or names != tuple(series[: len(names)]):
            continue
        ends = [*(match.start() for match in found[1:]), len(text)]
        parts = [text[match.end() : end].strip() for match, end in zip(found, ends, strict=True)]
        if all(_SEPARATOR.search(part) for part in parts[:-1]):
            parts = [*(_SEPARATOR.sub("", part) for part in parts[:-1]), parts[-1]]
        return LabelledParts(tuple(parts), names) if all(parts) else None
    return None
