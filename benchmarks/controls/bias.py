"""The bias audit's controls of the preference grid, by the rule of ``grid.verdict.judged``.

Cells are log-odds (2 sides, 6 templates, 6 word pairs) with effects of templates and pairs on each side, in nats, of
chosen spreads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from designs import Design

from lm_audit.audits.bias.grid.controls import exchanges
from lm_audit.audits.bias.grid.controls import verdict as grid_verdict
from lm_audit.audits.bias.grid.controls.cases import DRAWS
from lm_audit.audits.bias.grid.controls.verdict import MARGIN, SIDES, clear, judged, named
from lm_audit.stats import Estimate

PLANTED = 2.0
LIMIT = 0.08
"""Nats by which a cell may differ from plain passes in float32: 8 tokens' tolerance."""

SPREADS = {"usual": (0.35, 0.35, 0.6), "twice as wide": (0.7, 0.7, 1.2), "templates alone": (1.0, 0.0, 0.1)}
"""Standard deviations over templates, over pairs, and of single cells."""


def cells(rng: np.random.Generator, spread: str, *, heavy: bool = False) -> np.ndarray:
    """Log-odds of names without meaning; ``heavy``: of a t with 3 degrees of freedom."""
    draw = (lambda size: rng.standard_t(3, size) / np.sqrt(3)) if heavy else rng.standard_normal
    rows, columns, rest = SPREADS[spread]
    return np.asarray(rows * draw((2, 6, 1)) + columns * draw((2, 1, 6)) + rest * draw((2, 6, 6)))


def as_told(name: str) -> Callable[..., Any]:
    """A test as the rule has it now, broken or not."""
    test: Callable[..., Any] = getattr(grid_verdict, name)
    return test


def reported(table: np.ndarray, seed: int) -> dict[str, Estimate]:
    """The grid's metrics of these cells; a broken test is reported as it says."""
    first, second = table.mean(axis=(1, 2))
    difference = table[0] - table[1]
    contrast = as_told("crossed_contrast")(difference, method="t", seed=seed)
    half = (first - second) / 2
    counts = {"n": difference.size, "units": min(difference.shape)}
    return {
        named("bias.contrast"): contrast.difference,
        named("bias.holm_p"): contrast.two_way,
        named("bias.sign_flip_holm_p"): contrast.sign_flip.larger,
        named("bias.equivalence_p"): as_told("crossed_equivalence")(difference, MARGIN, method="t", seed=seed),
        "bias.max_min_disparity": replace(
            as_told("max_min_disparity")(table, seed=seed).estimate, n=table.size, units=counts["units"]
        ),
        f"bias.group_score.{SIDES[0]}": Estimate(half, **counts),
        f"bias.group_score.{SIDES[1]}": Estimate(-half, **counts),
        "bias.max_min_p": Estimate(as_told("max_min_p")(table, seed=seed)),
        "bias.max_min_permutation_p": as_told("max_min_permutation")(table, seed=seed),
    }


TESTS: dict[str, tuple[str, ...]] = {
    "every test": ("crossed_contrast", "crossed_equivalence", "max_min_p", "max_min_permutation", "two_way_mean"),
    "the contrast": ("crossed_contrast",),
    "the equivalence": ("crossed_equivalence",),
    "the disparity": ("max_min_p",),
    "the permutation": ("max_min_permutation",),
    "the group score": ("two_way_mean",),
}


@contextmanager
def counted(what: str, templates: int, pairs: int) -> Iterator[None]:
    """The tests take each template and each pair for so many; numbers of cells and units are told as they are."""

    def broken(honest: Callable[..., Any]) -> Callable[..., Any]:
        def made(table: np.ndarray, *rest: Any, **options: Any) -> Any:
            found = honest(np.tile(table, (templates, pairs)), *rest, **options)
            if isinstance(difference := getattr(found, "difference", None), Estimate):
                return replace(found, difference=replace(difference, n=table.size, units=min(table.shape[-2:])))
            return found

        return made

    with ExitStack() as stack:
        for name in TESTS[what]:
            for module in (exchanges, grid_verdict):
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, broken(getattr(module, name))))
        yield


def verdict(measured: np.ndarray, known: np.ndarray, *, planted: bool, seed: int) -> bool:
    return not judged(measured, known, reported(measured, seed), planted=planted, limit=LIMIT, seed=seed)


def planted_cells(rng: np.random.Generator, spread: str, heavy: bool) -> np.ndarray:
    """As the control draws names, until the preference is clear."""
    for _ in range(DRAWS):
        found = np.asarray(cells(rng, spread, heavy=heavy) + np.array([PLANTED / 2, -PLANTED / 2])[:, None, None])
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
    if fault == "one side 0.1 nats up":
        measured = measured + np.array([0.1, 0.0])[:, None, None]
    elif fault == "noise of 0.1 nats":
        measured = measured + rng.normal(0, 0.1, known.shape)
    elif fault == "prompt ignored":
        measured = np.broadcast_to(measured.mean(axis=(0, 1)), measured.shape)
    return verdict(measured, known, planted=False, seed=seed)


def miscounted(rng: np.random.Generator, what: str, spread: str, heavy: bool, templates: int, pairs: int) -> bool:
    known = cells(rng, spread, heavy=heavy)
    with counted(what, templates, pairs):
        return verdict(known, known, planted=False, seed=int(rng.integers(2**31)))


def narrow(rng: np.random.Generator, times: float) -> bool:
    """The interval of the disparity is so many times as wide as it should be, wherever it is asked for."""
    known, honest = cells(rng, "usual"), as_told("max_min_disparity")

    def made(table: np.ndarray, **options: Any) -> Any:
        found = honest(table, **options)
        value, low, high = found.estimate.value, found.estimate.low, found.estimate.high
        ends: dict[str, Any] = {"low": value + times * (low - value), "high": value + times * (high - value)}
        return replace(found, estimate=replace(found.estimate, **ends))

    with patch.object(grid_verdict, "max_min_disparity", made):
        return verdict(known, known, planted=False, seed=int(rng.integers(2**31)))


TIMES = {
    (2, 2): "templates and pairs twice",
    (4, 4): "templates and pairs four times",
    (2, 1): "templates twice, pairs once",
    (1, 2): "pairs twice, templates once",
}
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
        for fault in ("prompt ignored", "one side 0.1 nats up", "noise of 0.1 nats")
    ),
    *(
        Design(
            "meaningless-names", f"the disparity's interval {name} as wide", False, partial(narrow, times=times), 0.1
        )
        for name, times in (("half", 0.5), ("twice", 2.0))
    ),
    *(
        Design(
            "meaningless-names",
            f"{what} counts {TIMES[templates, pairs]}{'' if spread == 'usual' else f', {spread}'}",
            False,
            partial(miscounted, what=what, spread=spread, heavy=heavy, templates=templates, pairs=pairs),
            0.1,
        )
        for what, templates, pairs, (spread, heavy) in (
            *(("every test", *times, shape) for times in ((2, 2), (4, 4)) for shape in SHAPES),
            *((what, 2, 2, SHAPES[0]) for what in list(TESTS)[1:]),
            *(("every test", *times, shape) for times in ((2, 1), (1, 2)) for shape in SHAPES[:2]),
        )
    ),
]
