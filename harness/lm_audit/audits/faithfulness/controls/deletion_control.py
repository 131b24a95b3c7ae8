"""Control of the deletion scores: orders of known worth, and random attributions against independent random orders.

On a model that copies by construction the planted letters are all that matters. An order that deletes them first must
score far below random orders, one that deletes them last far above, and random numbers like random orders: scores that
are constant, noise, reversed or one token off cannot do all three. Scores that are wrong in another way, as where the
last token is forgotten or a mean stands for a sum, can: some are held against plain forward passes, all against another
formula, and what the audit reports of a method against another from its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lm_audit.audits.faithfulness.controls.answers_known import wrong_of_known_curves
from lm_audit.audits.faithfulness.controls.known_sources import ERROR, distinct, most
from lm_audit.audits.faithfulness.controls.other_formulas import SAME, SAMPLES, scored_otherwise, wrong_report
from lm_audit.audits.faithfulness.controls.plain_totals import difference_from_plain
from lm_audit.audits.faithfulness.deletion.perturb import baseline_ids
from lm_audit.audits.faithfulness.passage.samples import Sample
from lm_audit.audits.faithfulness.study import Study, prepare
from lm_audit.audits.second_opinion import found_wrong, held_by_its_rows
from lm_audit.evidence import Control, Evidence
from lm_audit.models.checks.agreement import nats_a_token
from lm_audit.sources import MetricSource

if TYPE_CHECKING:
    from lm_audit.models.language_model import LanguageModel

Vector = NDArray[np.float64]

SCORES = {"rise": 1.0, "mas": 1.0, "rise_ap": 2.0}
"""Scores and the highest value of each; the lowest is 0."""

ORDERS = ("first", "chance", "random", "last")
"""Planted letters first; independent random orders; the random attributions under test; planted letters last."""

DRAWS = 3
"""Random attributions of each kind a sample; their mean counts."""

STEPS = 10

BASELINE = "eos"

CHECKED = 3
"""Of so many samples the scores of two orders are held against plain passes."""


@dataclass(frozen=True)
class Orders:
    """Weights of one sample's features for each kind of order."""

    weights: dict[str, Vector]

    @classmethod
    def of(cls, features: int, gold: Sequence[int], rng: np.random.Generator) -> Orders:
        """Orders over ``features``; the last one begins beside the letters, where a slip of one token hits them."""
        places = np.arange(features)
        planted = np.isin(places, list(gold))
        beside = np.isin(places, [index + step for index in gold for step in (-1, 1)]) & ~planted
        weights: dict[str, Vector] = {
            "first": planted.astype(np.float64),
            "last": np.where(planted, 0.0, 1.0 + beside),
        }
        for kind in ("chance", "random"):
            weights |= {f"{kind}-{draw}": rng.random(features) for draw in range(DRAWS)}
        return cls(weights)


def random_attribution_evidence(model: LanguageModel, samples: Sequence[Sample], *, seed: int) -> Evidence:
    """Negative control: random attributions score like random orders, on scores that tell good orders from bad ones."""
    samples = distinct(samples)
    evidence = Evidence("faithfulness", parameters={"steps": STEPS, "seed": seed, "samples": len(samples)})
    studies = [prepare(model, sample) for sample in samples]
    rows = [_row(study, np.random.default_rng([seed, 4, n]), checked=n < CHECKED) for n, study in enumerate(studies)]
    evidence.extend_rows(rows)
    _add_metrics(evidence, rows, seed)
    alike = len(samples) - len({row["drawn"] for row in rows})
    faults = [f"{alike} of {len(samples)} samples have the random orders of another"] if alike else []
    off = sum(not row["other"] <= SAME for row in rows)
    faults += [f"{off} of {len(samples)} samples have other scores by another formula"] if off else []
    faults += found_wrong("a method's report", lambda: wrong_report(studies[:SAMPLES], steps=STEPS, seed=seed))
    faults += found_wrong("curves known beforehand", wrong_of_known_curves)
    evidence.control = judged(rows, agreement=nats_a_token(model))
    limits = {_named(score, kind): (0.0, highest) for score, highest in SCORES.items() for kind in ORDERS}
    return held_by_its_rows(evidence, also=faults, limits=limits, counts=[({}, len(samples))])


