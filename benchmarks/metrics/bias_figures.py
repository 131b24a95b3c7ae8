"""Figures of the bias audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
from figure import Design, Told
from scipy.special import expit, ndtr, ndtri

from lm_audit.audits.bias.benchmarks.bbq.audit import bbq_evidence
from lm_audit.audits.bias.benchmarks.bbq.items import BBQItem
from lm_audit.audits.bias.benchmarks.shares import clustered_mean, gap
from lm_audit.audits.bias.benchmarks.stereoset.audit import stereoset_evidence
from lm_audit.audits.bias.benchmarks.stereoset.items import StereoSetItem
from lm_audit.audits.bias.benchmarks.wino.winogender import _correlation
from lm_audit.audits.bias.generated.refusal_shares import RefusalTable, record_rates
from lm_audit.evidence import Evidence
from lm_audit.stats import crossed_contrast, mean_interval, studentised_difference, two_way_mean
from lm_audit.stats.means.disparity import max_min_disparity


def grid(rng: np.random.Generator, means: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Groups x templates x word pairs: effects of templates and of pairs on each group, and of single cells."""
    groups = len(means)
    noise = rng.normal(0, 0.35, (groups, rows, 1)) + rng.normal(0, 0.35, (groups, 1, columns))
    return np.asarray(means[:, None, None] + noise + rng.normal(0, 0.6, (groups, rows, columns)))


def preference(
    rng: np.random.Generator, seed: int, there: bool, *, groups: int, rows: int, columns: int
) -> Mapping[str, Told]:
    means = np.r_[0.5, np.zeros(groups - 1)] if there else np.zeros(groups)
    values = grid(rng, means, rows, columns)
    neutral = 0.3 * rng.normal(size=(rows, columns))
    own = two_way_mean(values[0] - values.mean(axis=0))
    first = crossed_contrast(values[0] - values[1], method="t", seed=seed).difference
    return {
        "bias.max_min_disparity": Told(
            max_min_disparity(values, seed=seed).estimate, float(np.ptp(means)), 0.0, "above"
        ),
        "bias.contrast.{groups}": Told(first, float(means[0] - means[1]), 0.0),
        "bias.group_score.{group}": Told(own, float(means[0] - means.mean()), 0.0),
        "bias.calibrated_score.{group}": Told(two_way_mean(values[0] - neutral), float(means[0]), 0.0),
    }


def swap(rng: np.random.Generator, seed: int, there: bool, *, tails: str) -> Mapping[str, Told]:
    """Sizes of 16 shifts of a likelihood and of 12 under swaps that keep the meaning, as shipped."""
    scale = 2.0 if there else 1.0
    mean = {"normal": (2 / np.pi) ** 0.5, "t of 3": 2 * 3**0.5 / np.pi}[tails]
    shift, floor = (np.abs(rng.normal(size=n) if tails == "normal" else rng.standard_t(3, n)) for n in (16, 12))
    shift = scale * shift
    excess = studentised_difference(shift, floor, seed=seed, n_resamples=1999).difference
    return {
        "bias.counterfactual_shift": Told(mean_interval(shift, seed=seed, n_resamples=1999), scale * mean),
        "bias.counterfactual_noise_floor": Told(mean_interval(floor, seed=seed, n_resamples=1999), mean),
        "bias.counterfactual_excess_shift": Told(excess, (scale - 1) * mean, 0.0, "above"),
    }


def written(rng: np.random.Generator, seed: int, there: bool, *, unchanged: float) -> Mapping[str, Told]:
    """Continuations of which many do not change at all, and the others by any part."""

    def changes(n: int, same: float) -> np.ndarray:
        return (rng.random(n) >= same) * rng.beta(2, 2, n)

    own, other = changes(16, unchanged / 2 if there else unchanged), changes(12, unchanged)
    truth = [(1 - (unchanged / 2 if there else unchanged)) / 2, (1 - unchanged) / 2]
    excess = studentised_difference(own, other, seed=seed, n_resamples=1999).difference
    return {
        "bias.counterfactual_generated_change": Told(mean_interval(own, seed=seed, n_resamples=1999), truth[0]),
        "bias.counterfactual_generated_noise_floor": Told(mean_interval(other, seed=seed, n_resamples=1999), truth[1]),
        "bias.counterfactual_generated_excess": Told(excess, truth[0] - truth[1], 0.0, "above"),
    }


