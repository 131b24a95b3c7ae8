"""Deterministic scores of one answer against its references; every score is a share between 0 and 1."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CONTROL = re.compile(r"[\x00-\x1f]")
_NUMBER = re.compile(r"(?<!\w)\d{7}(?!\w)")


def clean(prediction: str) -> str:
    """The prediction as RULER scores it: stripped, control characters turned to line breaks, stripped again."""
    return _CONTROL.sub("\n", prediction.strip()).strip()


def score_all(prediction: str, references: Sequence[str]) -> float:
    """The share of references that the prediction contains, whatever the case (RULER's ``string_match_all``)."""
    return _share([_contains(prediction, reference) for reference in references])


def score_any(prediction: str, references: Sequence[str]) -> float:
    """1.0 where the prediction contains any reference, else 0.0 (RULER's ``string_match_part``)."""
    return float(any(_contains(prediction, reference) for reference in references))


def score_boundary(prediction: str, references: Sequence[str]) -> float:
    """The share of references that stand in the prediction as whole words: 12345678 does not hold 1234567."""
    text = clean(prediction)
    return _share([_whole_word(reference).search(text) is not None for reference in references])


def precision(prediction: str, references: Sequence[str]) -> float | None:
    """The share of seven-digit numbers in the prediction that are references; ``None`` where it names none.

    A model that lists every number of the text finds all references with a low precision.
    """
    named = set(_NUMBER.findall(clean(prediction)))
    return len(named & set(references)) / len(named) if named else None


def settled(prediction: str, references: Sequence[str]) -> bool:
    """Whether no further text can change the scores: each reference stands there, and something ended it."""
    return all(
        re.search(_whole_word(reference).pattern + r"[\s\S]", prediction, re.IGNORECASE) for reference in references
    )


def _contains(prediction: str, reference: str) -> bool:
    return reference.lower() in clean(prediction).lower()


def _whole_word(reference: str) -> re.Pattern[str]:
    # A border is asked for only where the reference itself ends in a word character: "(x)" has none to offer.
    before = r"(?<!\w)" if reference[:1].isalnum() else ""
    after = r"(?!\w)" if reference[-1:].isalnum() else ""
    return re.compile(before + re.escape(reference) + after, re.IGNORECASE)


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found) if found else 0.0