def _row(study: Study, rng: np.random.Generator, *, checked: bool) -> dict[str, Any]:
    test = study.test("token", STEPS, BASELINE)
    orders = Orders.of(len(test.units), study.gold_units("token"), rng).weights
    curves = test.curves(orders)
    # By this samples whose random orders are one draw are told.
    row: dict[str, Any] = {"item": study.sample.name, "drawn": float(orders["random-0"][0])}
    row["other"] = max(scored_otherwise(curve, STEPS) for curve in curves.values())
    for score in SCORES:
        for kind in ORDERS:
            values = [getattr(curve, score) for name, curve in curves.items() if name.split("-")[0] == kind]
            row[f"{score}_{kind}"] = float(np.mean(values))
    if checked:
        model, passage = study.explainer.model, study.explainer.passage
        (replacement,) = baseline_ids(model.tokenizer, BASELINE, 1)
        apart = [difference_from_plain(model, passage, curves[name], replacement) for name in ("first", "random-0")]
        row["apart"] = max(apart)
    return row


def _add_metrics(evidence: Evidence, rows: Sequence[dict[str, Any]], seed: int) -> None:
    from lm_audit.stats import bounded_mean

    for score, highest in SCORES.items():
        for kind in ORDERS:
            estimate = bounded_mean([row[f"{score}_{kind}"] for row in rows], 0.0, highest, seed=seed)
            better = "higher" if kind == "last" else "lower"
            evidence.metric(_named(score, kind), replace(estimate, better=better), MetricSource.mean(f"{score}_{kind}"))


def _named(score: str, kind: str) -> str:
    return f"faithfulness.{kind if kind in ('random', 'chance') else f'planted_{kind}'}_{score}"


def judged(rows: Sequence[dict[str, Any]], *, agreement: float = 0.01) -> Control:
    """The verdict over the rows' scores: each comparison counts the samples on which it comes out as it must.

    ``apart`` (nats a token) of a row is how far its log-likelihoods are from plain passes, ``agreement`` how far they
    may be.
    """
    wrong = []
    apart = max((row["apart"] for row in rows if "apart" in row), default=0.0)
    if not apart <= agreement:
        wrong.append(f"log-likelihoods differ from plain forward passes by {apart:.2g} nats a token")
    for score in SCORES:
        column = {kind: np.array([row[f"{score}_{kind}"] for row in rows]) for kind in ORDERS}
        if not most((column["first"] < column["chance"]).tolist()):
            wrong.append(f"{score}: the planted order is not below random ones")
        if not most((column["last"] > column["chance"]).tolist()):
            wrong.append(f"{score}: the order with the planted letters last is not above random ones")
        below, above = ((column["random"] < column["chance"]).tolist(), (column["random"] > column["chance"]).tolist())
        if not _one_sided([True] * len(rows)):
            wrong.append(f"{score}: {len(rows)} samples are too few to tell random attributions from random orders")
        if _one_sided(below) or _one_sided(above):
            wrong.append(f"{score}: random attributions and random orders are not alike")
    return Control(
        "negative",
        not wrong,
        "random attributions score like random orders, in about half of the samples below and above them; these lie "
        "between the planted order and its reverse in more than half of the samples, in RISE, MAS and RISE+AP (exact "
        f"limits of error {ERROR:g}), and log-likelihoods are those of plain forward passes",
        "; ".join(wrong) if wrong else "random attributions score like random orders, between both planted orders",
    )


def _one_sided(answers: Sequence[bool]) -> bool:
    """Whether more than half say yes, with an error so small that six such tests together keep ``ERROR``."""
    from lm_audit.stats import clopper_pearson

    low = clopper_pearson(sum(answers), len(answers), 1 - ERROR / 10).low
    return low is not None and low > 0.5
