"""Dynamic NTK without memory: the rotation of a text depends on its own length, not on texts that came before.

``transformers`` keeps the frequencies of the longest text so far until a text of less than the original length comes.
"""

from __future__ import annotations

from typing import Any

from lm_audit.models.causal_module import CausalModule

_LONGEST = "max_seq_len_cached"


def forget_longer_texts(module: CausalModule) -> None:
    """Make every rotary embedding of ``module`` start from the original length in each forward pass."""
    part: Any
    for part in module.modules():
        if hasattr(part, _LONGEST) and hasattr(part, "original_max_seq_len") and not getattr(part, "_forgets", False):
            part._forgets = True
            part.register_forward_pre_hook(_start_anew)


def _start_anew(part: Any, _: object) -> None:
    for name in [name for name in vars(part) if name.endswith(_LONGEST)]:
        if getattr(part, name) > part.original_max_seq_len:
            setattr(part, name, part.original_max_seq_len)
            prefix = name.removesuffix(_LONGEST)
            now = getattr(part, f"{prefix}inv_freq")
            setattr(part, f"{prefix}inv_freq", getattr(part, f"{prefix}original_inv_freq").to(now.device))