def refusals(
    rng: np.random.Generator, seed: int, there: bool, *, groups: int, requests: int, draws: int, rate: float
) -> Mapping[str, Told]:
    """Requests that are refused for all groups or for none, more or less; draws of one hang together."""
    rates = np.full(groups, rate)
    if there:
        rates[0] = min(1.0, rate + 0.3)
    # Latent normal: half of the variance is the request's, a fifth the request's with this group, the rest the draw's.
    request = 0.5**0.5 * rng.normal(size=(requests, 1)) + 0.2**0.5 * rng.normal(size=(requests, groups))
    latent = request[:, :, None] + 0.3**0.5 * rng.normal(size=(requests, groups, draws))
    refused = (latent < ndtri(rates)[None, :, None]).astype(float)
    lean = (
        rng.normal(0, 1, (requests, 1))
        + 0.5 * rng.standard_t(5, (requests, groups))
        + (np.r_[0.8, np.zeros(groups - 1)] if there else 0.0)
    )
    missing = rng.random((requests, groups, draws)) < 0.05
    evidence = Evidence("bias")
    names = [f"g{k}" for k in range(groups)]
    record_rates(evidence, RefusalTable(names, np.where(missing, np.nan, refused), lean), confidence=0.95, seed=seed)
    found = evidence.metrics
    return {
        "bias.refusal_rate.{group}": Told(found["bias.refusal_rate.g0"], 100 * rates[0]),
        "bias.refusal_no_answer": Told(found["bias.refusal_no_answer"], 5.0),
        "bias.refusal_difference.{groups}": Told(
            found["bias.refusal_difference.g1|g0"], 100 * (rates[1] - rates[0]), 0.0
        ),
        "bias.refusal_lean.{groups}": Told(found["bias.refusal_lean.g1|g0"], -0.8 if there else 0.0, 0.0),
        "bias.refusal_max_difference": Told(
            found["bias.refusal_max_difference"], 100 * float(np.ptp(rates)), 0.0, "above"
        ),
    }


WRITERS = {
    "all of CrowS-Pairs": (
        130,
        105,
        101,
        90,
        88,
        78,
        73,
        68,
        55,
        54,
        45,
        43,
        35,
        31,
        *[25] * 8,
        *[20] * 5,
        *[12] * 8,
        *[6] * 8,
        *[3] * 10,
        *[1] * 26,
    ),
    "one type": (11, 7, 5, 5, *[3] * 3, *[2] * 8, *[1] * 7),
    "a sample of 60": (6, 5, 5, 4, 4, 3, 3, 3, 2, 2, 2, 2, 2, *[1] * 17),
}
"""How many pairs the writers of the public set have."""


def pairs(rng: np.random.Generator, seed: int, there: bool, *, writers: str, spread: float) -> Mapping[str, Told]:
    """Pairs by writers who differ: a share of stereotypes preferred, and its size."""
    sizes = WRITERS[writers]
    labels = np.repeat(np.arange(len(sizes)), sizes)
    lean = (0.8 if there else 0.0) + spread * rng.normal(size=len(sizes))[labels] + 2.0 * rng.standard_t(5, len(labels))
    nodes = spread * np.random.default_rng(5).normal(size=200_000) + 2.0 * np.random.default_rng(6).standard_t(
        5, 200_000
    )
    share = float((nodes + (0.8 if there else 0.0) > 0).mean()) if there else 0.5
    size = float(np.abs(nodes + (0.8 if there else 0.0)).mean())
    options: dict[str, Any] = {"confidence": 0.95}
    return {
        "bias.crows_pct_stereotype": Told(
            clustered_mean(100.0 * (lean > 0), labels, unit="%", **options), 100 * share, 50.0
        ),
        "bias.crows_signed_diff": Told(clustered_mean(lean, labels, **options), 0.8 if there else 0.0, 0.0),
        "bias.crows_likelihood_diff": Told(clustered_mean(np.abs(lean), labels, **options), size),
    }


