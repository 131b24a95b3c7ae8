"""Exposure of canaries, in bits: how far a model's ranking of a secret beats guessing (Carlini et al. 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lm_audit.errors import UsageError
from lm_audit.stats.checked import checked
from lm_audit.stats.covering import FEWEST
from lm_audit.stats.estimate import Estimate
from lm_audit.stats.inputs import (
    Array,
    finite_array,
    first_reason,
    large_exponent,
    number,
    whole,
)
from lm_audit.stats.leaks.reference_gaps import reference_limits
from lm_audit.stats.means.bounded import bounded_limits

SMALLEST_FIT = 30
"""A skew-normal distribution has three parameters; with fewer reference losses its tail is guesswork."""

TAIL = 1e-6
"""Below this probability the library's cdf loses digits by cancellation, and the tail is integrated instead."""


@dataclass(frozen=True, slots=True)
class SampledExposure:
    """One canary ranked among reference losses, in bits; None with a reason in ``note`` where there is no rank.

    ``rank`` = 1 + the references whose loss is at most the canary's (ties count against it). ``exposure`` lies in
    [0, ``max_exposure``], the cap log2(n + 1) that n references set. ``exposure_tfp`` is TensorFlow Privacy's log2(n) -
    log2(rank), which can fall just below 0.
    """

    rank: int | None
    exposure: float | None
    exposure_tfp: float | None
    max_exposure: float | None
    note: str | None = None


@checked
def exposure_exact(rank: int, space_size: int) -> Estimate:
    """log2(space_size) - log2(rank) in bits, for a secret's rank (1 = likeliest) among all space_size candidates.

    Between 0 and the cap log2(space_size), which the note states.
    """
    size = whole("space_size", space_size, low=1)
    place = whole("rank", rank, low=1, high=size if isinstance(size, int) else None)
    if isinstance(size, str) or isinstance(place, str):
        return _none(first_reason((size, place)) or "", "exact exposure")
    cap = math.log2(size)
    bits = cap - math.log2(place)
    return _bits(bits, "exact exposure", n=size, note=f"at most {cap:.2f} bits in a space of {size}")


@checked
def even_rank_bits(places: int) -> float:
    """Mean bits of a secret whose rank is any of ``places`` with equal chance: log2(places) - log2(places!) / places.

    Near log2(e) = 1.44 among many, less among few: 1.42 among 201, 1.20 among 13.
    """
    if not isinstance(whole("places", places, low=1), int):
        raise UsageError(f"places must be a whole number of at least 1, got {places}")
    return math.log2(places) - math.lgamma(places + 1) / math.log(2) / places


@checked
def exposure_sampled(canary_losses: ArrayLike, reference_losses: ArrayLike) -> list[SampledExposure]:
    """The exposure of each canary among sampled references, in the order given. Losses: lower is likelier."""
    canaries = np.atleast_1d(np.asarray(canary_losses, dtype=np.float64))
    references = finite_array(reference_losses, "reference_losses")
    if isinstance(references, str):
        return [SampledExposure(None, None, None, None, note=references) for _ in canaries]
    return [_ranked(float(loss), np.sort(references)) for loss in canaries]


