"""The needle audit's own command-line options."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Callable

from lm_audit.audits.option import AuditOption

_MOST = 10**9


def _count(text: str) -> int:
    """A whole number of at least 1."""
    if not (text.isascii() and text.isdigit() and len(text) < 11 and 1 <= int(text) <= _MOST):
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _share(least: float, most: float) -> Callable[[str], float]:
    """Reads a number above ``least`` and below ``most``."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least < value < most:
            raise ArgumentTypeError(f"{text!r} is not a number above {least:g} and below {most:g}")
        return value

    return read


def _named(text: str) -> str:
    """Text that is not empty: an unset variable must not pass as the default."""
    if not text.strip():
        raise ArgumentTypeError(f"{text!r} names nothing")
    return text


OPTIONS = (
    AuditOption("--needle-lengths", "prompt lengths in tokens, answer included, as 4096,8192,16384", type=_named),
    AuditOption("--needle-depths", "number of depths from 0 to 100 percent, both included", type=_count),
    AuditOption("--needle-samples", "samples a cell", type=_count),
    AuditOption("--needle-tokens", "tokens reserved for the answer", type=_count),
    AuditOption(
        "--needle-preset", "one of RULER's tasks, niah_single_1 to niah_multiquery; may be repeated", action="append"
    ),
    AuditOption("--needle-haystack", "a text file or folder of your own to hide the needles in", type=_named),
    AuditOption("--needle-language", "language of needle and question", default="en", choices=("en", "zh")),
    AuditOption(
        "--needle-template",
        "what --chat on (chat), off (base) and auto say, for this audit alone; or a text that holds {task_template}",
        type=_named,
    ),
    AuditOption("--needle-boundary", "where needles may stand (default: by size)", choices=("sentence", "word")),
    AuditOption(
        "--needle-windows",
        "stretches of haystack: another for every prompt (independent), or one for all depths of a sample (shared), "
        "whose keys and values prompts then share",
        default="independent",
        choices=("independent", "shared", "start"),
    ),
    AuditOption(
        "--needle-folder", "evaluate the samples that lm-audit needle build wrote into this folder", type=_named
    ),
    AuditOption(
        "--needle-scorer", "score that accuracy and cliff go by", default="all", choices=("all", "any", "boundary")
    ),
    AuditOption("--needle-threshold", "accuracy that the cliff goes by", default=0.85, type=_share(0, 1)),
    AuditOption(
        "--adaptive", "needle: spend samples where the threshold is undecided, and stop when it is not", "store_true"
    ),
    AuditOption(
        "--needle-precision",
        "adaptive: half width of an interval that is narrow enough",
        default=0.05,
        type=_share(0, 0.5),
    ),
)
