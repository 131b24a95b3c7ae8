"""The needle audit's negative control counts hits where there is no needle; its other controls are exact and have no
error to simulate (``real.py`` runs them at many seeds)."""

from __future__ import annotations

from functools import partial

import numpy as np
from designs import Design

from lm_audit.audits.needle.controls.stubs import CHANCE, silent


def no_needle(rng: np.random.Generator, rate: float = CHANCE, prompts: int = 8) -> bool:
    return silent(int(rng.binomial(prompts, rate)), prompts)


DESIGNS = [
    Design("no-needle", "8 prompts, values of seven digits by chance", True, no_needle, 5.0),
    Design("no-needle", "8 prompts, a scorer that guesses", False, partial(no_needle, rate=0.5)),
    Design("no-needle", "8 prompts, a hit in 0.45", False, partial(no_needle, rate=0.45), 5.0),
]