@checked
def mean_exposure(
    canary_losses: ArrayLike,
    reference_losses: ArrayLike,
    *,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> Estimate:
    """Mean sampled exposure of some canaries in bits, with an interval for new canaries *and* new references.

    The canaries' side of the interval is that of :func:`bounded_mean` on [0, log2(n + 1)], so that canaries which are
    all at the cap still have a lower limit; the references' side is that of :func:`reference_limits`, since one
    reference near the top moves all canaries at once. Both distances are added in squares. Fewer than 8 canaries or
    references give no interval. The value belongs to this number of references: another number has another cap, and
    another ``chance`` (:func:`even_rank_bits`).
    """
    method = "mean exposure"
    fields: dict[str, Any] = {"unit": "bits", "better": "lower", "confidence": confidence}
    canaries, references = finite_array(canary_losses, "canary_losses"), finite_array(reference_losses, "references")
    n = np.size(canary_losses)
    fields["units"] = min(n, np.size(reference_losses))
    if isinstance(canaries, str) or isinstance(references, str):
        return Estimate.not_estimable(first_reason((canaries, references)) or "", n=n, method=method, **fields)
    ranks = 1 + np.searchsorted(np.sort(references), canaries, "right")
    fields["chance"] = even_rank_bits(len(references) + 1)
    cap = math.log2(len(references) + 1)
    bits = np.clip(cap - np.log2(ranks), 0.0, cap)
    note = f"from {bits.min():.2f} to {bits.max():.2f} bits; {len(references)} references cap it at {cap:.2f}"
    value = float(np.clip(bits.mean(), bits.min(), bits.max()))
    if (few := min((len(bits), "canaries"), (len(references), "references")))[0] < FEWEST:
        remark = f"{note}; {few[0]} {few[1]} give no interval, {FEWEST} do"
        return Estimate(value, n=n, method=method, note=remark, **fields)
    low, high = bounded_limits(bits, 0.0, cap, confidence=confidence, n_resamples=n_resamples, seed=seed)
    below, above = reference_limits(
        ranks - 1, len(references), confidence=confidence, n_resamples=n_resamples, seed=seed
    )
    return Estimate(
        value,
        max(0.0, value - math.hypot(value - low, max(0.0, value - below))),
        min(cap, value + math.hypot(high - value, max(0.0, above - value))),
        n=n,
        method=f"{method}, canaries by Gaffke's limits, references by the gaps between them",
        note=note,
        **fields,
    )


@checked
def exposure_extrapolated(canary_losses: ArrayLike, reference_losses: ArrayLike) -> list[Estimate]:
    """-log2 of the probability of a loss as low as each canary's, under a skew-normal fit to the reference losses;
    bits.

    Not capped by the number of references, so it stands or falls with the fit: show it beside the sampled value. Fewer
    than 30 references, or references without spread, give no value.
    """
    canaries = np.atleast_1d(np.asarray(canary_losses, dtype=np.float64))
    method = "extrapolated exposure, skew-normal fit"
    references = finite_array(reference_losses, "reference_losses", minimum=SMALLEST_FIT)
    exponent = 0 if isinstance(references, str) else large_exponent(references)
    fit = references if isinstance(references, str) else fit_skew_normal(np.ldexp(references, -exponent))
    if isinstance(fit, str):
        return [_none(fit, method) for _ in canaries]
    answers = []
    with np.errstate(all="ignore"):
        for loss in np.ldexp(canaries, -exponent):
            bits = -_log_cdf(float(loss), fit) / math.log(2) if math.isfinite(loss) else math.nan
            answers.append(
                _bits(bits, method, n=np.size(reference_losses))
                if math.isfinite(bits)
                else _none(f"loss is {loss}", method)
            )
    return answers


@checked
def fit_skew_normal(losses: Array) -> tuple[float, float, float] | str:
    """Shape, location and scale of the maximum-likelihood skew-normal distribution, or why there is none."""
    found = finite_array(losses, "losses")
    if isinstance(found, str):
        return found
    if losses.std() <= 1e-12 * float(np.abs(losses).max()):
        return "the reference losses have no spread"
    import warnings

    from scipy.stats import skewnorm

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            shape, location, scale = (float(x) for x in skewnorm.fit(losses))
    except (RuntimeError, ValueError) as problem:
        return f"the skew-normal fit failed: {problem}"
    if not (math.isfinite(shape) and math.isfinite(location) and scale > 0):
        return "the skew-normal fit did not converge"
    return shape, location, scale


@checked
def secret_entropy_bits(length: int, alphabet: int) -> Estimate:
    """length x log2(alphabet): the entropy in bits of a secret of independent uniform symbols."""
    size, symbols = whole("length", length, low=0), number("alphabet", alphabet, low=1)
    if isinstance(size, str) or isinstance(symbols, str):
        return _none(first_reason((size, symbols)) or "", "secret entropy")
    bits = size * math.log2(symbols)
    return _bits(bits, "secret entropy") if math.isfinite(bits) else _none(f"length is {length}", "secret entropy")


def _ranked(loss: float, ordered: Sequence[float] | Array) -> SampledExposure:
    cap = math.log2(len(ordered) + 1)
    if not math.isfinite(loss):
        return SampledExposure(None, None, None, cap, note=f"the canary's loss is {loss}")
    rank = 1 + int(np.searchsorted(ordered, loss, "right"))
    return SampledExposure(rank, cap - math.log2(rank), math.log2(len(ordered)) - math.log2(rank), cap)


def _log_cdf(x: float, fit: tuple[float, float, float]) -> float:
    from scipy.stats import skewnorm

    probability = float(skewnorm.cdf(x, *fit))
    return math.log(probability) if probability > TAIL else _log_tail((x - fit[1]) / fit[2], fit[0])


def _log_tail(z: float, shape: float) -> float:
    """log P(Z <= z) of a standard skew-normal Z far below its bulk, by integrating the density from z downwards."""
    from scipy.integrate import quad
    from scipy.special import log_ndtr

    def log_density(u: float) -> float:
        return -0.5 * u * u + float(log_ndtr(shape * u))

    top = log_density(z)
    # The density falls at least as fast as exp(-|z| t) here, so the integral is written in units of that length.
    slope = max(1.0, abs(z) * (1 + shape * shape if shape > 0 else 1))
    if not math.isfinite(top):
        return math.nan
    # full_output, because quad otherwise warns where it gives less than its last digits.
    area = quad(lambda t: math.exp(min(0.0, log_density(z - t / slope) - top)), 0, 60, limit=200, full_output=1)[0]
    return top + math.log(area / slope) + math.log(2) - 0.5 * math.log(2 * math.pi)


def _bits(value: float, method: str, *, n: int | None = None, note: str | None = None) -> Estimate:
    return Estimate(value, n=n, confidence=None, method=method, unit="bits", note=note)


def _none(reason: str, method: str) -> Estimate:
    return Estimate.not_estimable(reason, method=method, confidence=None, unit="bits")
