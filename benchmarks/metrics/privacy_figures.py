"""Figures of the privacy audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial

import numpy as np
import pandas as pd
from figure import Design, Told
from scipy.special import expit, ndtr, ndtri

from lm_audit.audits.privacy.attribution.changes import Frames, Resampling, transition_rows
from lm_audit.audits.privacy.measure.membership import _exact_tier, auc_estimate, pr_estimate, tpr_estimate
from lm_audit.audits.privacy.stages.seeds import mean_over_seeds
from lm_audit.audits.privacy.statistics import epsilon_of_scores
from lm_audit.stats import Estimate, bounded_mean, clopper_pearson, mean_exposure, mean_interval
from lm_audit.stats.ranking.scores import average_precision_of
from lm_audit.stats.shares.share_differences import clustered_share_difference

LAW = 4000
"""Samples from which the mean of a rank statistic is told."""


@cache
def mean_precision(n: int, m: int, shift: float) -> float:
    rng = np.random.default_rng([1, n, m, int(1000 * shift)])
    return float(np.mean([average_precision_of(rng.normal(shift, 1, n), rng.normal(size=m)) for _ in range(LAW)]))


@cache
def mean_bits(m: int, shift: float, spread: float) -> float:
    rng = np.random.default_rng([2, m, int(1000 * shift)])
    bits = []
    for _ in range(LAW // 4):
        twins, canaries = np.sort(-rng.normal(size=m)), -rng.normal(shift, spread, 40)
        bits.append(np.log2(m + 1) - np.log2(1 + np.searchsorted(twins, canaries, "right")).mean())
    return float(np.mean(bits))


def ranks(rng: np.random.Generator, seed: int, there: bool, *, n: int, m: int, shift: float) -> Mapping[str, Told]:
    at = shift if there else 0.0
    members, twins = rng.normal(at, 1, n), rng.normal(size=m)
    told = {
        "privacy.roc_auc, privacy.roc_auc.{score}, privacy.blind_baseline, privacy.scored.roc_auc": Told(
            auc_estimate(members, twins), float(ndtr(at / 2**0.5)), 0.5, "above"
        ),
        "privacy.tpr_at_{fpr}": Told(
            tpr_estimate(members, twins, "0.01"), float(ndtr(at - ndtri(0.99))), 0.01, "above"
        ),
        "privacy.exposure.r{times}": Told(
            mean_exposure(-members, -twins, n_resamples=599, seed=seed), mean_bits(m, at, 1.0)
        ),
    }
    if n >= 15:
        found = pr_estimate(members, twins, seed, 299)
        truth = mean_precision(n, m, at)
        told["privacy.pr_auc"] = Told(found, truth, found.chance, "above")
        if not there:
            told["privacy.pr_auc"] = Told(found, found.chance or 0.0, found.chance, "above")
    return told


def capped(
    rng: np.random.Generator, seed: int, there: bool, *, n: int, m: int, shift: float, spread: float
) -> Mapping[str, Told]:
    """Tiers of which most canaries are at the cap."""
    found = mean_exposure(-rng.normal(shift, spread, n), -rng.normal(size=m), n_resamples=599, seed=seed)
    cap = 20.0
    exact = np.clip(cap - rng.exponential(1.5, n), 0.0, cap)
    tier = _exact_tier(exact, np.full(n, cap))
    return {
        "privacy.exposure.r{times} (near the cap)": Told(found, mean_bits(m, shift, spread)),
        "privacy.exposure_exact.r{times}": Told(tier, cap - 1.5),
    }


def extraction(rng: np.random.Generator, seed: int, there: bool, *, n: int, m: int) -> Mapping[str, Told]:
    rate, false = (0.4 if there else 0.02), 0.02
    members, twins = (rng.random(n) < rate).astype(float), (rng.random(m) < false).astype(float)
    sampled = rng.binomial(4, rng.beta(2 * rate, 2 * (1 - rate), n)) / 4
    difference = clustered_share_difference(np.r_[members, twins], np.repeat([True, False], [n, m]), range(n + m))
    return {
        "privacy.extraction.member.{prefix}, privacy.generated.extraction.member.{how}": Told(
            clopper_pearson(int(members.sum()), n), rate
        ),
        "privacy.extraction.sampled": Told(bounded_mean(sampled, n_resamples=999, seed=seed), rate),
        "privacy.generated.extraction_difference": Told(difference, rate - false, 0.0, "above"),
    }


def frames(members: np.ndarray, twins: np.ndarray, documents: np.ndarray) -> Frames:
    def table(values: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame({"span_mean_logprob": values, "mean_logprob": values})

    return Frames(table(members), table(twins), table(documents))


def drawn(rng: np.random.Generator, shape: str, n: int) -> np.ndarray:
    """Values of mean 0."""
    if shape == "normal":
        return rng.normal(size=n)
    if shape == "exponential":
        return np.asarray(rng.exponential(size=n) - 1.0)
    return np.asarray(np.where(rng.random(n) < 0.1, 3.0, 0.0) - 0.3 + 0.5 * rng.normal(size=n))


@cache
def moved_area(effect: float, shape: str, spread: float) -> float:
    """The AUC behind one step minus that before it, which is 0.5: of many members against the normal twins."""
    rng = np.random.default_rng(4)
    members = rng.normal(size=400_000) + effect + spread * 0.3 * drawn(rng, shape, 400_000)
    return float(ndtr(members / (1 + 0.3**2) ** 0.5).mean()) - 0.5


def step(
    rng: np.random.Generator, seed: int, there: bool, *, n: int, m: int, shape: str, spread: float
) -> Mapping[str, Told]:
    """One training step: all texts gain, the members more where ``there``; changes of members spread more."""
    effect = 0.5 if there else 0.0
    before = [rng.normal(-3, 1, size) for size in (n, m, 3 * n)]
    twins_own, documents_own = rng.normal(size=m), rng.normal(size=3 * n)
    change = [0.3 + effect + spread * 0.3 * drawn(rng, shape, n), 0.3 + 0.3 * twins_own, 0.3 + 0.3 * documents_own]
    first, last = frames(*before), frames(*(a + c for a, c in zip(before, change, strict=True)))
    rows = {row["metric"]: row for row in transition_rows("t", first, last, Resampling(seed, 299))}

    def of(name: str) -> Estimate:
        row = rows[name]
        low, high = row.get("against_low", row["low"]), row.get("against_high", row["high"])
        return Estimate(row.get("against_twins", row["delta"]), low, high, n=n)

    told = {
        "privacy.did": Told(of("secret_logprob_did"), effect, 0.0, "above"),
        "privacy.did, secret_logprob against twins": Told(of("secret_logprob"), effect, 0.0, "above"),
    }
    if "MIA_Gap" in rows:
        told["stage step: MIA_Gap"] = Told(of("MIA_Gap"), effect, 0.0)
    if "twin_ROC_AUC" in rows:
        null = 0.0 if shape == "normal" else None
        told["stage step: twin_ROC_AUC"] = Told(of("twin_ROC_AUC"), moved_area(effect, shape, spread), null)
    return told


def several(rng: np.random.Generator, seed: int, there: bool, *, n: int) -> Mapping[str, Told]:
    """Means over seeds, and |sd / mean| of a score under other wording."""
    effect = 1.0 if there else 0.0
    table = rng.normal(-3, 0.5, (n, 1)) + 0.3 * rng.normal(size=(n, 6))
    unstable = np.abs(table.std(axis=1, ddof=1) / table.mean(axis=1))
    return {
        "privacy.{step}.did.over_seeds": Told(mean_over_seeds(rng.normal(effect, 1, n).tolist(), "x"), effect, 0.0),
        "privacy.stability": Told(mean_interval(unstable, seed=seed, n_resamples=999), instability()),
    }


@cache
def instability() -> float:
    rng = np.random.default_rng(3)
    table = rng.normal(-3, 0.5, (400_000, 1)) + 0.3 * rng.normal(size=(400_000, 6))
    return float(np.abs(table.std(axis=1, ddof=1) / table.mean(axis=1)).mean())


def coins(rng: np.random.Generator, seed: int, there: bool, *, n: int, epsilon: float) -> Mapping[str, Told]:
    """A lower bound on epsilon: above the truth it is an error."""
    included = rng.random(n) < 0.5
    right = rng.random(n) < expit(epsilon)
    scores = np.where(right == included, 1.0, -1.0) + 0.1 * rng.random(n)
    found = epsilon_of_scores(scores, included)
    bound = Estimate(found.value, found.value, 1e9) if found.value is not None else found
    return {"privacy.epsilon": Told(bound, epsilon, epsilon, "above")}


def designs() -> Iterator[Design]:
    for n, m in ((8, 200), (15, 200), (50, 200), (50, 1000)):
        for shift in (0.7, 3.0):
            yield Design(
                "roc_auc, pr_interval, tpr_at_fpr, mean_exposure",
                f"twins {m}, shift {shift:g}",
                f"{n} members",
                partial(ranks, n=n, m=m, shift=shift),
                discrete=True,
            )
        for shift, spread in ((3.0, 0.5), (4.0, 1.0)):
            yield Design(
                "mean_exposure, bounded_mean",
                f"twins {m}, canaries at {shift:g} +- {spread:g}",
                f"{n} members",
                partial(capped, n=n, m=m, shift=shift, spread=spread),
                discrete=True,
            )
        yield Design(
            "clopper_pearson, bounded_mean, clustered_share_difference",
            f"twins {m}",
            f"{n} members",
            partial(extraction, n=n, m=m),
            discrete=True,
        )
    for n, m in ((8, 200), (15, 200), (50, 200)):
        for shape in ("normal", "exponential", "a tenth at 3"):
            for spread in (1.0, 2.6):
                yield Design(
                    "studentised_difference; Student's over resamples",
                    f"twins {m}, {shape}, spread x {spread:g}",
                    f"{n} members",
                    partial(step, n=n, m=m, shape=shape, spread=spread),
                )
    for n in (8, 20):
        yield Design("t, mean_interval", "over seeds; over canaries", str(n), partial(several, n=n))
    for n, epsilon in ((50, 1.0), (100, 0.5), (200, 2.0)):
        yield Design(
            "one_run_epsilon", f"epsilon {epsilon:g}", f"{n} coins", partial(coins, n=n, epsilon=epsilon), discrete=True
        )
