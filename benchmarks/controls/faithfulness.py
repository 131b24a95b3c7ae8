"""The faithfulness audit's controls: each verdict counts samples, of 40, on which a comparison comes out as it must."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from designs import Design

from lm_audit.audits.faithfulness.controls.deletion_control import SCORES, judged
from lm_audit.audits.faithfulness.controls.known_sources import METHODS, SAMPLES, planted_verdict, randomised_verdict

Draw = Callable[[np.random.Generator, int], np.ndarray]


def planted(rng: np.random.Generator, found: float = 1.0, weakest: float | None = None, copies: float = 1.0) -> bool:
    """Methods find the letters with probability ``found`` a sample, one of them with ``weakest``."""
    chances = dict.fromkeys(METHODS, found) | ({} if weakest is None else {METHODS[-1]: weakest})
    hits = {method: (rng.random(SAMPLES) < chance).tolist() for method, chance in chances.items()}
    return planted_verdict((rng.random(SAMPLES) < copies).tolist(), hits).passed


def lost(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rank correlations with other weights, spread as measured."""
    return np.clip(rng.normal(0.1, 0.2, n), -1, 1)


def kept(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.clip(rng.normal(0.97, 0.05, n), -1, 1)


def half(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.5, kept(rng, n), lost(rng, n))


def noise(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(-1, 1, n)


def randomised(rng: np.random.Generator, again: Draw = kept, anew: Draw = lost, one: Draw | None = None) -> bool:
    """``one``: what the last method gives with new weights."""
    first = {method: again(rng, SAMPLES).tolist() for method in METHODS}
    second = {method: anew(rng, SAMPLES).tolist() for method in METHODS}
    if one is not None:
        second[METHODS[-1]] = one(rng, SAMPLES).tolist()
    return randomised_verdict(first, second).passed


def deletion(rng: np.random.Generator, fault: str = "", spread: float = 1.0) -> bool:
    """Scores of four orders; random ones have a spread of 0.06 and the planted ones lie 0.25 below and above."""
    rows = []
    for _ in range(SAMPLES):
        row: dict[str, float] = {}
        for score in SCORES:
            at = rng.normal(0.5, 0.05)
            drawn = at + 0.06 * spread * rng.standard_normal(4) + np.array([-0.25, 0.0, 0.0, 0.25])
            if fault == "constant":
                drawn[:] = 0.5
            elif fault == "noise":
                drawn = rng.random(4)
            elif fault == "reversed":
                drawn = 1 - drawn
            elif fault == "random attributions know a little":
                drawn[2] -= 0.2
            row |= {
                f"{score}_{kind}": float(v)
                for kind, v in zip(("first", "chance", "random", "last"), drawn, strict=True)
            }
        rows.append(row)
    return judged(rows).passed


DESIGNS = [
    Design("planted-span", "found in every sample", True, planted),
    Design("planted-span", "found in 0.96 of samples, copied in 0.96", True, partial(planted, found=0.96, copies=0.96)),
    Design("planted-span", "one method finds 0.55", False, partial(planted, weakest=0.55), 0.5),
    Design("planted-span", "all methods find 0.5", False, partial(planted, found=0.5), 0.5),
    Design("planted-span", "the model copies in 0.5", False, partial(planted, copies=0.5), 0.5),
    Design("randomised-weights", "correlations 0.1 +- 0.2 with new weights", True, randomised),
    Design("randomised-weights", "weights are not new", False, partial(randomised, anew=kept), 0.5),
    Design("randomised-weights", "one method keeps half of the rankings", False, partial(randomised, one=half), 0.5),
    Design("randomised-weights", "correlations are noise", False, partial(randomised, again=noise, anew=noise), 0.5),
    Design("randomised-weights", "correlations are 0", False, partial(randomised, again=lost, anew=lost), 0.5),
    Design("random-attribution", "planted orders 4 SD from random ones", True, deletion, 0.5),
    Design("random-attribution", "planted orders 2.5 SD from random ones", True, partial(deletion, spread=1.6), 0.5),
    *(
        Design("random-attribution", fault, False, partial(deletion, fault=fault), 0.1)
        for fault in ("constant", "noise", "reversed", "random attributions know a little")
    ),
]
