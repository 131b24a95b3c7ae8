"""RULER's eight needle tasks by name (NVIDIA/RULER, synthetic.yaml at c3f5e3b)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_audit.errors import UsageError
from lm_audit.shared.number_checks import suggestion


def _preset(haystack: str, k: str = "words", v: str = "numbers", **counts: int) -> dict[str, Any]:
    # RULER draws the depths of further needles at random.
    return {
        "type_haystack": haystack,
        "type_needle_k": k,
        "type_needle_v": v,
        "other_depths": "random",
        "num_needle_k": 1,
        "num_needle_v": 1,
        "num_needle_q": 1,
        **counts,
    }


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "niah_single_1": _preset("noise"),
    "niah_single_2": _preset("essay"),
    "niah_single_3": _preset("essay", v="uuids"),
    "niah_multikey_1": _preset("essay", num_needle_k=4),
    "niah_multikey_2": _preset("needle"),
    "niah_multikey_3": _preset("needle", k="uuids", v="uuids"),
    "niah_multivalue": _preset("essay", num_needle_v=4),
    "niah_multiquery": _preset("essay", num_needle_q=4),
}


def preset(name: str) -> dict[str, Any]:
    """The parameters of one of RULER's needle tasks; ``UsageError`` for a name that is none."""
    if name not in PRESETS:
        raise UsageError(
            f"preset {name!r:.80} is unknown{suggestion(name, PRESETS)}; expected one of {', '.join(PRESETS)}"
        )
    return dict(PRESETS[name])
