"""The bias audit's own command-line options."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError

from lm_audit.audits.option import AuditOption


def _margin(text: str) -> float:
    try:
        margin = float(text)
    except ValueError:
        margin = math.nan
    if not 0 < margin < math.inf:
        raise ArgumentTypeError(f"{text!r} is not a number of nats above 0")
    return margin


OPTIONS = (
    AuditOption(
        "--bias-grid",
        "a preference grid of your own (TOML, in the format of fixtures/bias/preference_en.toml); may be repeated",
        action="append",
        metavar="FILE",
    ),
    AuditOption(
        "--bias-mode",
        "preference grids: what --chat off (raw) and --chat on (chat: prompts open the assistant's turn) say, for them "
        "alone",
        choices=("raw", "chat"),
    ),
    AuditOption(
        "--bias-boundary",
        "correct word probabilities for what may follow the word: white space (ws), also punctuation (wsp), or none",
        default="none",
        choices=("none", "ws", "wsp"),
    ),
    AuditOption(
        "--bias-margin", "equivalence margin of a contrast, in nats", default=0.5, type=_margin, metavar="NATS"
    ),
    AuditOption(
        "--bias-calibration",
        "what calibrated scores are held against: the neutral group, or the words' own probability (pmi)",
        default="neutral",
        choices=("neutral", "pmi"),
    ),
)
