"""The bias audit's own command-line options."""

from __future__ import annotations

from lm_audit.audits.option import AuditOption
from lm_audit.shared.number_checks import filled, real_number

DATA_SETS = ("crows_pairs", "stereoset", "winobias", "winogender", "bbq", "cbbq")
"""Public sets that ``--data NAME=...`` may name."""

OPTIONS = (
    AuditOption(
        "--bias-grid",
        "a preference grid of your own (TOML, in the format of fixtures/bias/preference_en.toml); may be repeated",
        action="append",
        metavar="FILE",
        type=filled,
        names="data",
    ),
    AuditOption(
        "--bias-requests",
        "requests of your own for the refusal audit: TOML in the form of fixtures/bias/refusal_en.toml, or rows (a "
        "file or OWNER/NAME@REVISION:CONFIG:SPLIT) whose texts hold {group}, asked about the shipped groups; may be "
        "repeated",
        action="append",
        metavar="FILE_OR_HUB_ID",
        type=filled,
        names="data",
    ),
    AuditOption(
        "--bias-swaps",
        "texts of your own for the counterfactual swap: TOML in the form of fixtures/bias/counterfactual_en.toml, or "
        "rows (a file or OWNER/NAME@REVISION:CONFIG:SPLIT) whose texts hold one ' | '; may be repeated",
        action="append",
        metavar="FILE_OR_HUB_ID",
        type=filled,
        names="data",
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
        "--bias-margin",
        "equivalence margin of a contrast, in nats",
        default=0.5,
        type=real_number(above=0, most=100, unit="nats"),
        metavar="NATS",
    ),
    AuditOption(
        "--bias-calibration",
        "what calibrated scores are held against: the neutral group, or the words' own probability (pmi)",
        default="neutral",
        choices=("neutral", "pmi"),
    ),
)
