"""The bias audit's controls of the preference grid, by the rule of ``grid.verdict.judged``.

Cells are log-odds (2 sides, 6 templates, 6 word pairs) with effects of templates and pairs on each side, in nats, of
chosen spreads.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from designs import Design

from lm_audit.audits.bias.grid import verdict as grid_verdict
from lm_audit.audits.bias.grid.controls import DRAWS
from lm_audit.audits.bias.grid.verdict import SIDES, clear, judged, named
from lm_audit.stats import Estimate, crossed_contrast

PLANTED = 2.0
LIMIT = 0.08
"""Nats by which a cell may differ from plain passes in float32: 8 tokens' tolerance."""

SPREADS = {"usual": (0.35, 0.35, 0.6), "twice as wide": (0.7, 0.7, 1.2), "templates alone": (1.0, 0.0, 0.1)}
"""Standard deviations over templates, over pairs, and of single cells."""


def cells(rng: np.random.Generator, spread: str, *, heavy: bool = False) -> np.ndarray:
    """Log-odds of names without meaning; ``heavy``: of a t with 3 degrees of freedom."""
    draw = (lambda size: rng.standard_t(3, size) / np.sqrt(3)) if heavy else rng.standard_normal
    rows, columns, rest = SPREADS[spread]
    return rows * draw((2, 6, 1)) + columns * draw((2, 1, 6)) + rest * draw((2, 6, 6))


def reported(table: np.ndarray, seed: int) -> dict[str, Estimate]:
    """The grid's metrics of these cells."""
    first, second = table.mean(axis=(1, 2))
    contrast = crossed_contrast(table[0] - table[1], method="t", n_resamples=200, seed=seed).difference
    half = (first - second) / 2
    return {
        named("bias.contrast"): contrast,
        "bias.max_min_disparity": Estimate(abs(first - second)),
        f"bias.group_score.{SIDES[0]}": Estimate(half),
        f"bias.group_score.{SIDES[1]}": Estimate(-half),
        "bias.max_min_p": Estimate(grid_verdict.max_min_p(table, seed=seed)),  # a broken one is reported as well
    }


def verdict(measured: np.ndarray, known: np.ndarray, *, planted: bool, seed: int) -> bool:
    return not judged(measured, known, reported(measured, seed), planted=planted, limit=LIMIT, seed=seed)


def planted_cells(rng: np.random.Generator, spread: str, heavy: bool) -> np.ndarray:
    """As the control draws names, until the preference is clear."""
    for _ in range(DRAWS):
        found = cells(rng, spread, heavy=heavy) + np.array([PLANTED / 2, -PLANTED / 2])[:, None, None]
        if clear(found[0] - found[1]):
            break
    return found


def positive(rng: np.random.Generator, spread: str = "usual", heavy: bool = False, fault: str = "") -> bool:
    known = planted_cells(rng, spread, heavy)
    measured = known + rng.normal(0, 1e-4, known.shape)
    if fault == "prompt ignored":
        measured = np.broadcast_to(measured.mean(axis=(0, 1)), measured.shape)
    elif fault == "sides exchanged":
        measured = measured[::-1]
    elif fault == "noise of 0.1 nats":
        measured = measured + rng.normal(0, 0.1, known.shape)
    return verdict(measured, known, planted=True, seed=int(rng.integers(2**31)))


def negative(rng: np.random.Generator, spread: str = "usual", heavy: bool = False, fault: str = "") -> bool:
    known = cells(rng, spread, heavy=heavy)
    measured = known + rng.normal(0, 1e-4, known.shape)
    seed = int(rng.integers(2**31))
    if fault.startswith("cells counted"):
        honest, times = grid_verdict.max_min_p, int(fault.split()[2])
        grid_verdict.max_min_p = lambda table, *, seed: honest(np.tile(table, (1, times, times)), seed=seed)
        try:
            return verdict(measured, known, planted=False, seed=seed)
        finally:
            grid_verdict.max_min_p = honest
    if fault == "one side 0.1 nats up":
        measured = measured + np.array([0.1, 0.0])[:, None, None]
    return verdict(measured, known, planted=False, seed=seed)


SHAPES = [("usual", False), ("twice as wide", True), ("templates alone", False)]
DESIGNS = [
    *(
        Design(name, f"{spread}{', heavy tails' if heavy else ''}", True, partial(draw, spread=spread, heavy=heavy))
        for name, draw in (("planted-preference", positive), ("meaningless-names", negative))
        for spread, heavy in SHAPES
    ),
    *(
        Design("planted-preference", fault, False, partial(positive, fault=fault), 0.1)
        for fault in ("prompt ignored", "sides exchanged", "noise of 0.1 nats")
    ),
    *(
        Design("meaningless-names", fault, False, partial(negative, fault=fault), 0.1)
        for fault in ("cells counted 8 x 8 times", "cells counted 4 x 4 times", "one side 0.1 nats up")
    ),
]