def stereoset(rng: np.random.Generator, seed: int, there: bool, *, terms: int, each: int) -> Mapping[str, Told]:
    """Items about target terms which differ; sizes vary."""
    sizes = rng.integers(max(1, each // 2), 2 * each, terms)
    where = np.repeat(np.arange(terms), sizes)
    # Each term's share is drawn, so that the mean over terms and over items have one truth.
    ss = rng.beta(6, 4, terms) if there else rng.beta(5, 5, terms)
    stereotyped = rng.random(len(where)) < ss[where]
    lms = rng.beta(9, 1, terms)
    scores = np.zeros((len(where), 3))
    scores[:, 0] = np.where(stereotyped, 1.0, -1.0)
    scores[:, 1] = -scores[:, 0]
    above = rng.random((len(where), 2)) < lms[where][:, None]
    # The unrelated candidate beats both, the lower one only, or none.
    scores[:, 2] = np.select([above.all(axis=1), above.any(axis=1)], [-2.0, 0.0], 2.0)
    items = [StereoSetItem(str(k), "intrasentence", f"t{t}", "race", "c", "s", "a", "u") for k, t in enumerate(where)]
    found = stereoset_evidence(items, scores, seed=seed).metrics
    share = 60.0 if there else 50.0
    icat = 90.0 * min(share, 100 - share) / 50
    told = {"bias.stereoset_ss": Told(found["bias.stereoset_ss"], share, 50.0)}
    told["bias.stereoset_lms"] = Told(found["bias.stereoset_lms"], 90.0)
    told["bias.stereoset_icat"] = Told(found["bias.stereoset_icat"], icat)
    told["bias.stereoset_{score}_micro (ss)"] = Told(found["bias.stereoset_ss_micro"], share, 50.0)
    return told


def bbq(
    rng: np.random.Generator, seed: int, there: bool, *, templates: int, each: int, orders: int, unknown: float
) -> Mapping[str, Told]:
    """Questions of templates that differ: right, biased and contrary answers, of which some are none."""
    items, choices = [], []
    for template in range(templates):
        lean = 0.5 * rng.normal()
        for number in range(each):
            condition: Literal["ambig", "disambig"] = "ambig" if number % 2 else "disambig"
            aligned = bool((number // 2) % 2)
            label = 2 if condition == "ambig" else (0 if aligned else 1)
            items.append(
                BBQItem(
                    f"{template}-{number}",
                    "age",
                    str(template),
                    "neg",
                    condition,
                    "c",
                    "q",
                    ("a", "b", "u"),
                    label,
                    2,
                    0,
                )
            )
            answers: list[int | None] = []
            hard = 0.5 * rng.normal()
            for _ in range(orders):
                if rng.random() < 0.02:
                    answers.append(None)
                elif condition == "ambig":
                    says = rng.random() < expit(np.log(unknown / (1 - unknown)) + hard)
                    toward = rng.random() < expit((1.0 if there else 0.0) + lean)
                    answers.append(2 if says else (0 if toward else 1))
                else:
                    right = rng.random() < expit(1.0 + hard + (0.5 if there else 0.0) * (1 if aligned else -1))
                    answers.append(label if right else int(rng.choice([a for a in (0, 1, 2) if a != label])))
            choices.append(answers)
    found = bbq_evidence(items, choices, seed=seed).metrics
    truth = _bbq_truth(there, unknown)
    null = {"bias_ambig": 0.0, "bias_disambig": 0.0, "accuracy_gap": 0.0}
    return {
        f"bias.bbq_{name}": Told(found[f"bias.bbq_{name}"], value, null.get(name) if not there else None)
        for name, value in truth.items()
    }


def _bbq_truth(there: bool, unknown: float) -> dict[str, float]:
    """By quadrature over the normal parts."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    says = float(weights @ expit(np.log(unknown / (1 - unknown)) + 0.5 * nodes))
    toward = float(weights @ expit((1.0 if there else 0.0) + 0.5 * nodes))
    shift = 0.5 if there else 0.0
    right = [float(weights @ expit(1.0 + 0.5 * nodes + sign * shift)) for sign in (1, -1)]
    parsed = 0.98
    # Ambiguous: (1 - accuracy) times the lean of answers that name a group.
    ambig = (1 - parsed * says) * (2 * toward - 1)
    # Disambiguated: biased among named ones; wrong answers are halved between the other group and "unknown".
    biased = (right[0] + (1 - right[1]) / 2) / 2
    named = (right[0] + (1 - right[0]) / 2 + right[1] + (1 - right[1]) / 2) / 2
    return {
        "bias_ambig": ambig,
        "bias_disambig": 2 * biased / named - 1,
        "accuracy_ambig": parsed * says,
        "accuracy_disambig": parsed * sum(right) / 2,
        "accuracy_gap": parsed * (right[0] - right[1]),
        "unparsed": 1 - parsed,
    }


def pronouns(rng: np.random.Generator, seed: int, there: bool, *, occupations: int, each: int) -> Mapping[str, Told]:
    """Sentences of occupations that differ; the same ones with a pronoun of either gender."""
    own = 0.7 * rng.normal(size=occupations)
    labels = np.repeat(np.arange(occupations), each)
    effect = 0.4 if there else 0.0
    male, female = (rng.random(len(labels)) < ndtr(0.5 + own[labels] + sign * effect) for sign in (1, -1))
    values, first = 100.0 * np.r_[male, female], np.repeat([True, False], len(labels))
    found = gap(values, first, np.r_[labels, labels], confidence=0.95)
    sides = [ndtr((0.5 + sign * effect) / (1 + 0.49) ** 0.5) for sign in (1, -1)]
    flips = 100.0 * (male != female)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    p = [ndtr(0.5 + 0.7 * nodes + sign * effect) for sign in (1, -1)]
    differ = float((weights / weights.sum()) @ (p[0] * (1 - p[1]) + p[1] * (1 - p[0])))
    women = rng.uniform(5, 95, occupations)
    share = (women - 50) / 26
    lean = (0.7 if there else 0.0) * share + rng.normal(size=occupations)
    r = 0.7 * 0.9993 / (0.49 * 0.9986 + 1) ** 0.5 if there else 0.0
    options: dict[str, Any] = {"confidence": 0.95, "unit": "%"}
    return {
        "bias.winogender_male_female_gap": Told(found, 100 * float(sides[0] - sides[1]), 0.0),
        "bias.winogender_accuracy_{gender}": Told(
            clustered_mean(100.0 * male, labels, **options), 100 * float(sides[0])
        ),
        "bias.winogender_flip_rate": Told(clustered_mean(flips, labels, **options), 100 * differ),
        "bias.winogender_labour_correlation": Told(_correlation(lean, women, 0.95), r, 0.0),
    }


def designs() -> Iterator[Design]:
    for groups in (2, 4, 5, 9):
        for rows, columns in ((6, 6), (12, 13)):
            yield Design(
                "two_way_mean, crossed_contrast, max_min_disparity",
                f"{groups} groups, {rows} templates x {columns} word pairs",
                str(rows),
                partial(preference, groups=groups, rows=rows, columns=columns),
            )
    for tails in ("normal", "t of 3"):
        yield Design(
            "mean_interval, studentised_difference",
            f"sizes of shifts, {tails}",
            "16 and 12",
            partial(swap, tails=tails),
        )
    for unchanged in (0.3, 0.6):
        yield Design(
            "mean_interval, studentised_difference",
            f"{100 * unchanged:g}% of continuations do not change",
            "16 and 12",
            partial(written, unchanged=unchanged),
            discrete=True,
        )
    for groups, requests, draws, rate in ((2, 24, 1, 0.1), (4, 24, 3, 0.4), (3, 8, 3, 0.3), (6, 24, 3, 0.1)):
        yield Design(
            "share, clustered_share_difference, studentised_mean",
            f"{groups} groups, {draws} draws, {100 * rate:g}% refused",
            f"{requests} requests",
            partial(refusals, groups=groups, requests=requests, draws=draws, rate=rate),
            discrete=True,
        )
    for writers, sizes in WRITERS.items():
        for spread in (0.3, 1.0):
            yield Design(
                "share and clustered_mean over writers",
                f"{writers}, writers' SD {spread:g} of 2.6",
                f"{len(sizes)} writers",
                partial(pairs, writers=writers, spread=spread),
            )
    for terms, each in ((12, 3), (40, 6)):
        yield Design(
            "bounded_mean over terms, share",
            f"about {terms * each} items",
            f"{terms} terms",
            partial(stereoset, terms=terms, each=each),
            discrete=True,
        )
    for templates, each, orders, unknown in ((10, 12, 1, 0.7), (25, 20, 1, 0.5), (10, 12, 3, 0.95)):
        yield Design(
            "share and clustered_share_difference over templates",
            f"{templates * each} questions, {orders} answers each, {100 * unknown:g}% say unknown",
            f"{templates} templates",
            partial(bbq, templates=templates, each=each, orders=orders, unknown=unknown),
            discrete=True,
        )
    for occupations, each in ((10, 2), (60, 2)):
        yield Design(
            "share, clustered_share_difference, Fisher's r",
            f"{each} sentences an occupation and gender",
            f"{occupations} occupations",
            partial(pronouns, occupations=occupations, each=each),
            discrete=True,
        )
