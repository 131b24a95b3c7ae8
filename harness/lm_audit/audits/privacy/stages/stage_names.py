"""The four stages and the transitions between them."""

from __future__ import annotations

from typing import Literal, get_args

Stage = Literal["base", "sft", "dpo_no_canary", "dpo_with_canary"]
STAGES: tuple[Stage, ...] = get_args(Stage)

CSV_NAMES: dict[str, str] = {
    "base": "Stage0_Base",
    "sft": "Stage1_SFT",
    "dpo_no_canary": "Stage2a_DPO_NoCanary",
    "dpo_with_canary": "Stage2b_DPO_WithCanary",
}
"""The source design's names, used in the CSV."""

TRANSITIONS: dict[str, tuple[Stage, Stage]] = {
    "Base_to_SFT": ("base", "sft"),
    "SFT_to_DPO_NoCanary": ("sft", "dpo_no_canary"),
    "SFT_to_DPO_WithCanary": ("sft", "dpo_with_canary"),
    "DPO_NoCanary_vs_WithCanary": ("dpo_no_canary", "dpo_with_canary"),
}
"""Transition -> (from, to); a delta is the value after minus the value before."""

PRIMARY_TRANSITION = "DPO_NoCanary_vs_WithCanary"
