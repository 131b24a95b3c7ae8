"""The published probe's text: question and options up to the middle of an option, and what should follow."""

from __future__ import annotations

from collections.abc import Sequence

from lm_audit.audits.leakage.items.item import LETTERS


def half_option_prefixes(question: str, options: Sequence[str]) -> list[tuple[str, str]]:
    """For each option (prefix, suffix), cut after the first floor(len / 2) code points of the option.

    The prefix is the question, the options before this one, and this one's first half, each option on a line of its
    own after ``"A. "``; the suffix is the option's rest. Source: IDEA-FinAI/IDEAFinBench, benchmark_leakage.py.
    """
    pairs, before = [], question
    for letter, option in zip(LETTERS[: len(options)], options, strict=True):
        cut = len(option) // 2
        pairs.append((f"{before}\n{letter}. {option[:cut]}", option[cut:]))
        before = f"{before}\n{letter}. {option}"
    return pairs


def published_match(decoded_token: str, suffix: str) -> bool:
    """The published rule: the decoded token, white space at its ends removed, begins the suffix.

    White space alone is therefore always a hit, and a token that holds part of a character never is.
    """
    return suffix.startswith(decoded_token.strip())
