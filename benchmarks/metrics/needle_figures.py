"""Figures of the needle audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from figure import Design, Told
from scipy.special import expit

from lm_audit.audits.needle.grid.cliff import THRESHOLD, cliff, possible_level
from lm_audit.stats import Estimate, clustered_mean, share, studentised_mean

SURFACES = {
    "flat at 0.97": (0.97,) * 5,
    "falls": (0.99, 0.98, 0.95, 0.7, 0.3),
    "at the threshold": (0.85,) * 5,
    "just below": (0.84,) * 5,
}


def grid(
    rng: np.random.Generator, seed: int, there: bool, *, lengths: int, depths: int, samples: int
) -> Mapping[str, Told]:
    """Cells of other accuracies, each sample with a haystack of its own, two values asked for."""
    p = 0.98 - 0.5 * np.linspace(0, 1, lengths)[:, None] * (1 - np.abs(np.linspace(-1, 1, depths)))[None]
    # Both values of a prompt are found together more often than not.
    lead = rng.random((samples, lengths, depths))
    second = np.where(rng.random(lead.shape) < 0.6, lead, rng.random(lead.shape))
    found = np.stack([lead < p, second < p], axis=-1).astype(float)
    both, any_ = found.mean(axis=-1), found.max(axis=-1)
    values = rng.normal(-2.0, 1.0, lead.size) - rng.exponential(1.0, lead.size) * (both.ravel() < 1)
    either = 0.6 * p + 0.4 * (1 - (1 - p) ** 2)
    return {
        "needle.accuracy, needle.all, needle.precision": Told(share(both.ravel()), float(p.mean())),
        "needle.any": Told(share(any_.ravel()), float(either.mean())),
        "needle.accuracy.L{length}": Told(share(both[:, -1].ravel()), float(p[-1].mean())),
        "needle.boundary, needle.value_greedy": Told(
            share((both.ravel() == 1) * 1.0), float((0.6 * p + 0.4 * p**2).mean())
        ),
        "needle.value_logprob": Told(
            studentised_mean(values, seed=seed), -2.0 - float((1 - 0.6 * p - 0.4 * p**2).mean())
        ),
        "needle.cut_answers, needle.empty_answers, needle.no_answer": Told(
            share((rng.random(lead.size) < 0.03) * 1.0), 0.03
        ),
    }


def shared(
    rng: np.random.Generator, seed: int, there: bool, *, stretches: int, depths: int, spread: float
) -> Mapping[str, Told]:
    """All depths of a sample share a stretch of text, which makes it harder or easier."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    own = spread * rng.standard_normal(stretches)
    labels = np.repeat(np.arange(stretches), depths)
    hits = (rng.random(len(labels)) < expit(1.5 + own[labels])).astype(float)
    values = -2.0 + own[labels] + rng.normal(size=len(labels))
    return {
        "needle.accuracy (shared text)": Told(
            share(hits, labels), float(weights @ expit(1.5 + spread * nodes) / weights.sum())
        ),
        "needle.value_logprob (shared text)": Told(clustered_mean(values, labels), -2.0),
    }


def longest(rng: np.random.Generator, seed: int, there: bool, *, p: Sequence[float], n: int) -> Mapping[str, Told]:
    """The cliff: its value is a lower limit, so that one beyond the true one is an error; the interval reaches up to
    where accuracy may still be."""
    answers = {k + 1: (rng.random(n) < chance).astype(float) for k, chance in enumerate(p)}
    accuracy = {length: share(values) for length, values in answers.items()}
    possible = {length: share(values, confidence=possible_level(len(p))) for length, values in answers.items()}
    true = float(next((k for k, chance in enumerate(p) if chance < THRESHOLD), len(p)))
    found = cliff(accuracy, THRESHOLD, possible)
    told = found if found.value is not None else Estimate(0.0, 0.0, _possible(possible))
    if told.high is None:  # it may lie beyond: nothing is longer here
        told = replace(told, high=float(len(p)))
    return {"needle.cliff": Told(told, true), "needle.cliff, beyond the true one": Told(told, true, true, "above")}


def _possible(accuracy: Mapping[int, Estimate]) -> float:
    """Where no length is shown to be good, the longest up to which all may be."""
    reached = 0.0
    for length, one in accuracy.items():
        if one.high is None or one.high < THRESHOLD:
            break
        reached = float(length)
    return reached


def designs() -> Iterator[Design]:
    for lengths, depths, samples in ((3, 3, 2), (5, 11, 5)):
        yield Design(
            "share, studentised_mean",
            f"{lengths} lengths x {depths} depths x {samples}",
            f"{lengths * depths * samples} prompts",
            partial(grid, lengths=lengths, depths=depths, samples=samples),
            discrete=True,
        )
    for stretches in (6, 12, 24):
        for spread in (0.0, 1.0):
            yield Design(
                "share and clustered_mean over stretches",
                f"11 depths, stretches' SD {spread:g} on the logit",
                f"{stretches} stretches",
                partial(shared, stretches=stretches, depths=11, spread=spread),
                discrete=True,
            )
    for name, p in SURFACES.items():
        for n in (55, 220):
            yield Design(
                "cliff: limits of share",
                f"5 lengths, {name}",
                f"{n} prompts each",
                partial(longest, p=p, n=n),
                discrete=True,
            )
